package driver

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/qemu/vm"
	"github.com/millwright-dev/millwright/sdk"
)

// aboutMachine is any request with a machine.
type aboutMachine interface {
	GetMeta() *driverv1alpha1.RequestMeta
	GetMachine() *driverv1alpha1.MachineRef
}

// aboutVM is one that also says which VM core knows.
type aboutVM interface {
	aboutMachine
	GetProviderId() string
}

// find returns what this host has of a request's machine, nil for nothing. What belongs to another
// cluster is nothing.
func (d *Driver) find(r aboutVM) (*vm.Record, vm.Phase, error) {
	if id := r.GetProviderId(); id != "" && !strings.HasPrefix(id, d.prefix()) {
		return nil, 0, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED,
			"The VM is one of another host, or the driver was given another state directory: this one is "+d.prefix()+".")
	}
	if !vm.IsUID(r.GetMachine().GetUid()) {
		return nil, 0, nil
	}
	record, phase, err := look(d.store.Folder(r.GetMachine().GetUid()))
	if err != nil || record == nil || record.ClusterUID != r.GetMeta().GetClusterUid() {
		return nil, 0, explain(err)
	}
	return record, phase, nameTaken(record, r)
}

// look returns the record of a folder, nil where there is none, and how far its VM is.
func look(folder vm.Folder) (*vm.Record, vm.Phase, error) {
	record, err := folder.Record()
	if err != nil || record == nil {
		return nil, 0, err
	}
	phase, err := folder.Phase()
	return record, phase, err
}

// isForeign says whether another cluster has a VM of the request's uid.
func (d *Driver) isForeign(r aboutVM) bool {
	record, err := d.store.Folder(r.GetMachine().GetUid()).Record()
	return err != nil || record != nil && record.ClusterUID != r.GetMeta().GetClusterUid()
}

// nameTaken returns an error where a VM was made for another machine than a request's.
func nameTaken(record *vm.Record, r aboutMachine) error {
	if record.ClusterUID != r.GetMeta().GetClusterUid() {
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN, "The uid belongs to a machine of another cluster.")
	}
	if record.Namespace != r.GetMachine().GetNamespace() || record.Name != r.GetMachine().GetName() {
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN,
			"The uid belongs to the machine "+record.Namespace+"/"+record.Name+".")
	}
	return nil
}

// explain puts what the host says into the contract's terms. What else goes wrong is
// PROVIDER_INTERNAL.
func explain(err error) error {
	switch {
	case errors.Is(err, vm.ErrBusy), errors.Is(err, vm.ErrPending):
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING, err.Error())
	case errors.Is(err, fs.ErrPermission):
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_PERMISSION_MISSING, err.Error())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_CAPACITY_UNAVAILABLE, err.Error())
	}
	return err
}
