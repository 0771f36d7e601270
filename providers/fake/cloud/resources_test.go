package cloud

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
)

func TestCreateIsOncePerToken(t *testing.T) {
	w := open(t, Options{})
	first := w.create("m1")
	if again := w.create("m1"); again.GetId() != first.GetId() {
		t.Errorf("a repeated create made %s beside %s", again.GetId(), first.GetId())
	}
	w.delete(first.GetId())
	nic := w.createNIC("m1")
	again, err := w.api.CreateVM(t.Context(), vmRequest("m1", nic.GetId()))
	if err != nil {
		t.Fatalf("repeat after delete: %v", err)
	}
	if again.GetVm().GetId() != first.GetId() || again.GetVm().GetState() != gone {
		t.Errorf("a repeated create after the delete answered %v, not the VM that is gone", again.GetVm())
	}
	other := vmRequest("m1", nic.GetId())
	other.Flavor = "large"
	if _, err := w.api.CreateVM(t.Context(), other); said(err).GetCode() != fakecloudv1alpha1.ErrorCode_ERROR_CODE_TOKEN_MISMATCH {
		t.Errorf("another request with the same token: %v", err)
	}
	if got := w.totals(); got.GetVmsCreated() != 1 || got.GetVmsDeleted() != 1 || got.GetVmsPeak() != 1 {
		t.Errorf("totals %v", got)
	}
}

func TestConcurrentCreatesMakeOne(t *testing.T) {
	w := open(t, Options{})
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() { ids[i] = w.create("m1").GetId() })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("different answers: %v", ids)
			break
		}
	}
	if got := w.totals(); got.GetVmsCreated() != 1 || got.GetResourcesLeft() != 2 {
		t.Errorf("20 creates of one token: %v", got)
	}
}

func TestWhatTheCloudRefuses(t *testing.T) {
	w := open(t, Options{Accounts: map[string]string{"key-of-b": "b"}})
	used, free := w.create("used"), w.createNIC("free")
	for _, test := range []struct {
		name   string
		change func(*fakecloudv1alpha1.CreateVMRequest)
		want   fakecloudv1alpha1.ErrorCode
	}{
		{"flavor", func(r *fakecloudv1alpha1.CreateVMRequest) { r.Flavor = "huge" }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY},
		{"image", func(r *fakecloudv1alpha1.CreateVMRequest) { r.Image = "" }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY},
		{"zone", func(r *fakecloudv1alpha1.CreateVMRequest) { r.Zone = "moon" }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_DEPENDENCY},
		{"nic", func(r *fakecloudv1alpha1.CreateVMRequest) { r.NicId = "none" }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_RESOURCE},
		{"used nic", func(r *fakecloudv1alpha1.CreateVMRequest) { r.NicId = used.GetNicId() }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_IN_USE},
		{"other account's nic", func(r *fakecloudv1alpha1.CreateVMRequest) { r.Key = "key-of-b" }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_NO_SUCH_RESOURCE},
		{"key", func(r *fakecloudv1alpha1.CreateVMRequest) { r.Key = "wrong" }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_UNAUTHORIZED},
		{"user data", func(r *fakecloudv1alpha1.CreateVMRequest) { r.UserData = make([]byte, maxUserData+1) }, fakecloudv1alpha1.ErrorCode_ERROR_CODE_BAD_REQUEST},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := vmRequest("free", free.GetId())
			test.change(request)
			if _, err := w.api.CreateVM(t.Context(), request); said(err).GetCode() != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	if _, err := w.api.DeleteNIC(t.Context(), &fakecloudv1alpha1.DeleteNICRequest{Id: used.GetNicId()}); said(err).GetCode() != fakecloudv1alpha1.ErrorCode_ERROR_CODE_IN_USE {
		t.Errorf("delete of a nic in use: %v", err)
	}
	if got := w.totals().GetVmsCreated(); got != 1 {
		t.Errorf("%d VMs were made, refused ones among them", got)
	}
}

func TestQuotaCountsWhatExists(t *testing.T) {
	w := open(t, Options{Quota: map[string]int64{"vm": 1}})
	first := w.create("m1")
	request := vmRequest("m2", w.createNIC("m2").GetId())
	_, err := w.api.CreateVM(t.Context(), request)
	if said(err).GetCode() != fakecloudv1alpha1.ErrorCode_ERROR_CODE_QUOTA_EXCEEDED {
		t.Fatalf("beyond the quota: %v", err)
	}
	w.delete(first.GetId())
	if _, err := w.api.CreateVM(t.Context(), request); err != nil {
		t.Errorf("after a delete: %v", err)
	}
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": -1}}); err != nil {
		t.Fatalf("lift quota: %v", err)
	}
	w.create("m3")
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vms": 1}}); err == nil {
		t.Error("a quota of an unknown kind was taken")
	}
}

func TestBootAndDeleteTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, Options{BootLatency: 3 * time.Second, DeleteLatency: 2 * time.Second})
		v := w.create("m1")
		w.expect(v.GetId(), building)
		elapse(2999 * time.Millisecond)
		w.expect(v.GetId(), building)
		elapse(time.Millisecond)
		w.expect(v.GetId(), running)
		if got := w.delete(v.GetId()); got.GetState() != deleting {
			t.Errorf("delete answered %v", got.GetState())
		}
		elapse(2 * time.Second)
		w.expect(v.GetId(), gone)
		if got := w.totals(); got.GetResourcesLeft() != 1 || got.GetVmsDeleted() != 1 {
			t.Errorf("after the delete: %v; the nic stays, the vm does not", got)
		}
	})
}

