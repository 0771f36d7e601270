package driver_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/cloud"
)

func TestFromBirthToDeath(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	born := w.create("m1")
	if born.GetState() != running || born.GetProviderId() == "" || len(born.GetAddresses()) != 1 {
		t.Errorf("created %v", born)
	}
	if diff := cmp.Diff(born, w.status("m1"), protocmp.Transform()); diff != "" {
		t.Errorf("the status differs from what create answered:\n%s", diff)
	}
	if diff := cmp.Diff(born, w.list(0)["m1"], protocmp.Transform()); diff != "" {
		t.Errorf("the list differs from what create answered:\n%s", diff)
	}
	vms, err := w.hooks.ListVMs(t.Context(), &backendv1alpha1.ListVMsRequest{})
	if err != nil || len(vms.GetVms()) != 1 {
		t.Fatalf("the cloud's VMs: %v, %v", vms, err)
	}
	got := vms.GetVms()[0]
	if string(got.GetUserData()) != "\x00binary\xffm1" || got.GetProviderId() != born.GetProviderId() || got.GetTags()["team"] != "mill" ||
		got.GetClusterUid() != "cluster" || got.GetMachineUid() != "m1" || got.GetName() != "machine-m1" {
		t.Errorf("the VM as the cloud has it: %v", got)
	}
	if left := w.delete("m1"); left != nil {
		t.Errorf("after the delete: %v", left)
	}
	_, err = w.machines.GetMachineStatus(t.Context(), statusRequest("m1"))
	w.expectReason(err, codes.NotFound, "MACHINE_NOT_FOUND")
	w.expectCloud(1, 0)
}

func TestCreateAgainIsTheSameVM(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	first := w.create("m1")
	for range 10 {
		request := createRequest("m1")
		request.UserData = []byte("rotated")
		request.Provider.Secrets = map[string][]byte{"other": []byte("rotated")}
		again, err := w.machines.CreateMachine(t.Context(), request)
		if err != nil || again.GetMachine().GetProviderId() != first.GetProviderId() {
			t.Fatalf("again: %v, %v", again, err)
		}
	}
	w.expectCloud(1, 2)
}

func TestConcurrentCreatesOfTwoDriversMakeOneVM(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	drivers := []driverv1alpha1.MachineServiceClient{w.machines, w.anotherDriver()}
	ids := make([]string, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			answer, err := drivers[i%2].CreateMachine(t.Context(), createRequest("m1"))
			if err != nil {
				t.Errorf("create: %v", err)
			}
			ids[i] = answer.GetMachine().GetProviderId()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("different VMs: %v", ids)
		}
	}
	w.expectCloud(1, 2)
}

func TestConcurrentDeletesSucceed(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	w.create("m1")
	w.create("other")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = w.machines.DeleteMachine(t.Context(), deleteRequest("m1")) })
	}
	wg.Wait()
	if left := w.delete("m1"); left != nil {
		t.Errorf("left: %v", left)
	}
	w.expectCloud(2, 2)
}

func TestDeleteNeedsNothing(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	if left := w.delete("never-created"); left != nil {
		t.Errorf("left: %v", left)
	}
	w.create("m1")
	for range 2 {
		if left := w.delete("m1"); left != nil { // its request names no provider_id
			t.Errorf("left: %v", left)
		}
	}
	request := deleteRequest("m1")
	request.ProviderId, request.Provider = "fake:///fake-1a/vm-of-old", provider(`{"flavor":"no more","x":1}`)
	if _, err := w.machines.DeleteMachine(t.Context(), request); err != nil {
		t.Errorf("with a spec that is not valid any more: %v", err)
	}
}

func TestOneUIDOneVM(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	born := w.create("m1")
	w.change(born.GetProviderId(), backendv1alpha1.VMChange_VM_CHANGE_DELETE)
	if left := w.status("m1"); left.GetState() != failed || left.GetProviderId() != "" {
		t.Errorf("when the VM is gone: %v; its nic is left", left)
	}
	if again := w.create("m1"); again.GetState() != failed || again.GetReason() != "VMGone" {
		t.Errorf("created again: %v", again)
	}
	w.delete("m1")
	w.expectCloud(1, 0)
	if again := w.create("m1"); again.GetState() != failed || again.GetReason() != "VMGone" {
		t.Errorf("created again after the delete: %v", again)
	}
	w.delete("m1")
	w.expectCloud(1, 0)
}

