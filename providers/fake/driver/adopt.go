package driver

import (
	"context"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
	"github.com/millwright-dev/millwright/sdk"
)

var _ sdk.Adopter = (*Driver)(nil)

// AdoptMachine implements sdk.Adopter. The VM is marked last: until then the machine is not there,
// and a repeat begins anew.
func (d *Driver) AdoptMachine(ctx context.Context, r *driverv1alpha1.AdoptMachineRequest) (*driverv1alpha1.Machine, error) {
	scope := machineScope{cluster: r.GetMeta().GetClusterUid(), ref: r.GetMachine(), key: keyOf(r.GetProvider())}
	vms, account, err := d.vms(ctx, scope.key, nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(vms, func(vm *fakecloudv1alpha1.VM) bool { return vm.GetProviderId() == r.GetProviderId() })
	if i < 0 {
		return nil, notFound()
	}
	vm := vms[i]
	if err := adoptable(vm, vms, scope); err != nil {
		return nil, err
	}
	nics, err := d.nics(ctx, scope.key, nil)
	if err != nil {
		return nil, err
	}
	others, err := chosen(nics, r.GetResourceIds())
	if err != nil {
		return nil, err
	}
	for _, nic := range others {
		if err := d.setTags(ctx, scope, nic.GetId(), adopted(nic.GetTags(), r.GetFormerTags(), scope)); err != nil {
			return nil, err
		}
	}
	vm.Tags = adopted(vm.GetTags(), r.GetFormerTags(), scope)
	if err := d.setTags(ctx, scope, vm.GetId(), vm.GetTags()); err != nil {
		return nil, err
	}
	return (&ownedResources{account: account, vms: []*fakecloudv1alpha1.VM{vm}}).machine(), nil
}

// adoptable returns an error when the VM belongs to another machine, or the machine has another VM.
func adoptable(vm *fakecloudv1alpha1.VM, all []*fakecloudv1alpha1.VM, scope machineScope) error {
	if uid := vm.GetTags()[tags.Machine]; uid != "" && !isOwned(vm, scope) {
		return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN, "The vm belongs to the machine with the uid "+uid+".")
	}
	for _, other := range all {
		if isOwned(other, scope) && other.GetId() != vm.GetId() {
			return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN, "The machine has the vm "+other.GetId()+".")
		}
	}
	return nil
}

func isOwned(vm *fakecloudv1alpha1.VM, scope machineScope) bool {
	return vm.GetTags()[tags.Machine] == scope.uid() && vm.GetTags()[tags.Cluster] == scope.cluster
}

// chosen are the NICs with these ids; one that is not there is an error.
func chosen(nics []*fakecloudv1alpha1.NIC, ids []string) ([]*fakecloudv1alpha1.NIC, error) {
	var found []*fakecloudv1alpha1.NIC
	for _, id := range ids {
		i := slices.IndexFunc(nics, func(nic *fakecloudv1alpha1.NIC) bool { return nic.GetId() == id })
		if i < 0 {
			return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND, "There is no nic "+id+".")
		}
		found = append(found, nics[i])
	}
	return found, nil
}

// adopted are the tags of a resource that has become the machine's.
func adopted(before, former map[string]string, scope machineScope) map[string]string {
	now := scope.tags(before)
	for key, value := range former {
		if value == "" || value == before[key] {
			delete(now, key)
		}
	}
	return now
}

func (d *Driver) setTags(ctx context.Context, scope machineScope, id string, marks map[string]string) error {
	if _, err := d.cloud.SetTags(ctx, &fakecloudv1alpha1.SetTagsRequest{Key: scope.key, Id: id, Tags: marks}); err != nil {
		return translate(err)
	}
	return nil
}
