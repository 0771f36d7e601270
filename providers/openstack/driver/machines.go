package driver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/durationpb"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	// Name is the cloudProvider that selects this driver, and the domain of its errors.
	Name = "openstack"
	// providerIDPrefix is what the cloud controller manager of OpenStack begins
	// Node.spec.providerID with; the server's id follows.
	providerIDPrefix = providerIDScheme + "/"
	// providerIDScheme begins it where that names the region, which the manager does with
	// OS_CCM_REGIONAL=true; "REGION/" follows.
	providerIDScheme = "openstack://"
	// kubermaticPrefix begins what Kubermatic's machine-controller sets where no manager does.
	kubermaticPrefix = "kubermatic://openstack/"
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
	leftovers *leftovers
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
		attempts: attempts{settle: o.CreateSettle, clock: o.Clock}, leftovers: newLeftovers(o),
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

// machineScope is the machine that a call is about, and a session in its project.
type machineScope struct {
	ownership.Owner
	*session.Session
	// serverID is the server's, as far as core has been told; else empty.
	serverID string
	// withoutVolumes says that no volume was made for the machine.
	withoutVolumes bool
}

// machineCall is what every request about one machine has.
type machineCall interface {
	GetMeta() *driverv1alpha1.RequestMeta
	GetMachine() *driverv1alpha1.MachineRef
	GetLastKnownState() []byte
}

// location is where a machine is made: its last known state, which core keeps for this driver.
type location struct {
	// Project is the project's id.
	Project string `json:"project"`
	Region  string `json:"region,omitempty"`
	// WithoutVolumes says that no volume was made for the machine: Cinder need not be asked.
	WithoutVolumes bool `json:"withoutVolumes,omitempty"`
}

// locationOf is where a session's machines are made.
func locationOf(s *session.Session, withoutVolumes bool) location {
	return location{Project: s.ProjectID, Region: s.Region, WithoutVolumes: withoutVolumes}
}

// encode is what core is given.
func (p location) encode() []byte {
	state, _ := json.Marshal(p) // strings cannot fail
	return state
}

// open returns the scope of a call. A project that is not the machine's is an error: there,
// everything would look gone. Where core has not been told yet, this process may remember.
func (d *Driver) open(ctx context.Context, r machineCall, account spec.Account, apiVersion string) (machineScope, error) {
	opened, err := d.sessions.Open(ctx, account, apiVersion)
	if err != nil {
		return machineScope{}, err
	}
	ref := r.GetMachine()
	scope := machineScope{
		Owner: ownership.Owner{
			Cluster: r.GetMeta().GetClusterUid(), Namespace: ref.GetNamespace(), Name: ref.GetName(), UID: ref.GetUid(),
		},
		Session: opened, serverID: serverIDOf(r),
	}
	var made location
	// A state that cannot be read is like one that was lost: nothing depends on it.
	_ = json.Unmarshal(r.GetLastKnownState(), &made)
	if made == (location{}) {
		made, _ = d.attempts.location(scope.Owner)
	}
	scope.withoutVolumes = made.WithoutVolumes
	return scope, scope.elsewhere(made)
}

// elsewhere returns an error where the machine was made in another project or region than the
// credentials open.
func (s machineScope) elsewhere(made location) error {
	var message string
	switch {
	case made.Project != "" && made.Project != s.ProjectID:
		message = "The credentials open the project " + s.ProjectID + ", the machine was made in " + made.Project + "."
	case made.Region != "" && made.Region != s.Region:
		message = "The credentials open the region " + s.Region + ", the machine was made in " + made.Region + "."
	default:
		return nil
	}
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED, message, sdk.WithPartialState("", made.encode()))
}

// serverIDOf returns the id of the server that a request names, in either form; empty where it
// names none that could be one.
func serverIDOf(r machineCall) string {
	named, _ := r.(interface{ GetProviderId() string })
	if named == nil {
		return ""
	}
	text := named.GetProviderId()
	id, ours := strings.CutPrefix(text, kubermaticPrefix)
	if !ours {
		text, ours = strings.CutPrefix(text, providerIDScheme)
		_, id, _ = strings.Cut(text, "/")
	}
	if _, err := uuid.Parse(id); err != nil || !ours {
		return ""
	}
	return id
}

// providerIDs returns the forms of a server's provider_id, the one to write down first. The one
// that names the region is none of them where a region cannot stand in it.
func providerIDs(region, id string, regional bool) []string {
	all := []string{providerIDPrefix + id, kubermaticPrefix + id}
	if region == "" || strings.ContainsFunc(region, func(r rune) bool { return r == '/' || !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return all
	}
	at := 1
	if regional {
		at = 0
	}
	return slices.Insert(all, at, providerIDScheme+region+"/"+id)
}

// existing opens the scope of a call about a machine that may exist: only the account of its spec
// matters.
func (d *Driver) existing(ctx context.Context, r machineCall, provider *driverv1alpha1.ProviderContext) (machineScope, error) {
	account, err := spec.ReadAccount(provider.GetProviderSpec(), provider.GetSecrets(), d.options.Environment)
	if err != nil {
		return machineScope{}, err
	}
	return d.open(ctx, r, account, spec.MinComputeAPIVersion)
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
	d.leftovers.lead(scope.Cluster, r.GetMeta().GetLeaderEpoch())
	defer d.leftovers.noteCreate(scope.Owner)
	return (&creation{Driver: d, machineScope: scope, want: want, request: r}).ensure(ctx)
}

// GetMachineStatus implements sdk.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	scope, found, err := d.known(ctx, r)
	if err != nil {
		return nil, err
	}
	return found.machine(scope.Session), nil
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
	d.leftovers.lead(scope.Cluster, r.GetMeta().GetLeaderEpoch())
	defer d.leftovers.noteDelete(scope.Owner)
	found := d.leftovers.of(scope)
	if found == nil {
		if found, err = d.find(ctx, scope); err != nil {
			return nil, err
		}
	}
	if err := found.nameTaken(scope.Owner); err != nil {
		return nil, err
	}
	return (&removal{machineScope: scope, found: found, now: d.options.Clock()}).proceed(ctx)
}
