package cloud

import (
	"cmp"
	"context"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
)

// ChangeVM implements the service.
func (h *hooks) ChangeVM(_ context.Context, r *backendv1alpha1.ChangeVMRequest) (*backendv1alpha1.ChangeVMResponse, error) {
	h.cloud.front.Lock()
	defer h.cloud.front.Unlock()
	v := h.cloud.store.anyVM(r.GetId())
	if v == nil {
		return nil, status.Error(codes.NotFound, "no VM has this id")
	}
	if r.GetChange() == backendv1alpha1.VMChange_VM_CHANGE_PRINT {
		v.Printed += r.GetMessage()
		return &backendv1alpha1.ChangeVMResponse{Vm: v.hooked()}, h.cloud.write(entry{VM: h.cloud.touch(v)})
	}
	state, ok := map[backendv1alpha1.VMChange]vmState{
		backendv1alpha1.VMChange_VM_CHANGE_DELETE: gone,
		backendv1alpha1.VMChange_VM_CHANGE_STOP:   stopped,
		backendv1alpha1.VMChange_VM_CHANGE_START:  running,
		backendv1alpha1.VMChange_VM_CHANGE_FAIL:   failed,
	}[r.GetChange()]
	if !ok {
		return nil, status.Error(codes.InvalidArgument, "change: must be set")
	}
	v.State, v.Due, v.Fault = state, time.Time{}, ""
	if state == failed {
		v.Fault = r.GetMessage()
	}
	err := h.cloud.write(h.cloud.settle(v))
	return &backendv1alpha1.ChangeVMResponse{Vm: v.hooked()}, err
}

// CreateForeignVM implements the service. The VM has a NIC with the same tags, and belongs to the
// account that is open to all.
func (h *hooks) CreateForeignVM(_ context.Context, r *backendv1alpha1.CreateForeignVMRequest) (*backendv1alpha1.CreateForeignVMResponse, error) {
	c, wanted := h.cloud, r.GetVm()
	c.front.Lock()
	defer c.front.Unlock()
	account := c.options.Accounts[""]
	marks := maps.Clone(wanted.GetTags())
	if marks == nil {
		marks = map[string]string{}
	}
	if wanted.GetClusterUid() != "" {
		marks[tags.Cluster] = wanted.GetClusterUid()
	}
	if wanted.GetMachineUid() != "" {
		marks[tags.Machine] = wanted.GetMachineUid()
		// As a driver would have it, unless the caller has another wish.
		marks[tags.Namespace] = cmp.Or(marks[tags.Namespace], "default")
		marks[tags.Name] = cmp.Or(marks[tags.Name], wanted.GetName())
	}
	n := &nic{record: c.store.newRecord(kindNIC, account)}
	v := &vm{record: c.store.newRecord(kindVM, account), State: running, Flavor: flavors[0], Image: images[0], Zone: zones[0]}
	if wanted.GetCreateTime() != nil {
		n.Created, v.Created = wanted.GetCreateTime().AsTime(), wanted.GetCreateTime().AsTime()
	}
	n.Name, v.Name = wanted.GetName(), wanted.GetName()
	n.Tags, v.Tags = marks, marks
	n.Address = addressOf(n)
	n.VM, v.NIC, v.Address = v.ID, n.ID, n.Address
	c.store.putNIC(n)
	c.store.putVM(v)
	err := c.write(entry{VM: c.touch(v), NIC: n})
	return &backendv1alpha1.CreateForeignVMResponse{Vm: v.hooked()}, err
}
