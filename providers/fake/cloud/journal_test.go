package cloud

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// picture is all that tests can see of a cloud.
func (w *world) picture() map[string]any {
	w.Helper()
	calls, err := w.hooks.ListCalls(w.Context(), &backendv1alpha1.ListCallsRequest{})
	if err != nil {
		w.Fatalf("list calls: %v", err)
	}
	resources, err := w.hooks.ListResources(w.Context(), &backendv1alpha1.ListResourcesRequest{})
	if err != nil {
		w.Fatalf("list resources: %v", err)
	}
	return map[string]any{"vms": w.vms(0), "calls": calls.GetCalls(), "resources": resources.GetResources(), "totals": w.totals()}
}

// kill leaves the cloud as kill -9 would: its journal is not closed, and nothing more is written.
func (w *world) kill() { _ = w.cloud.journal.Close() }

func TestJournalBringsEverythingBack(t *testing.T) {
	path := journalPath(t)
	w := open(t, Options{Journal: path})
	for i := range 5 {
		w.create(fmt.Sprintf("m%d", i))
	}
	w.delete(w.vms(0)[1].GetId())
	if _, err := w.hooks.SetQuota(t.Context(), &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": 4}}); err != nil {
		t.Fatalf("set quota: %v", err)
	}
	want := w.picture()
	w.kill()
	for generation := range 3 { // the first reads a journal that grew, the others one that was written anew
		again := open(t, Options{Journal: path})
		if diff := cmp.Diff(want, again.picture(), protocmp.Transform()); diff != "" {
			t.Fatalf("generation %d (-before +after):\n%s", generation, diff)
		}
		again.kill()
	}
	again := open(t, Options{Journal: path})
	if got := again.cloud.store.quota["vm"]; got != 4 {
		t.Errorf("quota %d, want 4", got)
	}
	if one := again.create("m0"); one.GetId() != want["vms"].([]*backendv1alpha1.VM)[0].GetId() {
		t.Errorf("a token was forgotten: %v", one)
	}
	next := again.vms(0)
	if last := next[len(next)-1].GetRevision(); last != 6 {
		t.Errorf("revisions went on at %d, want 6: nothing has changed", last)
	}
}

func TestTornLineIsForgotten(t *testing.T) {
	path := journalPath(t)
	w := open(t, Options{Journal: path})
	w.create("m1")
	want := w.picture()
	w.kill()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"vm":{"seq":99,"id":"vm-to`); err != nil {
		t.Fatal(err)
	}
	file.Close()
	again := open(t, Options{Journal: path})
	if diff := cmp.Diff(want, again.picture(), protocmp.Transform()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestBrokenJournalIsRefused(t *testing.T) {
	path := journalPath(t)
	if err := os.WriteFile(path, []byte("not a journal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Journal: path}); err == nil {
		t.Error("opened")
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "not a journal\n" {
		t.Errorf("it was touched: %q, %v", content, err)
	}
}

// A call under way when the cloud is killed is abandoned; what it had done stays done. A boot goes
// on.
func TestKilledInTheMiddle(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		w := open(t, Options{Journal: path, BootLatency: time.Hour})
		v := w.create("m1")
		w.kill()
		again := open(t, Options{Journal: path, BootLatency: time.Hour})
		again.expect(v.GetId(), building)
		elapse(time.Hour)
		again.expect(v.GetId(), running)
	})
	w := open(t, Options{Journal: path})
	w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Point: testcloud.AfterEffect})
	go w.createNICQuietly("m2")
	w.await(at(opCreateNIC, testcloud.Done))
	w.kill()
	again := open(t, Options{Journal: path})
	one := again.await(func(c *backendv1alpha1.Call) bool { return c.GetMachineUid() == "m2" })
	if one.GetProgress() != testcloud.Abandoned || !one.GetDone() {
		t.Errorf("after the kill: %v", one)
	}
	if got := again.totals().GetResourcesLeft(); got != 3 {
		t.Errorf("%d resources, want 3", got)
	}
}

func (w *world) createNICQuietly(uid string) {
	_, _ = w.api.CreateNIC(w.Context(), nicRequest(uid))
}
