package e2e

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// A manager with --read-only changes nothing, says so, and the one after it goes on where the one
// before it stopped.
func TestOPS10_ReadOnly(t *testing.T) {
	tier.Long(t, "it starts the manager anew, twice")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("braked", 2, nil))
	u.awaitRunning(2)
	before := u.machines()

	u.kill([]string{stack.Manager})
	braked := time.Now()
	// The name of the one before it: it need not wait for the Lease.
	looksOn := u.startManager("local", "--read-only")
	u.kubectl("scale", "machinedeployment", "braked", "--replicas=4")
	u.kubectl("delete", "machine", before[0].Name, "--wait=false")
	u.awaitPaused("braked", true)
	// It has seen the new size by now, and has had as long for the Machine.
	machines := u.machines()
	if len(machines) != 2 {
		t.Errorf("there are %d machines, want the 2 from before", len(machines))
	}
	for _, m := range machines {
		if vms := u.vmsEver()[*m.Spec.MachineUID]; m.Spec.ProviderID == nil || vms != 1 {
			t.Errorf("machine %s had %d VMs", m.Name, vms)
		}
	}
	if got := u.resources(t.Context())["vm"]; got != 2 {
		t.Errorf("the cloud holds %d VMs, want 2", got)
	}
	may := []string{"machinedeployments/status", "leases", "configmaps"}
	for write, n := range u.writes(braked) {
		if !slices.Contains(may, write.Resource) {
			t.Errorf("%d times: %s of %s", n, write.Verb, write.Resource)
		}
	}

	looksOn.signal(syscall.SIGTERM)
	if err := looksOn.wait(); err != nil {
		t.Errorf("the manager that looked on ended with %v", err)
	}
	u.revive([]string{stack.Manager})
	u.awaitRunning(4)
	u.awaitPaused("braked", false)
	u.checkOneVMEach()
}

// awaitPaused waits until a MachineDeployment shows, for its spec as it is, that the manager only
// looks on, or does not.
func (u *user) awaitPaused(name string, want bool) {
	u.t.Helper()
	eventually(u.t, "the condition Paused", func(ctx context.Context) error {
		var md clusterv1alpha1.MachineDeployment
		if err := u.client.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, &md); err != nil {
			return err
		}
		p := meta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionPaused)
		shown := p != nil && p.Reason == clusterv1alpha1.ReasonReadOnly && p.ObservedGeneration == md.Generation
		if shown != want || !want && p != nil {
			return errors.New("it says" + words(md.Status.Conditions))
		}
		return nil
	})
}
