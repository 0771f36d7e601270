package machine

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestWhoMayHaveAMachineDeletedNow: who may ask for a Machine to be deleted now, and who may not.
func TestWhoMayHaveAMachineDeletedNow(t *testing.T) {
	annotated := func(values ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: "n", Annotations: map[string]string{}}
		for i := 0; i+1 < len(values); i += 2 {
			m.Annotations[values[i]] = values[i+1]
		}
		return m
	}
	const now = clusterv1alpha1.DeleteNowAnnotation
	for name, c := range map[string]struct {
		machine metav1.ObjectMeta
		node    *corev1.Node
		want    string
	}{
		"nobody":             {node: &corev1.Node{}},
		"on the Machine":     {machine: annotated(now, ""), want: "the Machine"},
		"switched off":       {machine: annotated(now, "false")},
		"on the Node":        {node: &corev1.Node{ObjectMeta: annotated(now, "yes")}, want: "Node n"},
		"by a template":      {machine: annotated(now, "", clusterv1alpha1.ManagedAnnotation, `{"annotations":["`+now+`"]}`)},
		"there is no Node":   {},
		"both: it goes once": {machine: annotated(now, ""), node: &corev1.Node{ObjectMeta: annotated(now, "")}, want: "the Machine"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deleteNowOn(&clusterv1alpha1.Machine{ObjectMeta: c.machine}, c.node); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestLIFE12_DeleteNow: an annotation on the Node is enough for its Machine to go, with one event.
func TestLIFE12_DeleteNow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.change(node, func() { node.Annotations[clusterv1alpha1.DeleteNowAnnotation] = "" })
	b.awaitGone(m)
	b.awaitGone(node)
	b.await("one event of it", func() (bool, any) {
		reasons := b.events(m)
		return slices.Equal(reasons, []string{"Created", "DeleteNow", "Deleted", "Running"}), reasons
	})
}

// TestOPS10_Paused: nothing is done for a paused Machine, whatever changes, and everything once it
// goes on.
func TestOPS10_Paused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	paused := func(m *clusterv1alpha1.Machine) {
		m.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: ""}
	}
	unborn := b.newMachine("a", paused)
	b.awaitReason(unborn, clusterv1alpha1.ConditionPaused, clusterv1alpha1.ReasonPausedByAnnotation)
	m := b.awaitPhase(b.newMachine("b"), clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.change(m, func() { paused(m) })
	b.awaitReason(m, clusterv1alpha1.ConditionPaused, clusterv1alpha1.ReasonPausedByAnnotation)
	b.writes.take()
	b.change(m, func() { m.Labels["pool"] = "b" })
	b.remove(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseDeleting)
	b.check(server.user.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	if creates, vms := b.cloud.count(); creates != 1 || vms != 1 || node.Spec.Unschedulable || node.Labels["pool"] != "a" {
		t.Errorf("%d creates, %d VMs, Node cordoned %t, labels %v", creates, vms, node.Spec.Unschedulable, node.Labels)
	}
	if w := b.nodeWrites(); len(w) > 0 {
		t.Errorf("written for a paused Machine: %v", w)
	}
	for _, one := range []*clusterv1alpha1.Machine{m, unborn} {
		b.change(one, func() { delete(one.Annotations, clusterv1alpha1.PausedAnnotation) })
	}
	b.awaitGone(m)
	unborn = b.awaitPhase(unborn, clusterv1alpha1.MachinePhaseProvisioned)
	if c := apimeta.FindStatusCondition(unborn.Status.Conditions, clusterv1alpha1.ConditionPaused); c != nil {
		t.Errorf("still %+v", c)
	}
	b.remove(unborn)
	b.awaitGone(unborn)
}

// TestOPS10_PausedCluster: a paused Cluster is the brake for all Machines that name it.
func TestOPS10_PausedCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: "mill", Annotations: map[string]string{clusterv1alpha1.PausedAnnotation: "true"},
	}}
	b.check(server.user.Create(t.Context(), c))
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) { m.Spec.ClusterRef = &clusterv1alpha1.LocalReference{Name: c.Name} })
	b.awaitReason(m, clusterv1alpha1.ConditionPaused, clusterv1alpha1.ReasonPausedByAnnotation)
	if creates, _ := b.cloud.count(); creates != 0 {
		t.Errorf("%d creates", creates)
	}
	b.change(c, func() { c.Annotations = nil })
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	b.remove(m)
	b.awaitGone(m)
}
