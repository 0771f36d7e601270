package arena

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/uuid"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// cloud is the test cloud, as its hooks show and change it.
type cloud struct {
	backend    backendv1alpha1.BackendServiceClient
	clusterUID string
	record     *record
	// effects are what the cloud can be told to do wrong.
	effects []backendv1alpha1.FaultEffect
	// vmRevision and callRevision are how far the ledger was read.
	vmRevision, callRevision int64
}

// vms returns those of this cluster that there are, by name.
func (c *cloud) vms(ctx context.Context) ([]*backendv1alpha1.VM, error) {
	var found []*backendv1alpha1.VM
	var after int64
	for more := true; more; {
		page, err := c.backend.ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: after, ClusterUid: c.clusterUID})
		if err != nil {
			return nil, fmt.Errorf("list the cloud's VMs: %w", err)
		}
		for _, vm := range page.GetVms() {
			after = max(after, vm.GetRevision())
			if vm.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
				found = append(found, vm)
			}
		}
		more = page.GetMore()
	}
	slices.SortFunc(found, func(a, b *backendv1alpha1.VM) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found, nil
}

// injectFault has the cloud misbehave.
func (c *cloud) injectFault(ctx context.Context, fault *backendv1alpha1.Fault) error {
	_, err := c.backend.InjectFault(ctx, &backendv1alpha1.InjectFaultRequest{Fault: fault})
	return err
}

// setQuota limits the VMs in the cloud; a negative limit is none.
func (c *cloud) setQuota(ctx context.Context, vms int64) error {
	_, err := c.backend.SetQuota(ctx, &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": vms}})
	return err
}

// limit leaves room for so many more VMs than there are.
func (c *cloud) limit(ctx context.Context, more int) error {
	held, err := c.vms(ctx)
	if err != nil {
		return err
	}
	return c.setQuota(ctx, int64(len(held)+more))
}

// changeVM does something to one of the VMs that run.
func (c *cloud) changeVM(ctx context.Context, s plan.Step) error {
	vms, err := c.vms(ctx)
	if err != nil {
		return err
	}
	vms = slices.DeleteFunc(vms, func(vm *backendv1alpha1.VM) bool { return vm.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING })
	if len(vms) == 0 {
		return nil
	}
	return c.change(ctx, vms[s.Number%len(vms)], s.Change)
}

// change does something to a VM, which may be gone by now.
func (c *cloud) change(ctx context.Context, vm *backendv1alpha1.VM, change backendv1alpha1.VMChange) error {
	c.record.noteNow(judge.Changed, vm.GetId())
	_, err := c.backend.ChangeVM(ctx, &backendv1alpha1.ChangeVMRequest{Id: vm.GetId(), Change: change, Message: "The host is broken."})
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition:
		// It is gone, or in the middle of something.
		return nil
	}
	return err
}

// strayPrefix begins the machineUID of each stray.
const strayPrefix = "stray-"

// makeStray makes a VM of this cluster that is no Machine's.
func (c *cloud) makeStray(ctx context.Context) error {
	name := strayPrefix + string(uuid.NewUUID())
	made, err := c.backend.CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: name, ClusterUid: c.clusterUID, MachineUid: name,
	}})
	if err != nil {
		return err
	}
	c.record.noteNow(judge.Planted, made.GetVm().GetId())
	return nil
}

// putRight ends faults and quotas, and starts the VMs that somebody stopped.
func (c *cloud) putRight(ctx context.Context) error {
	if _, err := c.backend.RemoveFaults(ctx, &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		return fmt.Errorf("end the cloud's faults: %w", err)
	}
	if err := c.setQuota(ctx, -1); err != nil {
		return err
	}
	vms, err := c.vms(ctx)
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if vm.GetState() == backendv1alpha1.VMState_VM_STATE_STOPPED {
			if err := c.change(ctx, vm, backendv1alpha1.VMChange_VM_CHANGE_START); err != nil {
				return err
			}
		}
	}
	return nil
}

// readLedger adds the VMs and calls that changed since the last time, and all that the cloud holds.
func (c *cloud) readLedger(ctx context.Context, h *judge.History) error {
	for more := true; more; {
		page, err := c.backend.ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: c.vmRevision})
		if err != nil {
			return fmt.Errorf("read the cloud's VMs: %w", err)
		}
		for _, vm := range page.GetVms() {
			c.vmRevision = max(c.vmRevision, vm.GetRevision())
			vm.UserData = nil
		}
		h.VMs, more = append(h.VMs, page.GetVms()...), page.GetMore()
	}
	for more := true; more; {
		page, err := c.backend.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{AfterRevision: c.callRevision})
		if err != nil {
			return fmt.Errorf("read the cloud's ledger: %w", err)
		}
		for _, call := range page.GetCalls() {
			c.callRevision = max(c.callRevision, call.GetRevision())
		}
		h.Calls, more = append(h.Calls, page.GetCalls()...), page.GetMore()
	}
	var err error
	h.Resources, err = c.resources(ctx, "")
	return err
}

// resources are all that the cloud holds of a cluster; of all, with an empty clusterUID.
func (c *cloud) resources(ctx context.Context, clusterUID string) ([]*backendv1alpha1.Resource, error) {
	held, err := c.backend.ListResources(ctx, &backendv1alpha1.ListResourcesRequest{ClusterUid: clusterUID})
	if err != nil {
		return nil, fmt.Errorf("ask the cloud what it holds: %w", err)
	}
	return held.GetResources(), nil
}

// holds counts what the cloud holds of this cluster, by kind. Strays that are too young to go do
// not count; at the end of a campaign they are to be gone as well.
func (c *cloud) holds(ctx context.Context, atEnd bool) (map[string]int, error) {
	held, err := c.resources(ctx, c.clusterUID)
	if err != nil {
		return nil, err
	}
	have := map[string]int{}
	for _, r := range held {
		if atEnd || !strings.HasPrefix(r.GetMachineUid(), strayPrefix) {
			have[r.GetKind()]++
		}
	}
	return have, nil
}
