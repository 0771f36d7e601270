package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

const startupKey = "node.example.com/not-ready"

// newDaemonSet is a critical DaemonSet; no controller makes its pods.
func (b *bench) newDaemonSet(name string, change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	b.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				PriorityClassName: "system-node-critical", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}},
		},
	}
	for _, c := range change {
		c(d)
	}
	b.check(server.user.Create(b.Context(), d))
	return d
}

// run has a Ready pod of the DaemonSet on the machine's Node.
func (b *bench) run(d *appsv1.DaemonSet, m *clusterv1alpha1.Machine) {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: d.Name + "-" + m.Name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
		}},
		Spec: corev1.PodSpec{NodeName: m.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	b.check(server.user.Create(b.Context(), pod))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	b.check(server.user.Status().Update(b.Context(), pod))
}

// untaint takes a taint from the Node, as a cloud controller does, which may set the providerID.
func (b *bench) untaint(node *corev1.Node, key, providerID string) {
	b.Helper()
	b.change(node, func() {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		node.Spec.ProviderID = providerID
	})
}

// TestLIFE5_AMachineIsRunningOnceItsNodeCanTakePods: the start-up taint goes, in one write of its
// own, when the cloud controller and the critical DaemonSets are done.
func TestLIFE5_AMachineIsRunningOnceItsNodeCanTakePods(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.startupTaints = []corev1.Taint{taint(startupKey, "", corev1.TaintEffectNoSchedule)}
	b.critical, b.nodeDebounce = []string{b.namespace}, time.Second
	network := b.newDaemonSet("network")
	b.newDaemonSet("elsewhere", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.NodeSelector = map[string]string{"other": "yes"} })
	b.newDaemonSet("any", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.PriorityClassName = "" })
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		m.Spec.Taints = append(m.Spec.Taints, clusterv1alpha1.Taint{Key: startupKey, Effect: corev1.TaintEffectNoSchedule})
	}), clusterv1alpha1.MachinePhaseProvisioned)
	b.writes.take()
	node := b.newNode(m, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{
			taint(startupKey, "", corev1.TaintEffectNoSchedule), taint(lifecycle.UninitializedTaint, "true", corev1.TaintEffectNoSchedule),
		}
		n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.35.0", ContainerRuntimeVersion: "containerd://2.3.1", Architecture: "amd64"}
	})
	b.awaitNode(node, "the claim", func(n *corev1.Node) bool { return n.Annotations[clusterv1alpha1.NodeMachineAnnotation] == keyOf(m) })
	if node.Spec.ProviderID != "" || !tainted(node, startupKey) || !tainted(node, "dedicated") {
		t.Errorf("providerID %q, taints %v before the Node is initialised", node.Spec.ProviderID, node.Spec.Taints)
	}
	b.untaint(node, lifecycle.UninitializedTaint, *m.Spec.ProviderID)
	c := b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonWaitingForDaemonSets)
	if want := b.namespace + "/network."; !strings.HasSuffix(c.Message, "DaemonSets: "+want) {
		t.Errorf("it says %q, want %s", c.Message, want)
	}
	b.run(network, m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.awaitNode(node, "no start-up taint", func(n *corev1.Node) bool { return !tainted(n, startupKey) && tainted(n, "dedicated") })
	if w := b.nodeWrites(); len(w) != 2 {
		t.Errorf("%d writes to the Node, one for its claim and one for its start-up taint: %v", len(w), w)
	}
	want := &clusterv1alpha1.NodeInfo{KubeletVersion: "v1.35.0", ContainerRuntimeVersion: "containerd://2.3.1", Architecture: "amd64"}
	if diff := cmp.Diff(want, m.Status.NodeInfo); diff != "" {
		t.Errorf("nodeInfo: %s", diff)
	}
	b.awaitReason(m, clusterv1alpha1.ConditionKubeletVersionMatches, clusterv1alpha1.ReasonKubeletVersionDiffers)
	b.remove(m)
	b.awaitGone(m)
}

// TestLIFE5_NothingToWaitForCostsNothing: a start-up taint goes with the claim of a Node that is
// Ready when it is first seen.
func TestLIFE5_NothingToWaitForCostsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.startupTaints = []corev1.Taint{taint(startupKey, "", corev1.TaintEffectNoSchedule)}
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	b.writes.take()
	node := b.newNode(m, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{taint(startupKey, "", corev1.TaintEffectNoSchedule)}
	})
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.awaitNode(node, "no start-up taint", func(n *corev1.Node) bool { return !tainted(n, startupKey) })
	if w := b.writes.take(); len(w) != 3 {
		t.Errorf("%d writes, want one to the Node, one to the status, and the token's end: %v", len(w), w)
	}
	b.remove(m)
	b.awaitGone(m)
}

// TestLIFE4_LateCloudControllers: who sets a Node's providerID, and what becomes of a wrong one.
func TestLIFE4_LateCloudControllers(t *testing.T) {
	t.Parallel()
	await := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{taint(lifecycle.UninitializedTaint, "true", corev1.TaintEffectNoSchedule)}
	}
	for name, c := range map[string]struct {
		alone bool
		// sets is what the cloud controller sets, if there is one.
		sets   string
		reason string
	}{
		"it sets the machine's":       {sets: "m", reason: clusterv1alpha1.ReasonNodeReady},
		"it sets another":             {sets: "other", reason: clusterv1alpha1.ReasonProviderIDUnknown},
		"it sets none":                {reason: clusterv1alpha1.ReasonNodeReady},
		"there is none by the driver": {alone: true, reason: clusterv1alpha1.ReasonNodeReady},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.cloud.alone = c.alone
			b.serve()
			b.startCore()
			m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
			node := b.newNode(m, await)
			b.awaitNode(node, "the claim", func(n *corev1.Node) bool { return n.Annotations[clusterv1alpha1.NodeMachineAnnotation] == keyOf(m) })
			if !c.alone {
				id := map[string]string{"m": *m.Spec.ProviderID, "other": idPrefix + "other"}[c.sets]
				b.untaint(node, lifecycle.UninitializedTaint, id)
			}
			b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, c.reason)
			if c.reason == clusterv1alpha1.ReasonNodeReady {
				b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
				b.awaitNode(node, "the machine's providerID", func(n *corev1.Node) bool {
					return n.Spec.ProviderID == *m.Spec.ProviderID && !tainted(n, lifecycle.UninitializedTaint)
				})
			}
			b.remove(m)
			b.awaitGone(m)
		})
	}
}

// TestLIFE4_ManyNodesWithOneAddress: VMs behind NATs of their own all have the same address, and
// each gets its own Node.
func TestLIFE4_ManyNodesWithOneAddress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cloud.address = "192.0.2.9"
	b.serve()
	b.startCore()
	var machines []*clusterv1alpha1.Machine
	for _, name := range []string{"a", "b", "c"} {
		machines = append(machines, b.newMachine(name))
	}
	for _, m := range machines {
		b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	}
	for _, m := range machines {
		b.newNode(m, func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: b.cloud.address}}
		})
		if got := b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning).Status.NodeRef.Name; got != m.Name {
			t.Errorf("Machine %s has Node %s", m.Name, got)
		}
	}
	for _, m := range machines {
		b.remove(m)
		b.awaitGone(m)
	}
}
