package driver

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// Name is the cloudProvider that selects this driver, and the domain of its errors.
const Name = "fake"

// Driver maps the contract to the fake cloud's API. It is safe for concurrent use.
type Driver struct {
	name    string
	version string
	cloud   fakecloudv1alpha1.CloudServiceClient
	zone    string
	lists   lists
	// settle is how long a create may land late; nil where that is not declared.
	settle *durationpb.Duration
}

// Option changes how a driver behaves.
type Option func(*Driver)

// WithDefaultZone has the driver fill in this zone where a spec names none. Empty changes nothing.
func WithDefaultZone(zone string) Option {
	return func(d *Driver) {
		if zone != "" {
			d.zone = zone
		}
	}
}

// WithName has the driver be called so, for a core that has several of them. Empty changes nothing.
func WithName(name string) Option {
	return func(d *Driver) {
		if name != "" {
			d.name = name
		}
	}
}

// WithoutSettle has the driver not declare how late a create may land: core's default holds.
func WithoutSettle() Option {
	return func(d *Driver) { d.settle = nil }
}

var (
	_ sdk.Driver        = (*Driver)(nil)
	_ sdk.Lister        = (*Driver)(nil)
	_ sdk.ConsoleReader = (*Driver)(nil)
)

// New returns a driver, of this version, of the cloud behind this client.
func New(version string, cloud fakecloudv1alpha1.CloudServiceClient, options ...Option) *Driver {
	d := &Driver{name: Name, version: version, cloud: cloud, zone: defaultZone, settle: durationpb.New(createSettle)}
	for _, option := range options {
		option(d)
	}
	return d
}

// maxUserData is what the cloud takes, in bytes.
const maxUserData = 64 << 10

// createSettle is how long the cloud may go on with a create whose caller is gone. It has to exceed
// the longest latency that the cloud is given.
const createSettle = 5 * time.Second

// Info implements sdk.Driver.
func (d *Driver) Info() sdk.Info {
	return sdk.Info{
		Name: d.name, Version: d.version, ProviderIDPrefix: providerIDPrefix,
		Limits: &driverv1alpha1.Limits{
			MaxConcurrentRequests: contract.DefaultMaxConcurrentRequests, MaxUserDataBytes: maxUserData, CreateSettle: d.settle, Tags: &driverv1alpha1.TagLimits{},
		},
	}
}

// CreateMachine implements sdk.Driver.
func (d *Driver) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	want, err := d.parseSpec(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	scope := scopeOf(r)
	found, err := d.find(ctx, scope)
	if err != nil {
		return nil, err
	}
	if found.vm() == nil {
		// The cloud remembers client tokens: where this uid had a VM that is gone, the answer is
		// that one.
		if found, err = d.create(ctx, scope, want, r, found); err != nil {
			return nil, err
		}
	}
	if err := found.conflict(scope, want); err != nil {
		return nil, sdk.AddDetails(err, found.handedOver())
	}
	return found.machine(), nil
}

// create makes what is missing: the NIC, then the VM. An error says in which account there may be
// something of the machine.
func (d *Driver) create(
	ctx context.Context, scope machineScope, want spec, r *driverv1alpha1.CreateMachineRequest, found *ownedResources,
) (*ownedResources, error) {
	nic, err := d.cloud.CreateNIC(ctx, &fakecloudv1alpha1.CreateNICRequest{
		Key: scope.key, ClientToken: scope.uid(), Name: scope.ref.GetName(), Tags: scope.tags(r.GetTags()),
	})
	if isRefused(err) && found.empty() {
		return nil, translate(err)
	}
	if err != nil {
		return nil, sdk.AddDetails(translate(err), found.handedOver())
	}
	vm, err := d.cloud.CreateVM(ctx, &fakecloudv1alpha1.CreateVMRequest{
		Key: scope.key, ClientToken: scope.uid(), Name: scope.ref.GetName(), Tags: scope.tags(r.GetTags()), NicId: nic.GetNic().GetId(),
		Flavor: want.Flavor, Image: want.Image, Zone: want.Zone, UserData: r.GetUserData(),
	})
	if err != nil {
		return nil, sdk.AddDetails(translate(err), found.handedOver())
	}
	return &ownedResources{
		account: vm.GetAccount(), vms: []*fakecloudv1alpha1.VM{vm.GetVm()}, nics: []*fakecloudv1alpha1.NIC{nic.GetNic()},
	}, nil
}

