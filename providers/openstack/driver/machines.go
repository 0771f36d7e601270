package driver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	// Name is the cloudProvider that selects this driver, and the domain of its errors.
	Name = "openstack"
	// maxUserData is how many bytes make the 65,535 of base64 that Nova takes.
	maxUserData = 65535 / 4 * 3
	// defaultPollInterval suits servers that take half a minute to boot.
	defaultPollInterval = 2 * time.Second
	// mutationDeadline leaves a create time for two requests of a cloud that has much to do: one
	// that is broken off has to be looked for.
	mutationDeadline = time.Minute
	// defaultCreateSettle is how long Nova or Neutron may go on with a request whose caller is
	// gone.
	defaultCreateSettle = time.Minute
)

// Options are how the driver works. The zero value is good.
type Options struct {
	// Name is what the driver is called, for a core that has several of them; empty means Name.
	Name string
	// Version is the driver's own.
	Version string
	// Environment is what holds where a spec gives no credentials.
	Environment spec.Environment
	// CreateSettle is how long after a lost create the cloud may still bring forth what was asked
	// for; 0 means a minute.
	CreateSettle time.Duration
	// PollInterval is when it is worth asking again about a server that is on its way; 0 means 2 s.
	// Who asks about a machine waits a tenth of it for others, and they ask together.
	PollInterval time.Duration
	// Regional says that a machine's provider_id names the region, openstack://REGION/ID, as a
	// cloud controller manager with OS_CCM_REGIONAL=true writes it. Otherwise it is
	// openstack:///ID. Either form is known of a Node.
	Regional bool
	// Clock tells the time; nil means time.Now.
	Clock func() time.Time
}

// Driver maps the contract to OpenStack. It is safe for concurrent use.
type Driver struct {
	options   Options
	sessions  *session.Pool
	faults    *faults
	reads     reads
	inFlight  sdk.Locks
	attempts  attempts
	lists     lists
	lastLists *lastLists
}

var (
	_ sdk.Driver        = (*Driver)(nil)
	_ sdk.Lister        = (*Driver)(nil)
	_ sdk.ConsoleReader = (*Driver)(nil)
)

// New returns a driver that reaches clouds by these sessions.
func New(sessions *session.Pool, o Options) *Driver {
	if o.Name == "" {
		o.Name = Name
	}
	if o.CreateSettle == 0 {
		o.CreateSettle = defaultCreateSettle
	}
	if o.PollInterval == 0 {
		o.PollInterval = defaultPollInterval
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	said := &faults{clock: o.Clock}
	return &Driver{
		options: o, sessions: sessions, faults: said, reads: newReads(o, said),
		attempts: attempts{settle: o.CreateSettle, clock: o.Clock}, lastLists: newLastLists(o),
	}
}

// Info implements sdk.Driver.
func (d *Driver) Info() sdk.Info {
	prefix := providerIDPrefix
	if d.options.Regional {
		prefix = providerIDScheme
	}
	return sdk.Info{
		Name: d.options.Name, Version: d.options.Version, ProviderIDPrefix: prefix,
		Limits: &driverv1alpha1.Limits{
			MaxUserDataBytes: maxUserData, CreateSettle: durationpb.New(d.options.CreateSettle),
			Deadlines: &driverv1alpha1.Deadlines{Mutation: durationpb.New(mutationDeadline)},
		},
	}
}

// CreateMachine implements sdk.Driver.
func (d *Driver) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	want, err := spec.Read(r.GetProvider().GetProviderSpec(), r.GetProvider().GetSecrets(), d.options.Environment)
	if err != nil {
		return nil, err
	}
	scope, err := d.open(ctx, r, want.Account, want.ComputeAPIVersion)
	if err != nil {
		return nil, err
	}
	release, err := d.inFlight.Lock(r)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, end, err := session.StartChange(ctx, scope.cloud, want.HasVolumes())
	if err != nil {
		return nil, err
	}
	defer end()
	d.lastLists.lead(scope.owner.Cluster, r.GetMeta().GetLeaderEpoch())
	defer d.lastLists.noteCreate(scope.owner)
	scope.withoutFloatingIP, scope.withoutVolumes = want.FloatingIPPool == "", !want.HasVolumes()
	return (&creation{driver: d, machineScope: scope, want: want, request: r, epoch: r.GetMeta().GetLeaderEpoch()}).run(ctx)
}

// GetMachineStatus implements sdk.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	scope, found, err := d.known(ctx, r)
	if err != nil {
		return nil, err
	}
	return found.machine(scope.cloud), nil
}

// DeleteMachine implements sdk.Driver.
func (d *Driver) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	scope, err := d.existing(ctx, r, r.GetProvider())
	if err != nil {
		return nil, err
	}
	release, err := d.inFlight.Lock(r)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, end, err := session.StartChange(ctx, scope.cloud, !scope.withoutVolumes)
	if err != nil {
		return nil, err
	}
	defer end()
	d.lastLists.lead(scope.owner.Cluster, r.GetMeta().GetLeaderEpoch())
	defer d.lastLists.noteDelete(scope.owner)
	found := d.lastLists.shownOf(scope)
	if found == nil {
		if found, err = d.find(ctx, scope); err != nil {
			return nil, err
		}
	}
	if err := found.nameTaken(scope.owner); err != nil {
		return nil, err
	}
	return (&removal{machineScope: scope, found: found, now: d.options.Clock()}).proceed(ctx)
}
