package conformance

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// cloud is the test cloud behind the driver, as a check sees it through the cloud's hooks. Where
// the hooks fail, the check ends.
type cloud struct {
	t *trial
	// backend is nil where the cloud serves no hooks.
	backend backendv1alpha1.BackendServiceClient
}

// info says which calls and faults the cloud knows.
func (c *cloud) info(ctx context.Context) *backendv1alpha1.GetBackendInfoResponse {
	info, err := c.backend.GetBackendInfo(ctx, &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		c.t.fatalf("the cloud's hooks: %v", err)
	}
	return info
}

// operations are the mutating calls of the cloud that a create and a delete make.
func (c *cloud) operations(ctx context.Context) (create, remove []string) {
	info := c.info(ctx)
	if len(info.GetCreateOperations()) == 0 || len(info.GetDeleteOperations()) == 0 {
		c.t.notRun("the cloud's hooks do not tell which calls a create and a delete make")
	}
	return info.GetCreateOperations(), info.GetDeleteOperations()
}

// inject has the cloud misbehave for one machine until the check ends.
func (c *cloud) inject(ctx context.Context, m *machine, fault *backendv1alpha1.Fault) {
	if fault.GetMatch() == nil {
		fault.Match = &backendv1alpha1.FaultMatch{}
	}
	fault.Match.MachineUid = m.ref.GetUid()
	if _, err := c.backend.InjectFault(ctx, &backendv1alpha1.InjectFaultRequest{Fault: fault}); err != nil {
		c.t.fatalf("the cloud's hooks: inject a fault: %v", err)
	}
}

// injectOnce has the next call of an operation for the machine misbehave.
func (c *cloud) injectOnce(ctx context.Context, m *machine, operation string, fault *backendv1alpha1.Fault) {
	fault.Match, fault.Times = &backendv1alpha1.FaultMatch{Operation: operation}, 1
	c.inject(ctx, m, fault)
}

// strikeLimit is how long it may take until a call meets a fault that waits for it.
const strikeLimit = 10 * time.Second

// awaitFault waits until a call for the machine that met a fault is as wanted.
func (c *cloud) awaitFault(ctx context.Context, m *machine, wanted func(*backendv1alpha1.Call) bool) {
	began := time.Now()
	for revision := int64(0); ; {
		answer, err := c.backend.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{
			AfterRevision: revision, Wait: durationpb.New(time.Second), MachineUid: m.ref.GetUid(),
		})
		if err != nil {
			c.t.fatalf("the cloud's hooks: list the calls: %v", err)
		}
		for _, one := range answer.GetCalls() {
			if len(one.GetFaultIds()) > 0 && wanted(one) {
				return
			}
			revision = max(revision, one.GetRevision())
		}
		if time.Since(began) > strikeLimit {
			c.t.fatalf("waited %s in vain for the call of the cloud that the fault strikes to get further", strikeLimit)
		}
	}
}

// ended says whether the cloud is done with a call. A call whose caller has gone can still take
// effect.
func ended(c *backendv1alpha1.Call) bool { return c.GetAnswerTime() != nil }

// hold begins what begin does, and returns when the cloud holds the operation at the point. wait
// returns when it has ended, and how.
func (c *cloud) hold(ctx context.Context, m *machine, at place, begin func(context.Context) error) (wait func() error) {
	c.injectOnce(ctx, m, at.operation, &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Point: at.point})
	ended := make(chan error, 1)
	go func() { ended <- begin(unjudged(ctx)) }()
	done := at.point == backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
	c.awaitFault(ctx, m, func(call *backendv1alpha1.Call) bool { return call.GetDone() == done })
	return func() error { return <-ended }
}

// removeFaults takes away what the check had the cloud do.
func (c *cloud) removeFaults(ctx context.Context) {
	if c.backend == nil {
		return
	}
	if _, err := c.backend.RemoveFaults(ctx, &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		c.t.errorf("the cloud's hooks: remove the faults: %v", err)
	}
}

// vms returns what VMs the cloud has of a machine.
func (c *cloud) vms(ctx context.Context, m *machine) []*backendv1alpha1.VM {
	answer, err := c.backend.ListVMs(ctx, &backendv1alpha1.ListVMsRequest{ClusterUid: m.cluster})
	if err != nil {
		c.t.fatalf("the cloud's hooks: list the VMs: %v", err)
	}
	return slices.DeleteFunc(answer.GetVms(), func(v *backendv1alpha1.VM) bool {
		return v.GetMachineUid() != m.ref.GetUid() || v.GetState() == backendv1alpha1.VMState_VM_STATE_GONE
	})
}

