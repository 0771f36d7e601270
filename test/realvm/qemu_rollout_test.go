//go:build linux

package realvm

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

const budget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
`

// One fleet is rolled, and then its machines fall ill: to boot others would take minutes more.
func TestQEMUAFleetIsRolledAndHealed(t *testing.T) {
	tier.Long(t, "it takes real VMs")
	offer := serveArtifacts(t)
	shared.mustKubectl(t, offer.cluster("mirrored", ""), "apply", "-f", "-")
	if t.Run("RollsUnderABudget", testRollsUnderABudget) {
		t.Run("SickMachinesAreReplaced", testSickMachinesAreReplaced)
	}
	shared.mustKubectl(t, "", "delete", "machinedeployment/fleet", "machinehealthcheck/fleet", "--ignore-not-found", "--wait=false")
	shared.awaitGone(t)
}

// A deployment grows from nothing to two VMs, as a cluster-autoscaler has it. They are rolled from
// a kubelet that they have downloaded to the one that their image brings. The process of one is
// killed as that begins: it is replaced, and an application's budget is kept all the time.
func testRollsUnderABudget(t *testing.T) {
	shared.showTrouble(t)
	shared.scaleFromZero(t, machineDeployment("fleet", oldKubelet, 0, "mirrored"), "fleet", 2)
	shared.mustKubectl(t, application("web", "fleet", 2)+"---"+budget, "apply", "-f", "-")
	shared.awaitVersion(t, "fleet", oldKubelet, 2)
	shared.mustKubectl(t, "", "wait", "--for=condition=Available", "--timeout=5m", "deployment/web")

	ctx, stop := context.WithCancel(t.Context())
	lowest := shared.watchBudget(ctx, t)
	killed := shared.killOne(t, "fleet")
	shared.mustKubectl(t, "", "patch", "machinedeployment", "fleet", "--type=merge",
		"--patch", fmt.Sprintf(`{"spec":{"template":{"spec":{"versions":{"kubelet":%q}}}}}`, newKubelet))
	shared.awaitVersion(t, "fleet", newKubelet, 2)
	if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(killed), killed); !apierrors.IsNotFound(err) {
		t.Errorf("the one that was killed is still there: %v", err)
	}
	stop()
	t.Log(shared.mustKubectl(t, "", "get", "nodes"))
	if least := <-lowest; least < 1 {
		t.Errorf("at least %d pods of the application were healthy, its budget wants 1", least)
	}
	shared.mustKubectl(t, "", "delete", "deployment/web", "poddisruptionbudget/web", "--wait=false")
}

// killOne kills the process of one of a MachineDeployment's VMs, and returns its Machine.
func (f *fixture) killOne(t *testing.T, pool string) *clusterv1alpha1.Machine {
	t.Helper()
	machines := &clusterv1alpha1.MachineList{}
	if err := f.client.List(t.Context(), machines, client.MatchingLabels{"pool": pool}); err != nil {
		t.Fatal(err)
	}
	pid, err := f.processOf(*machines.Items[0].Spec.MachineUID)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return &machines.Items[0]
}

// awaitVersion returns once a MachineDeployment has so many Nodes, all of that kubelet and Ready,
// and nothing else.
func (f *fixture) awaitVersion(t *testing.T, pool, kubelet string, replicas int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d Nodes with kubelet %s", replicas, kubelet), func(ctx context.Context) error {
		machines := &clusterv1alpha1.MachineList{}
		if err := f.client.List(ctx, machines, client.MatchingLabels{"pool": pool}); err != nil {
			return err
		}
		nodes := &corev1.NodeList{}
		if err := f.client.List(ctx, nodes, client.MatchingLabels{"pool": pool}); err != nil {
			return err
		}
		current := 0
		for _, n := range nodes.Items {
			if n.Status.NodeInfo.KubeletVersion == "v"+kubelet && isReady(&n) {
				current++
			}
		}
		if len(machines.Items) != replicas || len(nodes.Items) != replicas || current != replicas {
			return fmt.Errorf("%d Machines, %d Nodes, of which %d are Ready with that kubelet", len(machines.Items), len(nodes.Items), current)
		}
		return nil
	})
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// watchBudget follows the budget until ctx ends, and then delivers the fewest healthy pods it had.
func (f *fixture) watchBudget(ctx context.Context, t *testing.T) <-chan int32 {
	t.Helper()
	changes, err := f.client.Watch(ctx, &policyv1.PodDisruptionBudgetList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	least := make(chan int32, 1)
	go func() {
		lowest := int32(1 << 30)
		for change := range changes.ResultChan() {
			if b, is := change.Object.(*policyv1.PodDisruptionBudget); is && b.Status.ExpectedPods > 0 {
				lowest = min(lowest, b.Status.CurrentHealthy)
			}
		}
		least <- lowest
	}()
	return least
}

// scaleFromZero does as a cluster-autoscaler: it reads what a machine would offer of a deployment
// that has none, and gives it some.
func (f *fixture) scaleFromZero(t *testing.T, manifest, name string, replicas int) {
	t.Helper()
	f.mustKubectl(t, manifest, "apply", "-f", "-")
	f.mustKubectl(t, "", "annotate", "machinedeployment", name,
		clusterv1alpha1.NodeGroupMinSizeAnnotation+"=0", clusterv1alpha1.NodeGroupMaxSizeAnnotation+"=3")
	eventually(t, "the capacity of a VM to be told", func(ctx context.Context) error {
		md := &clusterv1alpha1.MachineDeployment{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, md); err != nil {
			return err
		}
		cpu, memory := md.Annotations[clusterv1alpha1.CapacityCPUAnnotation], md.Annotations[clusterv1alpha1.CapacityMemoryAnnotation]
		if cpu != "2" || memory != "1024Mi" {
			return fmt.Errorf("it is told as %q and %q, want 2 and 1024Mi", cpu, memory)
		}
		return nil
	})
	f.mustKubectl(t, "", "scale", "machinedeployment", name, fmt.Sprintf("--replicas=%d", replicas))
}
