package openstacksim

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// openBefore returns a cloud that stands before another one, with one who is logged in to it. The
// ids of what there is are the other's.
func openBefore(t *testing.T, behind *world) *world {
	t.Helper()
	w := open(t, Options{Upstream: &Upstream{
		IdentityEndpoint: behind.server.URL + "/v3", Region: "RegionOne", Administrator: "admin", Member: "demo", Password: Password,
	}})
	w.cloud = behind.cloud
	return w
}

func TestFaultsBeforeAnotherCloud(t *testing.T) {
	behind := serve(t, Options{})
	w := openBefore(t, behind)
	inject := func(effect backendv1alpha1.FaultEffect, operation string) {
		w.inject(&backendv1alpha1.Fault{
			Effect: effect, Times: 1, Match: &backendv1alpha1.FaultMatch{Operation: operation, MachineUid: "a"},
			Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, Message: words},
		})
	}
	inject(backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, api.CreatePort)
	if _, err := w.createPort("a"); err == nil {
		t.Error("a port was made that was to be refused")
	}
	if n := len(behind.held("a")); n != 0 {
		t.Errorf("%d things were made by a call that was refused", n)
	}
	inject(backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST, api.CreatePort)
	if _, err := w.createPort("a"); err == nil {
		t.Error("an answer arrived that was to be lost")
	}
	if n := len(behind.held("a")); n != 1 {
		t.Errorf("%d things were made by a call of which the answer was lost", n)
	}
	inject(backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS, "")
	p, err := w.createPort("b")
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.createServer("a", p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := servers.Get(t.Context(), w.compute, s.ID).Extract(); err != nil || got.Metadata["test-fault-words"] != words {
		t.Errorf("a server that is to fail: %v, %v", got, err)
	}
	calls, err := w.hooks.ListCalls(t.Context(), &backendv1alpha1.ListCallsRequest{MachineUid: "a", Operation: api.CreatePort})
	if err != nil || len(calls.GetCalls()) != 2 || calls.GetCalls()[0].GetDone() || !calls.GetCalls()[1].GetDone() {
		t.Errorf("the ledger: %v, %v", calls, err)
	}
	stale := &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE}
	if _, err := w.hooks.InjectFault(t.Context(), &backendv1alpha1.InjectFaultRequest{Fault: stale}); err == nil {
		t.Error("real lists can be told to be behind")
	}
}

// held are the things of a machine.
func (w *world) held(uid string) []*backendv1alpha1.Resource {
	w.Helper()
	found, err := w.hooks.ListResources(w.Context(), resourcesOf(uid))
	if err != nil {
		w.Fatalf("list resources: %v", err)
	}
	return found.GetResources()
}

func TestChangesBeforeAnotherCloud(t *testing.T) {
	behind := serve(t, Options{})
	w := openBefore(t, behind)
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{state.KindVM: 1}}); err != nil {
		t.Fatalf("set the quota: %v", err)
	}
	wanted := &backendv1alpha1.VM{Name: "stray", ClusterUid: cluster, MachineUid: "a", Tags: map[string]string{"colour": "red"}}
	made, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: wanted})
	if err != nil {
		t.Fatalf("make a VM: %v", err)
	}
	if vm := made.GetVm(); vm.GetMachineUid() != "a" || vm.GetClusterUid() != cluster || vm.GetTags()["colour"] != "red" {
		t.Errorf("made: %v", vm)
	}
	if _, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: "second"}}); err == nil {
		t.Error("there are more VMs than the quota lets there be")
	}
	for _, change := range []struct {
		what backendv1alpha1.VMChange
		want backendv1alpha1.VMState
	}{
		{backendv1alpha1.VMChange_VM_CHANGE_STOP, backendv1alpha1.VMState_VM_STATE_STOPPED},
		{backendv1alpha1.VMChange_VM_CHANGE_START, backendv1alpha1.VMState_VM_STATE_RUNNING},
		{backendv1alpha1.VMChange_VM_CHANGE_FAIL, backendv1alpha1.VMState_VM_STATE_STOPPED},
		{backendv1alpha1.VMChange_VM_CHANGE_START, backendv1alpha1.VMState_VM_STATE_RUNNING},
		{backendv1alpha1.VMChange_VM_CHANGE_DELETE, backendv1alpha1.VMState_VM_STATE_GONE},
	} {
		changed, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{Id: made.GetVm().GetProviderId(), Change: change.what})
		if err != nil || changed.GetVm().GetState() != change.want || changed.GetVm().GetMachineUid() != "a" {
			t.Errorf("%s: %v, %v", change.what, changed, err)
		}
	}
}