// A VM that is deleted while it boots does not come up again.
func TestDeleteWhileBuilding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, Options{BootLatency: 2 * time.Second, DeleteLatency: 5 * time.Second})
		v := w.create("m1")
		w.delete(v.GetId())
		elapse(3 * time.Second)
		w.expect(v.GetId(), deleting)
		elapse(2 * time.Second)
		w.expect(v.GetId(), gone)
	})
}

// expect checks the state of a VM as tests see it.
func (w *world) expect(id string, want vmState) {
	w.Helper()
	for _, v := range w.vms(0) {
		if v.GetId() == id {
			if v.GetState() != backendv1alpha1.VMState(want) {
				w.Errorf("%s is %v, want %v", id, v.GetState(), want)
			}
			return
		}
	}
	w.Errorf("%s is unknown", id)
}

func TestPagesAreNoLongerThanTheCloudHasThem(t *testing.T) {
	w := open(t, Options{Page: 2})
	for _, uid := range []string{"m1", "m2", "m3"} {
		w.create(uid)
	}
	vms, err := w.api.ListVMs(t.Context(), &fakecloudv1alpha1.ListVMsRequest{PageSize: 1000})
	if err != nil || len(vms.GetVms()) != 2 || vms.GetNextPageToken() == "" {
		t.Errorf("a page of the VMs is %v (%v)", vms, err)
	}
	nics, err := w.api.ListNICs(t.Context(), &fakecloudv1alpha1.ListNICsRequest{})
	if err != nil || len(nics.GetNics()) != 2 || nics.GetNextPageToken() == "" {
		t.Errorf("a page of the NICs is %v (%v)", nics, err)
	}
}

func TestListsPageAndFilter(t *testing.T) {
	w := open(t, Options{})
	want := make([]string, 0, 25)
	for i := range 25 {
		want = append(want, w.create(fmt.Sprintf("m%02d", i)).GetId())
	}
	var got []string
	for token := ""; ; {
		page, err := w.api.ListVMs(t.Context(), &fakecloudv1alpha1.ListVMsRequest{
			Tags: map[string]string{"millwright-cluster": "cluster"}, PageSize: 10, PageToken: token,
		})
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		for _, v := range page.GetVms() {
			got = append(got, v.GetId())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	one, err := w.api.ListVMs(t.Context(), &fakecloudv1alpha1.ListVMsRequest{Tags: marks("m07")})
	if err != nil || len(one.GetVms()) != 1 || one.GetVms()[0].GetId() != want[7] {
		t.Errorf("one machine: %v, %v", one, err)
	}
	none, err := w.api.ListNICs(t.Context(), &fakecloudv1alpha1.ListNICsRequest{Tags: marks("other")})
	if err != nil || len(none.GetNics()) != 0 {
		t.Errorf("another machine: %v, %v", none, err)
	}
	if _, err := w.api.ListVMs(t.Context(), &fakecloudv1alpha1.ListVMsRequest{PageToken: "moon"}); said(err).GetCode() != fakecloudv1alpha1.ErrorCode_ERROR_CODE_PAGE_TOKEN_UNKNOWN {
		t.Errorf("unknown token: %v", err)
	}
}

func TestChangesFromOutside(t *testing.T) {
	w := open(t, Options{})
	v := w.create("m1")
	change := func(id string, c backendv1alpha1.VMChange, message string) {
		t.Helper()
		if _, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{Id: id, Change: c, Message: message}); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	change(v.GetId(), backendv1alpha1.VMChange_VM_CHANGE_STOP, "")
	w.expect(v.GetId(), stopped)
	change(v.GetProviderId(), backendv1alpha1.VMChange_VM_CHANGE_START, "")
	w.expect(v.GetId(), running)
	change(v.GetId(), backendv1alpha1.VMChange_VM_CHANGE_FAIL, "host burnt")
	w.expect(v.GetId(), failed)
	change(v.GetId(), backendv1alpha1.VMChange_VM_CHANGE_DELETE, "")
	w.expect(v.GetId(), gone)
	last := w.vms(0)[0]
	if last.GetUserData() != nil || last.GetDeleteTime() == nil {
		t.Errorf("the VM that is gone: %v", last)
	}
	if _, err := w.hooks.ChangeVM(t.Context(), &backendv1alpha1.ChangeVMRequest{Id: v.GetId(), Change: backendv1alpha1.VMChange_VM_CHANGE_START}); err == nil {
		t.Error("a VM that is gone was started")
	}
	foreign, err := w.hooks.CreateForeignVM(t.Context(), &backendv1alpha1.CreateForeignVMRequest{
		Vm: &backendv1alpha1.VM{Name: "stranger", ClusterUid: "other", Tags: map[string]string{"a": "b"}},
	})
	if err != nil || foreign.GetVm().GetClusterUid() != "other" || foreign.GetVm().GetMachineUid() != "" || foreign.GetVm().GetTags()["a"] != "b" {
		t.Errorf("foreign VM %v, %v", foreign, err)
	}
}

func TestListVMsWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, Options{BootLatency: time.Hour})
		v := w.create("m1")
		seen := w.vms(0)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		begin := time.Now()
		answer, err := w.hooks.ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: seen[0].GetRevision(), Wait: hours(10)})
		if err != nil || len(answer.GetVms()) != 1 || answer.GetVms()[0].GetId() != v.GetId() {
			t.Fatalf("got %v, %v", answer, err)
		}
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("the change was told after %v, and came after 1h", took)
		}
		if answer, err := w.hooks.ListVMs(t.Context(), &backendv1alpha1.ListVMsRequest{AfterRevision: answer.GetVms()[0].GetRevision(), Wait: hours(1)}); err != nil || len(answer.GetVms()) != 0 {
			t.Errorf("without a change: %v, %v", answer, err)
		}
	})
}