// GetMachineStatus implements sdk.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	found, err := d.known(ctx, scopeOf(r))
	if err != nil {
		return nil, err
	}
	return found.machine(), nil
}

// known is find; nothing, and what was made for another name, are errors.
func (d *Driver) known(ctx context.Context, scope machineScope) (*ownedResources, error) {
	found, err := d.find(ctx, scope)
	if err != nil {
		return nil, err
	}
	if found.empty() {
		return nil, notFound()
	}
	return found, found.nameTaken(scope)
}

// GetConsoleOutput implements sdk.ConsoleReader. Of a NIC without a VM there is nothing to read
// yet.
func (d *Driver) GetConsoleOutput(ctx context.Context, r *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
	scope := scopeOf(r)
	found, err := d.known(ctx, scope)
	if err != nil || found.vm() == nil {
		return nil, err
	}
	answer, err := d.cloud.GetVMConsole(ctx, &fakecloudv1alpha1.GetVMConsoleRequest{Key: scope.key, Id: found.vm().GetId()})
	if isGone(err) {
		return nil, notFound()
	}
	if err != nil {
		return nil, translate(err)
	}
	return answer.GetOutput(), nil
}

// notFound says that the cloud has nothing of a machine.
func notFound() error {
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "The cloud knows no vm of this machine.")
}

// DeleteMachine implements sdk.Driver.
func (d *Driver) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	scope := scopeOf(r)
	found, err := d.find(ctx, scope)
	if err != nil {
		return nil, err
	}
	if err := found.nameTaken(scope); err != nil {
		return nil, err
	}
	return d.delete(ctx, scope, found)
}

// delete removes every VM, and the NICs once nobody uses them. It returns what is still there, nil
// when nothing is.
func (d *Driver) delete(ctx context.Context, scope machineScope, found *ownedResources) (*driverv1alpha1.Machine, error) {
	if found.empty() {
		return nil, nil
	}
	var dying []*fakecloudv1alpha1.VM
	for _, vm := range found.vms {
		if vm.GetState() != fakecloudv1alpha1.VMState_VM_STATE_DELETING {
			answer, err := d.cloud.DeleteVM(ctx, &fakecloudv1alpha1.DeleteVMRequest{Key: scope.key, Id: vm.GetId()})
			if isGone(err) {
				continue
			}
			if err != nil {
				return nil, translate(err)
			}
			vm = answer.GetVm()
		}
		if vm.GetState() != fakecloudv1alpha1.VMState_VM_STATE_GONE {
			dying = append(dying, vm)
		}
	}
	if len(dying) > 0 {
		return deleting((&ownedResources{account: found.account, vms: dying, nics: found.nics}).machine()), nil
	}
	return d.deleteNICs(ctx, scope)
}

func (d *Driver) deleteNICs(ctx context.Context, scope machineScope) (*driverv1alpha1.Machine, error) {
	nics, err := d.nics(ctx, scope.key, scope.ownerTags())
	if err != nil {
		return nil, err
	}
	for _, nic := range nics {
		if nic.GetVmId() != "" {
			// A create that was given up has come through only now: the next call deletes its VM.
			return deleting((&ownedResources{account: scope.account, nics: nics}).machine()), nil
		}
		_, err := d.cloud.DeleteNIC(ctx, &fakecloudv1alpha1.DeleteNICRequest{Key: scope.key, Id: nic.GetId()})
		if err != nil && !isGone(err) {
			return nil, translate(err)
		}
	}
	return nil, nil
}
