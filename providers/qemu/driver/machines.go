package driver

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// CreateMachine implements sdk.Driver. A VM that has begun is answered as it is. What a create has
// left that died before is made anew.
func (d *Driver) CreateMachine(ctx context.Context, r *sdk.CreateMachineRequest) (*sdk.Machine, error) {
	want, err := d.readSpec(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	host := d.host() // before the turn: nobody else has to wait for the trial
	end, err := d.store.Begin(ctx)
	if err != nil {
		return nil, explain(err)
	}
	defer end()
	found, err := d.find(r, "")
	if err != nil {
		return nil, err
	}
	if found.Record != nil && found.Phase != vm.Leftover {
		if !found.Deleting.IsZero() {
			return nil, sdk.NewError(sdk.ReasonOperationPending, "The VM is being deleted.")
		}
		if err := found.Spec.Conflict(want); err != nil {
			return nil, err
		}
		return d.describe(found), nil
	}
	record, err := d.reserve(r, want)
	if err != nil {
		return nil, err
	}
	if err := host.Start(ctx, found.Folder, record, r.GetUserData()); err != nil {
		return nil, explain(err)
	}
	made, err := d.store.VM(record.UID)
	if err != nil {
		return nil, explain(err)
	}
	return d.describe(made), nil
}

// GetMachineStatus implements sdk.Driver.
func (d *Driver) GetMachineStatus(_ context.Context, r *sdk.GetMachineStatusRequest) (*sdk.Machine, error) {
	found, err := d.existing(r, r.GetProviderId())
	if err != nil {
		return nil, err
	}
	return d.describe(found), nil
}

// DeleteMachine implements sdk.Driver. It asks the VM's system to shut down, kills the VM when that
// takes too long, and removes all it had once its process has ended: each in a call of its own.
func (d *Driver) DeleteMachine(ctx context.Context, r *sdk.DeleteMachineRequest) (*sdk.Machine, error) {
	end, err := d.store.Begin(ctx)
	if err != nil {
		return nil, explain(err)
	}
	defer end()
	found, err := d.find(r, r.GetProviderId())
	if isForeign(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if found.Phase.HasProcess() {
		return d.shutDown(ctx, found)
	}
	return nil, explain(found.Remove())
}

// shutDown has a VM end. It does not wait for that.
func (d *Driver) shutDown(ctx context.Context, v vm.VM) (*sdk.Machine, error) {
	first := v.Deleting.IsZero()
	if first {
		v.Deleting = time.Now()
		if err := v.Write(v.Record); err != nil {
			return nil, explain(err)
		}
	}
	switch {
	case v.Phase != vm.Running || time.Since(v.Deleting) >= d.options.ShutdownGrace:
		if err := v.Kill(); err != nil {
			return nil, explain(err)
		}
	case first:
		// Where QEMU does not answer, or nobody in the VM hears the button, the grace ends it.
		_ = v.PowerDown(ctx)
	}
	return d.describe(v), nil
}

// ListMachines implements sdk.Lister.
func (d *Driver) ListMachines(_ context.Context, r *sdk.ListMachinesRequest) (*sdk.ListMachinesResponse, error) {
	vms, err := d.store.VMs()
	if err != nil {
		return nil, explain(err)
	}
	var all []*sdk.Machine
	for _, v := range vms {
		if v.ClusterUID == r.GetMeta().GetClusterUid() {
			all = append(all, d.describe(v))
		}
	}
	return sdk.Page(r, all)
}

// GetConsoleOutput implements sdk.ConsoleReader.
func (d *Driver) GetConsoleOutput(_ context.Context, r *sdk.GetConsoleOutputRequest) ([]byte, error) {
	found, err := d.existing(r, r.GetProviderId())
	if err != nil {
		return nil, err
	}
	output, err := found.Console(contract.MaxConsoleBytes)
	return output, explain(err)
}

// machineRequest is any request about a machine.
type machineRequest interface {
	GetMeta() *sdk.RequestMeta
	GetMachine() *sdk.MachineRef
}

// Errors about a uid of which this host has nothing for the cluster that asks.
var (
	errNoUID = sdk.NewError(sdk.ReasonSpecInvalid,
		"The machine's uid must consist of at most 63 letters, digits and dashes.", sdk.WithField("machine.uid", "is no UUID"))
	errOtherCluster = sdk.NewError(sdk.ReasonNameTaken, "The uid belongs to a machine of another cluster.")
)

func isForeign(err error) bool { return errors.Is(err, errNoUID) || errors.Is(err, errOtherCluster) }

// find returns what this host has of a request's machine, which may be nothing. An error that
// isForeign says that nothing of it can be this machine's. providerID is the VM that core knows.
func (d *Driver) find(r machineRequest, providerID string) (vm.VM, error) {
	if providerID != "" && !strings.HasPrefix(providerID, d.prefix()) {
		return vm.VM{}, sdk.NewError(sdk.ReasonAccountChanged,
			"The VM is one of another host, or the driver was given another state directory: this one is "+d.prefix()+".")
	}
	if !vm.IsUID(r.GetMachine().GetUid()) {
		return vm.VM{}, errNoUID
	}
	found, err := d.store.VM(r.GetMachine().GetUid())
	if err != nil || found.Record == nil {
		return found, explain(err)
	}
	if found.ClusterUID != r.GetMeta().GetClusterUid() {
		return vm.VM{}, errOtherCluster
	}
	if found.Namespace != r.GetMachine().GetNamespace() || found.Name != r.GetMachine().GetName() {
		return vm.VM{}, sdk.NewError(sdk.ReasonNameTaken, "The uid belongs to the machine "+found.Namespace+"/"+found.Name+".")
	}
	return found, nil
}

// existing returns the VM of a request's machine, else MACHINE_NOT_FOUND.
func (d *Driver) existing(r machineRequest, providerID string) (vm.VM, error) {
	found, err := d.find(r, providerID)
	if isForeign(err) || err == nil && found.Record == nil {
		err = sdk.NewError(sdk.ReasonMachineNotFound, "This host has no VM of this machine.")
	}
	return found, err
}

// explain puts what the host says into the contract's terms. What else goes wrong is
// PROVIDER_INTERNAL.
func explain(err error) error {
	switch {
	case errors.Is(err, vm.ErrBusy):
		return sdk.NewError(sdk.ReasonOperationPending, err.Error())
	case errors.Is(err, fs.ErrPermission):
		return sdk.NewError(sdk.ReasonPermissionMissing, err.Error())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return sdk.NewError(sdk.ReasonCapacityUnavailable, err.Error())
	}
	return err
}
