package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// application renders a Deployment of pods that stay away from each other, and its
// PodDisruptionBudget.
func application(replicas, minAvailable int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: %d
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers: [{name: app, image: app}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: app}
spec:
  minAvailable: %d
  selector: {matchLabels: {app: app}}
`, replicas, minAvailable)
}

// A drain that a PodDisruptionBudget blocks waits, names the budget, and goes on when the budget
// allows it.
func TestLIFE9_DrainHonoursPodDisruptionBudgets(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("drained", 2, nil))
	u.awaitRunning(2)
	u.apply(application(2, 2))
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	node := u.kubectl("get", "pods", "-l", "app=app", "-o", "jsonpath={.items[0].spec.nodeName}")
	machine := u.machineOf(node)
	u.kubectl("delete", "machine", machine.Name, "--wait=false")
	eventually(t, "the drain to say who blocks it", func(context.Context) error {
		m, found := u.find(machine.Name)
		if !found {
			return errors.New("the machine is gone")
		}
		text := words(m.Status.Conditions)
		if !strings.Contains(text, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget) || !strings.Contains(text, "PodDisruptionBudget app wants 2 of its 2 pods") {
			return errors.New(text)
		}
		return nil
	})
	if m, found := u.find(machine.Name); !found || m.Status.Phase != clusterv1alpha1.MachinePhaseDeleting {
		t.Errorf("while it is drained, the machine's phase is %q, want Deleting", m.Status.Phase)
	}
	if got := u.resources(t.Context())["vm"]; got < 2 {
		t.Error("the VM went although its pods could not")
	}
	u.kubectl("patch", "poddisruptionbudget", "app", "--type=merge", "--patch", `{"spec":{"minAvailable":1}}`)
	u.kubectl("wait", "machine/"+machine.Name, "--for=delete", "--timeout=60s")
	u.awaitRunning(2)
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	u.kubectl("delete", "deployment/app", "poddisruptionbudget/app")
}

// The only machine of a pool is replaced before it is gone: its pods have nowhere else to go, and
// their budget holds.
func TestLIFE9_ReplacedBeforeItIsGone(t *testing.T) {
	tier.Long(t, "another drain shows that a budget is kept")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("full", 1, nil))
	u.awaitRunning(1)
	u.apply(application(2, 1))
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	machine := u.machine()
	u.kubectl("delete", "machine", machine.Name, "--timeout=60s")
	u.awaitRunning(1)
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	u.kubectl("delete", "deployment/app", "poddisruptionbudget/app")
}

// A drain that takes longer than the Machine allows ends, and the VM goes.
func TestLIFE9_DrainTimeout(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("stubborn", 1, map[string]string{"spec": "\n      nodeDrainTimeout: 3s"}))
	u.awaitRunning(1)
	u.apply(application(1, 1))
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	u.kubectl("delete", "machinedeployment", "stubborn")
	u.awaitGone()
	u.kubectl("delete", "deployment/app", "poddisruptionbudget/app")
}

// machineOf returns the Machine of a Node.
func (u *user) machineOf(node string) clusterv1alpha1.Machine {
	u.t.Helper()
	for _, m := range u.machines() {
		if m.Status.NodeRef != nil && m.Status.NodeRef.Name == node {
			return m
		}
	}
	u.t.Fatalf("no machine has the Node %s", node)
	return clusterv1alpha1.Machine{}
}

// find reads a Machine.
func (u *user) find(name string) (*clusterv1alpha1.Machine, bool) {
	u.t.Helper()
	var machine clusterv1alpha1.Machine
	err := u.client.Get(u.t.Context(), client.ObjectKey{Namespace: u.namespace, Name: name}, &machine)
	if client.IgnoreNotFound(err) != nil {
		u.t.Fatalf("read machine %s: %v", name, err)
	}
	return &machine, err == nil
}

// kubectl delete machine is safe at any moment, also before the VM exists and while it is being
// made.
func TestLIFE9_DeletedBeforeTheVMExists(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	hold := u.hold(u.createVM(), backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT)
	u.apply(deployment("hasty", 1, nil))
	u.awaitCall(hold, backendv1alpha1.CallProgress_CALL_PROGRESS_RECEIVED)
	first := u.machine()
	u.kubectl("delete", "machinedeployment", "hasty", "--wait=false")
	eventually(t, "the deletion to be seen", func(context.Context) error {
		if m, found := u.find(first.Name); !found || m.DeletionTimestamp.IsZero() {
			return fmt.Errorf("found=%t, not deleting", found)
		}
		return nil
	})
	u.removeFaults(hold)
	u.awaitGone()
	if left := u.resources(t.Context()); len(left) > 0 {
		t.Errorf("the cloud holds %v, want nothing", left)
	}
}

// The Node of a Machine carries what its template says, and goes with it.
func TestLIFE4_NodeIsTheMachines(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("joined", 1, map[string]string{"spec": `
      metadata: {labels: {tier: back, example.com/zone: a}, annotations: {example.com/note: hello}}
      taints: [{key: dedicated, value: back, effect: NoSchedule}]`}))
	u.awaitRunning(1)
	m := u.machine()
	var node corev1.Node
	if err := u.client.Get(t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, &node); err != nil {
		t.Fatalf("read the machine's Node: %v", err)
	}
	if m.Spec.ProviderID == nil || *m.Spec.ProviderID == "" || *m.Spec.ProviderID != node.Spec.ProviderID {
		t.Errorf("the machine's providerID is %v, the Node's %q", m.Spec.ProviderID, node.Spec.ProviderID)
	}
	if got, want := node.Annotations[clusterv1alpha1.NodeMachineAnnotation], u.namespace+"/"+m.Name; got != want {
		t.Errorf("the Node's annotation says %q, want %q", got, want)
	}
	for key, want := range map[string]string{"pool": "joined", "tier": "back", "example.com/zone": "a"} {
		if node.Labels[key] != want {
			t.Errorf("the Node's label %s is %q, want %q", key, node.Labels[key], want)
		}
	}
	if node.Annotations["example.com/note"] != "hello" {
		t.Errorf("the Node lacks the template's annotation: %v", node.Annotations)
	}
	tainted := false
	for _, taint := range node.Spec.Taints {
		tainted = tainted || taint.Key == "dedicated" && taint.Value == "back" && taint.Effect == corev1.TaintEffectNoSchedule
	}
	if !tainted {
		t.Errorf("the Node lacks the template's taint: %v", node.Spec.Taints)
	}
	u.kubectl("delete", "machinedeployment", "joined")
	u.awaitGone()
	if err := u.client.Get(t.Context(), client.ObjectKeyFromObject(&node), &node); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Node outlives its machine: %v", err)
	}
}