func TestWhatBelongsToAnother(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	w.create("m1")
	w.Run("spec", func(*testing.T) {
		request := createRequest("m1")
		request.Provider = provider(`{"flavor":"large","image":"ubuntu-24.04","zone":"fake-1b"}`)
		_, err := w.machines.CreateMachine(t.Context(), request)
		w.expectReason(err, codes.AlreadyExists, "SPEC_CONFLICT")
	})
	w.Run("name", func(*testing.T) {
		other := &driverv1alpha1.MachineRef{Namespace: "default", Name: "another", Uid: "m1"}
		create, get, remove := createRequest("m1"), statusRequest("m1"), deleteRequest("m1")
		create.Machine, get.Machine, remove.Machine = other, other, other
		_, err := w.machines.CreateMachine(t.Context(), create)
		w.expectReason(err, codes.AlreadyExists, "NAME_TAKEN")
		_, err = w.machines.GetMachineStatus(t.Context(), get)
		w.expectReason(err, codes.AlreadyExists, "NAME_TAKEN")
		_, err = w.machines.DeleteMachine(t.Context(), remove)
		w.expectReason(err, codes.AlreadyExists, "NAME_TAKEN")
	})
	w.Run("cluster", func(*testing.T) {
		request := deleteRequest("m1")
		request.Meta.ClusterUid = "other"
		if _, err := w.machines.DeleteMachine(t.Context(), request); err != nil {
			t.Errorf("delete for another cluster: %v", err)
		}
		if got := w.status("m1"); got.GetState() != running {
			t.Errorf("after another cluster's delete: %v", got)
		}
	})
	w.expectCloud(1, 2)
}

func TestDuplicateVMsAreReported(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	young := w.create("m1")
	old, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: "machine-m1", ClusterUid: "cluster", MachineUid: "m1", CreateTime: timestamppb.New(time.Unix(1e9, 0)),
	}})
	if err != nil {
		t.Fatalf("create foreign VM: %v", err)
	}
	for name, got := range map[string]*driverv1alpha1.Machine{"status": w.status("m1"), "list": w.list(1)["m1"]} {
		if got.GetProviderId() != old.GetVm().GetProviderId() || !cmp.Equal(got.GetDuplicateProviderIds(), []string{young.GetProviderId()}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	w.delete("m1")
	w.expectCloud(2, 0)
}

func TestStates(t *testing.T) {
	w := newWorld(t, cloud.Options{BootLatency: time.Hour, DeleteLatency: time.Hour})
	m := w.create("m1")
	if m.GetState() != creating || m.GetOperation().GetPollAfter().AsDuration() <= 0 {
		t.Errorf("while it boots: %v", m)
	}
	for _, step := range []struct {
		change backendv1alpha1.VMChange
		want   driverv1alpha1.MachineState
	}{
		{backendv1alpha1.VMChange_VM_CHANGE_START, running},
		{backendv1alpha1.VMChange_VM_CHANGE_STOP, stopped},
		{backendv1alpha1.VMChange_VM_CHANGE_FAIL, failed},
	} {
		w.change(m.GetProviderId(), step.change)
		got := w.status("m1")
		if got.GetState() != step.want || got.GetProviderId() != m.GetProviderId() {
			t.Errorf("after %v: %v", step.change, got)
		}
		if step.want == failed && (got.GetMessage() != "host burnt" || got.GetReason() != "VMFailed") {
			t.Errorf("not in the cloud's words: %v", got)
		}
	}
	for range 2 { // the second one asks the cloud for nothing more
		if left := w.delete("m1"); left.GetState() != deleting || left.GetOperation() == nil {
			t.Errorf("while it goes: %v", left)
		}
	}
	w.change(m.GetProviderId(), backendv1alpha1.VMChange_VM_CHANGE_DELETE)
	if left := w.delete("m1"); left != nil {
		t.Errorf("when it is gone: %v", left)
	}
	w.expectCloud(1, 0)
}

// The cloud is read once for a list, however many pages the list has.
func TestPagesOfAListAreReadOnce(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	for _, uid := range []string{"a", "b", "c"} {
		w.create(uid)
	}
	reads := func() int {
		calls, err := w.hooks.ListCalls(t.Context(), &backendv1alpha1.ListCallsRequest{Operation: "ListVMs"})
		if err != nil {
			t.Fatalf("ask for the ledger: %v", err)
		}
		return len(calls.GetCalls())
	}
	for range 2 {
		before := reads()
		if got := w.list(1); len(got) != 3 {
			t.Errorf("%d machines are listed, want 3", len(got))
		}
		if n := reads() - before; n != 1 {
			t.Errorf("a list of three pages read the cloud's VMs %d times, want once", n)
		}
	}
}

func TestListHoldsThisClusterOnce(t *testing.T) {
	w := newWorld(t, cloud.Options{})
	for _, uid := range []string{"c", "a", "e", "b", "d"} {
		w.create(uid)
	}
	foreign := createRequest("foreign")
	foreign.Meta.ClusterUid = "other"
	if _, err := w.machines.CreateMachine(t.Context(), foreign); err != nil {
		t.Fatalf("create for another cluster: %v", err)
	}
	if _, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{Name: "stranger"}}); err != nil {
		t.Fatalf("create foreign VM: %v", err)
	}
	for _, size := range []int32{0, 1, 2, 5, 100} {
		if got := w.list(size); len(got) != 5 || got["foreign"] != nil {
			t.Errorf("pages of %d: %v", size, got)
		}
	}
	for _, token := range []string{"x", "after:", "after:?"} {
		_, err := w.machines.ListMachines(t.Context(), &driverv1alpha1.ListMachinesRequest{Meta: meta(), Provider: provider("{}"), PageToken: token})
		w.expectReason(err, codes.InvalidArgument, "PAGE_TOKEN_EXPIRED")
	}
}
