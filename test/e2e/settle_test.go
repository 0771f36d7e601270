package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/test/tier"
)

// late is a driver of which no create is answered, and whose VMs come after that: in this process,
// so that a test says when.
const late = "late"

func lateEndpoint(dir string) string { return "unix://" + filepath.Join(dir, "late.sock") }

// lateCloud is the cloud and its driver.
type lateCloud struct {
	// settle is limits.create_settle; nil leaves it out.
	settle *durationpb.Duration

	mu sync.Mutex
	// asked and vms are refs of machines by uid; deletes are those that left nothing.
	asked, vms map[string]*driverv1alpha1.MachineRef
	deletes    int
}

func (c *lateCloud) Info() sdk.Info {
	return sdk.Info{Name: late, Version: "test", ProviderIDPrefix: "late:///", Limits: &driverv1alpha1.Limits{CreateSettle: c.settle}}
}

func (c *lateCloud) CreateMachine(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[r.GetMachine().GetUid()] = r.GetMachine()
	return nil, sdk.NewUnknownOutcome("The cloud did not answer.")
}

func (c *lateCloud) GetMachineStatus(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vms[r.GetMachine().GetUid()] == nil {
		return nil, sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND, "There is no VM of this machine.")
	}
	return &driverv1alpha1.Machine{
		Ref: r.GetMachine(), ClusterUid: r.GetMeta().GetClusterUid(), ProviderId: "late:///" + r.GetMachine().GetUid(),
		State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
	}, nil
}

func (c *lateCloud) DeleteMachine(_ context.Context, r *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.vms, r.GetMachine().GetUid())
	c.deletes++
	return nil, nil
}

// land has the VMs come that were asked for.
func (c *lateCloud) land() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.vms, c.asked)
}

// counts are how many machines were asked for, are there, and how often they were deleted.
func (c *lateCloud) counts() (asked, vms, deletes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked), len(c.vms), c.deletes
}

// serve serves the driver until end is called.
func (c *lateCloud) serve(t *testing.T, endpoint string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	ready := make(chan struct{})
	go func() { served <- sdk.Serve(ctx, c, sdk.Options{Endpoint: endpoint, Ready: func() { close(ready) }}) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve the driver: %v", err)
		}
	})
	t.Cleanup(end)
	select {
	case <-ready:
	case err := <-served:
		served <- err
		t.Fatalf("serve the driver: %v", err)
	}
	return end
}

// awaitUnknownOutcome waits until a Machine says that nobody knows what came of its create, and
// says text. None may fail for it.
func (u *user) awaitUnknownOutcome(text string) {
	u.t.Helper()
	eventually(u.t, "an outcome to be unknown: "+text, func(context.Context) error {
		for _, m := range u.machines() {
			if m.Status.Phase == clusterv1alpha1.MachinePhaseFailed {
				u.t.Fatalf("machine %s failed for it%s", m.Name, words(m.Status.Conditions))
			}
			c := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionInstanceReady)
			if c != nil && c.Status == metav1.ConditionUnknown && c.Reason == clusterv1alpha1.ReasonOutcomeUnknown && strings.Contains(c.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("%d machines do not say so", len(u.machines()))
	})
}

// A driver that does not say how long a create may land late has not promised that none does: after
// a delete that left nothing, its Machine stays for five minutes, and the VM that comes meanwhile
// goes with it. A driver that promises has its Machine go at once.
func TestSAFE5_AVMThatComesAfterItsDelete(t *testing.T) {
	tier.Long(t, "it waits for a delete to be repeated")
	t.Parallel()
	u := newUser(t)
	cloud := &lateCloud{asked: map[string]*driverv1alpha1.MachineRef{}, vms: map[string]*driverv1alpha1.MachineRef{}}
	endpoint := lateEndpoint(u.dir)
	end := cloud.serve(t, endpoint)
	u.apply(`apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: late}
spec:
  versions: {kubelet: 1.34.3}
  providerSpec:
    value: {cloudProvider: late, cloudProviderSpec: {}, operatingSystem: ubuntu}
`)
	u.awaitUnknownOutcome("The cloud did not answer.")
	u.kubectl("delete", "machine", "late", "--wait=false")
	eventually(t, "a delete that leaves nothing", func(context.Context) error {
		if _, _, deletes := cloud.counts(); deletes == 0 {
			return errors.New("there was none")
		}
		return nil
	})
	cloud.land()
	eventually(t, "the VM that came late to go", func(context.Context) error {
		_, vms, deletes := cloud.counts()
		if vms == 0 {
			return nil
		}
		if _, found := u.find("late"); !found {
			t.Fatalf("the Machine is gone, and its VM is there, after %d deletes", deletes)
		}
		return fmt.Errorf("it is there after %d deletes", deletes)
	})
	if _, found := u.find("late"); !found {
		t.Error("the Machine went before the create had settled")
	}
	end()
	cloud.settle = durationpb.New(0)
	cloud.serve(t, endpoint)
	u.awaitGone()
	if _, vms, deletes := cloud.counts(); vms > 0 || deletes < 2 {
		t.Errorf("%d VMs are left after %d deletes", vms, deletes)
	}
}
