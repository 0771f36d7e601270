package cloud

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/providers/fake/tags"
)

// world is a cloud with both of its services, called without a wire.
type world struct {
	*testing.T
	cloud *Cloud
	api   *api
	hooks *hooks
}

func open(t *testing.T, o Options) *world {
	t.Helper()
	c, err := Open(o)
	if err != nil {
		t.Fatalf("open cloud: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &world{T: t, cloud: c, api: &api{cloud: c}, hooks: newHooks(c)}
}

func journalPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state")
}

// marks are the tags of a machine's resources.
func marks(uid string) map[string]string {
	return map[string]string{tags.Cluster: "cluster", tags.Machine: uid}
}

func vmRequest(uid, nicID string) *fakecloudv1alpha1.CreateVMRequest {
	return &fakecloudv1alpha1.CreateVMRequest{
		ClientToken: uid, Name: "vm-" + uid, Tags: marks(uid), NicId: nicID, Flavor: "small", Image: "ubuntu-24.04",
		UserData: []byte("user data of " + uid),
	}
}

func nicRequest(uid string) *fakecloudv1alpha1.CreateNICRequest {
	return &fakecloudv1alpha1.CreateNICRequest{ClientToken: uid, Name: "nic-" + uid, Tags: marks(uid)}
}

func (w *world) createNIC(uid string) *fakecloudv1alpha1.NIC {
	w.Helper()
	answer, err := w.api.CreateNIC(w.Context(), nicRequest(uid))
	if err != nil {
		w.Fatalf("create nic: %v", err)
	}
	return answer.GetNic()
}

// create makes a NIC and a VM.
func (w *world) create(uid string) *fakecloudv1alpha1.VM {
	w.Helper()
	answer, err := w.api.CreateVM(w.Context(), vmRequest(uid, w.createNIC(uid).GetId()))
	if err != nil {
		w.Fatalf("create vm: %v", err)
	}
	return answer.GetVm()
}

func (w *world) delete(id string) *fakecloudv1alpha1.VM {
	w.Helper()
	answer, err := w.api.DeleteVM(w.Context(), &fakecloudv1alpha1.DeleteVMRequest{Id: id})
	if err != nil {
		w.Fatalf("delete vm: %v", err)
	}
	return answer.GetVm()
}

// vms returns the VMs after a revision.
func (w *world) vms(after int64) []*backendv1alpha1.VM {
	w.Helper()
	answer, err := w.hooks.ListVMs(w.Context(), &backendv1alpha1.ListVMsRequest{AfterRevision: after})
	if err != nil {
		w.Fatalf("list vms: %v", err)
	}
	return answer.GetVms()
}

func (w *world) totals() *backendv1alpha1.GetTotalsResponse {
	w.Helper()
	answer, err := w.hooks.GetTotals(w.Context(), &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		w.Fatalf("get totals: %v", err)
	}
	return answer
}

func (w *world) inject(f *backendv1alpha1.Fault) string {
	w.Helper()
	answer, err := w.hooks.InjectFault(w.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f})
	if err != nil {
		w.Fatalf("inject %v: %v", f, err)
	}
	return answer.GetId()
}

func (w *world) remove(ids ...string) {
	w.Helper()
	if _, err := w.hooks.RemoveFaults(w.Context(), &backendv1alpha1.RemoveFaultsRequest{Ids: ids}); err != nil {
		w.Fatalf("remove faults: %v", err)
	}
}

// await follows the ledger until a call is as wanted, and returns it.
func (w *world) await(want func(*backendv1alpha1.Call) bool) *backendv1alpha1.Call {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
	defer cancel()
	for revision := int64(0); ; {
		answer, err := w.hooks.ListCalls(ctx, &backendv1alpha1.ListCallsRequest{AfterRevision: revision, Wait: durationpb.New(time.Minute)})
		if err != nil {
			w.Fatalf("follow the ledger: %v", err)
		}
		for _, one := range answer.GetCalls() {
			if want(one) {
				return one
			}
			revision = one.GetRevision()
		}
	}
}

// at is a call of an operation that is as far as this.
func at(operation string, progress backendv1alpha1.CallProgress) func(*backendv1alpha1.Call) bool {
	return func(c *backendv1alpha1.Call) bool {
		return c.GetOperation() == operation && c.GetProgress() == progress
	}
}

// said returns what the cloud itself said in an error; the zero value when it said nothing.
func said(err error) *fakecloudv1alpha1.CloudError {
	for _, detail := range status.Convert(err).Details() {
		if c, ok := detail.(*fakecloudv1alpha1.CloudError); ok {
			return c
		}
	}
	return &fakecloudv1alpha1.CloudError{}
}

// elapse lets time pass in a bubble of synctest, and all happen that is due by then.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