// vmsNamed returns the VMs of a machine, and those that only look like its own.
func (c *cloud) vmsNamed(ctx context.Context, m *machine) []*backendv1alpha1.VM {
	answer, err := c.backend.ListVMs(ctx, &backendv1alpha1.ListVMsRequest{ClusterUid: m.cluster})
	if err != nil {
		c.t.fatalf("the cloud's hooks: list the VMs: %v", err)
	}
	return slices.DeleteFunc(answer.GetVms(), func(v *backendv1alpha1.VM) bool {
		return v.GetName() != m.ref.GetName() && v.GetMachineUid() != m.ref.GetUid() || v.GetState() == backendv1alpha1.VMState_VM_STATE_GONE
	})
}

// all returns every resource that the cloud has, whoever owns it, by kind and id.
func (c *cloud) all(ctx context.Context) map[string]*backendv1alpha1.Resource {
	answer, err := c.backend.ListResources(ctx, &backendv1alpha1.ListResourcesRequest{})
	if err != nil {
		c.t.fatalf("the cloud's hooks: list the resources: %v", err)
	}
	found := map[string]*backendv1alpha1.Resource{}
	for _, one := range answer.GetResources() {
		found[one.GetKind()+"/"+one.GetId()] = one
	}
	return found
}

// countResources counts what resources the cloud has of a machine.
func (c *cloud) countResources(ctx context.Context, m *machine) int {
	answer, err := c.backend.ListResources(ctx, &backendv1alpha1.ListResourcesRequest{ClusterUid: m.cluster, MachineUid: m.ref.GetUid()})
	if err != nil {
		c.t.fatalf("the cloud's hooks: list the resources: %v", err)
	}
	return len(answer.GetResources())
}

// countCalls counts the calls of operations that the cloud got for a machine.
func (c *cloud) countCalls(ctx context.Context, m *machine, operations []string) int {
	answer, err := c.backend.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{MachineUid: m.ref.GetUid()})
	if err != nil {
		c.t.fatalf("the cloud's hooks: list the calls: %v", err)
	}
	n := 0
	for _, one := range answer.GetCalls() {
		if slices.Contains(operations, one.GetOperation()) {
			n++
		}
	}
	return n
}

// countAllCalls counts the calls of the cloud's own API.
func (c *cloud) countAllCalls(ctx context.Context) int64 {
	totals, err := c.backend.GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		c.t.fatalf("the cloud's hooks: %v", err)
	}
	n := int64(0)
	for _, calls := range totals.GetCalls() {
		n += calls
	}
	return n
}

// changeVM does something to the machine's VM that the driver has no part in.
func (c *cloud) changeVM(ctx context.Context, m *machine, change backendv1alpha1.VMChange) {
	vms := c.vms(ctx, m)
	if len(vms) != 1 {
		c.t.fatalf("the cloud has %d VMs of the machine, want 1", len(vms))
	}
	_, err := c.backend.ChangeVM(ctx, &backendv1alpha1.ChangeVMRequest{Id: vms[0].GetId(), Change: change, Message: words})
	if err != nil {
		c.t.fatalf("the cloud's hooks: change the VM: %v", err)
	}
}

// foreignVM makes a VM as another system would, and returns what the cloud says of it.
func (c *cloud) foreignVM(ctx context.Context, name string, tags map[string]string) *backendv1alpha1.VM {
	answer, err := c.backend.CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: name, Tags: tags}})
	if err != nil {
		c.t.notApplicable("the cloud's hooks cannot make a VM of another system: " + err.Error())
	}
	return answer.GetVm()
}

// hasResource says whether the cloud has a resource of that id, of whatever kind.
func (c *cloud) hasResource(ctx context.Context, id string) bool {
	for _, one := range c.all(ctx) {
		if one.GetId() == id {
			return true
		}
	}
	return false
}

// removeVM has a VM go that the harness has made without the driver.
func (c *cloud) removeVM(ctx context.Context, vm *backendv1alpha1.VM) {
	_, err := c.backend.ChangeVM(ctx, &backendv1alpha1.ChangeVMRequest{Id: vm.GetId(), Change: backendv1alpha1.VMChange_VM_CHANGE_DELETE})
	if err != nil {
		c.t.fatalf("the cloud's hooks: delete the VM that they made: %v", err)
	}
}
