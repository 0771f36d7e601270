package driver

import (
	"context"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/spec"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// CreateMachine implements sdk.Driver. A VM that has begun is answered as it is. What a create has
// left that died before is made anew.
func (d *Driver) CreateMachine(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	want, err := d.readSpec(r.GetProvider().GetProviderSpec())
	if err != nil {
		return nil, err
	}
	if !vm.IsUID(r.GetMachine().GetUid()) {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID,
			"The machine's uid must consist of at most 63 letters, digits and dashes.", sdk.WithField("machine.uid", "is no UUID"))
	}
	d.host.Accelerator() // the trial takes a while: nobody's turn has to wait for it
	end, err := d.store.Begin(ctx)
	if err != nil {
		return nil, explain(err)
	}
	defer end()
	folder := d.store.Folder(r.GetMachine().GetUid())
	record, phase, err := look(folder)
	if err != nil {
		return nil, explain(err)
	}
	if record != nil {
		if err := nameTaken(record, r); err != nil {
			return nil, err
		}
		if phase != vm.Leftover {
			return d.existing(record, phase, want)
		}
	}
	if record, err = d.reserve(r, want); err != nil {
		return nil, err
	}
	if err := d.host.Start(ctx, folder, record, r.GetUserData()); err != nil {
		return nil, explain(err)
	}
	if phase, err = folder.Phase(); err != nil {
		return nil, explain(err)
	}
	return d.describe(record, phase), nil
}

// existing is the answer to a create of a VM that there is.
func (d *Driver) existing(record *vm.Record, phase vm.Phase, want spec.Machine) (*driverv1alpha1.Machine, error) {
	if !record.Deleting.IsZero() {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, "The VM is being deleted.")
	}
	if err := record.Spec.Conflict(want); err != nil {
		return nil, err
	}
	return d.describe(record, phase), nil
}

// GetMachineStatus implements sdk.Driver.
func (d *Driver) GetMachineStatus(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	record, phase, err := d.find(r)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, notFound()
	}
	return d.describe(record, phase), nil
}

func notFound() error {
	return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "This host has no VM of this machine.")
}

// DeleteMachine implements sdk.Driver. It asks the VM's system to shut down, kills the VM when that
// takes too long, and removes all it had once its process has ended: each in a call of its own.
func (d *Driver) DeleteMachine(ctx context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	end, err := d.store.Begin(ctx)
	if err != nil {
		return nil, explain(err)
	}
	defer end()
	record, phase, err := d.find(r)
	if err != nil {
		return nil, err
	}
	if !vm.IsUID(r.GetMachine().GetUid()) || record == nil && d.isForeign(r) {
		return nil, nil
	}
	folder := d.store.Folder(r.GetMachine().GetUid())
	switch phase {
	case vm.Preparing, vm.Starting, vm.Running:
		return d.shutDown(ctx, folder, record, phase)
	}
	return nil, explain(folder.Remove())
}

// shutDown has a VM end. It does not wait for that.
func (d *Driver) shutDown(ctx context.Context, folder vm.Folder, record *vm.Record, phase vm.Phase) (*driverv1alpha1.Machine, error) {
	now := time.Now()
	if record.Deleting.IsZero() {
		record.Deleting = now
		if err := folder.Write(record); err != nil {
			return nil, explain(err)
		}
		if phase == vm.Running && d.options.ShutdownGrace > 0 {
			// Where QEMU does not answer, or nobody in the VM hears the button, the grace ends it.
			_ = folder.PowerDown(ctx)
			return d.describe(record, phase), nil
		}
	}
	if phase != vm.Running || now.Sub(record.Deleting) >= d.options.ShutdownGrace {
		if err := folder.Kill(); err != nil {
			return nil, explain(err)
		}
	}
	return d.describe(record, phase), nil
}

// ListMachines implements sdk.Lister.
func (d *Driver) ListMachines(_ context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	records, err := d.store.Records()
	if err != nil {
		return nil, explain(err)
	}
	var all []*driverv1alpha1.Machine
	for _, record := range records {
		if record.ClusterUID != r.GetMeta().GetClusterUid() {
			continue
		}
		phase, err := d.store.Folder(record.UID).Phase()
		if err != nil {
			return nil, explain(err)
		}
		all = append(all, d.describe(record, phase))
	}
	return sdk.Page(r, all)
}

// maxConsole bounds what of a console is told: contract.MaxConsoleBytes.
const maxConsole = 64 << 10

// GetConsoleOutput implements sdk.ConsoleReader.
func (d *Driver) GetConsoleOutput(_ context.Context, r *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
	record, _, err := d.find(r)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, notFound()
	}
	output, err := d.store.Folder(record.UID).Console(maxConsole)
	return output, explain(err)
}
