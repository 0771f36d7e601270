package machine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const held = clusterv1alpha1.ScaleDownDisabledAnnotation

// nodeWith is a Node with annotations and taints, the latter as key=value:effect.
func nodeWith(annotations map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}, Spec: corev1.NodeSpec{Taints: taints}}
}

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

// What is wanted is there. What was ours and is wanted no more is not. What is foreign stays. A
// Node that has all of it needs no other write.
func TestNodeMetadataIsMerged(t *testing.T) {
	const no, prefer = corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule
	managed := func(json string) map[string]string {
		return map[string]string{clusterv1alpha1.ManagedAnnotation: json}
	}
	with := func(a map[string]string, key, value string) map[string]string {
		a = maps.Clone(a)
		a[key] = value
		return a
	}
	outdated := taint(clusterv1alpha1.OutdatedTaint, "", prefer)
	later := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	marked := with(managed(`{"annotations":["`+held+`"],"taints":["`+clusterv1alpha1.OutdatedTaint+`:PreferNoSchedule"]}`), held, "true")
	for name, c := range map[string]struct {
		node    *corev1.Node
		rollout nodeRollout
		machine func(*clusterv1alpha1.Machine)
		taints  []corev1.Taint
		// held is the wanted value of ScaleDownDisabledAnnotation; empty for none.
		held string
	}{
		"a fresh Node":         {node: nodeWith(nil)},
		"foreign taints stay":  {node: nodeWith(nil, taint("theirs", "", no)), taints: []corev1.Taint{taint("theirs", "", no)}},
		"a taint of ours goes": {node: nodeWith(managed(`{"taints":["old:NoSchedule"]}`), taint("old", "", no))},
		"its namesake with another effect stays": {
			node:   nodeWith(managed(`{"taints":["old:NoSchedule"]}`), taint("old", "", no), taint("old", "", prefer)),
			taints: []corev1.Taint{taint("old", "", prefer)},
		},
		"a taint comes, one that a person took away comes back": {
			node: nodeWith(managed(`{"taints":["a:NoSchedule"]}`)),
			machine: func(m *clusterv1alpha1.Machine) {
				m.Spec.Taints = []clusterv1alpha1.Taint{{Key: "a", Value: "1", Effect: no}}
			},
			taints: []corev1.Taint{taint("a", "1", no)},
		},
		"a taint changes its value in its place": {
			node: nodeWith(managed(`{"taints":["a:NoSchedule"]}`), taint("a", "1", no), taint("z", "", no)),
			machine: func(m *clusterv1alpha1.Machine) {
				m.Spec.Taints = []clusterv1alpha1.Taint{{Key: "a", Value: "2", Effect: no}}
			},
			taints: []corev1.Taint{taint("a", "2", no), taint("z", "", no)},
		},
		"an old Node is tainted": {node: nodeWith(nil), rollout: nodeRollout{outdated: true}, taints: []corev1.Taint{outdated}},
		"an old Node of an autoscaled deployment is tainted and held": {
			node: nodeWith(nil), rollout: nodeRollout{outdated: true, holdScaleDown: true}, taints: []corev1.Taint{outdated}, held: "true",
		},
		"an old Node is not marked at once": {node: nodeWith(nil), rollout: nodeRollout{outdated: true, holdScaleDown: true, pending: later}},
		"an old Node that is marked stays so, whoever leads since": {
			node: nodeWith(marked, outdated), rollout: nodeRollout{outdated: true, holdScaleDown: true, pending: later},
			taints: []corev1.Taint{outdated}, held: "true",
		},
		"a new Node of an autoscaled deployment is held": {node: nodeWith(nil), rollout: nodeRollout{holdScaleDown: true}, held: "true"},
		"after the rollout both go":                      {node: nodeWith(marked, outdated)},
		"a user's own hold stays, during a rollout": {
			node: nodeWith(map[string]string{held: "mine"}), rollout: nodeRollout{holdScaleDown: true}, held: "mine",
		},
		"and after it": {node: nodeWith(map[string]string{held: "mine"}), held: "mine"},
		"the template's hold wins": {
			node: nodeWith(nil), rollout: nodeRollout{holdScaleDown: true}, held: "template",
			machine: func(m *clusterv1alpha1.Machine) { m.Spec.Metadata.Annotations = map[string]string{held: "template"} },
		},
		"a note that nobody can read says nothing": {
			node: nodeWith(managed("{")), taints: nil,
		},
		"what belongs on a Machine stays there": {
			node: nodeWith(nil),
			machine: func(m *clusterv1alpha1.Machine) {
				m.Spec.Metadata.Annotations = map[string]string{
					clusterv1alpha1.ManagedAnnotation: "{}", clusterv1alpha1.DeleteNowAnnotation: "",
					clusterv1alpha1.NodeMachineAnnotation: "ns/other",
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: map[string]string{"pool": "a"}}}
			m.Spec.ProviderID = new(idPrefix + "x")
			if c.machine != nil {
				c.machine(m)
			}
			before := c.node.DeepCopy()
			wanted := wantedNode(c.node, m, c.rollout, joining{})
			if diff := cmp.Diff(before, c.node); diff != "" {
				t.Errorf("the cache's Node was changed: %s", diff)
			}
			if diff := cmp.Diff(c.taints, wanted.Spec.Taints); diff != "" {
				t.Errorf("taints: %s", diff)
			}
			if got := wanted.Annotations[held]; got != c.held {
				t.Errorf("held by %q, want %q", got, c.held)
			}
			if wanted.Labels["pool"] != "a" || wanted.Annotations[clusterv1alpha1.NodeMachineAnnotation] != "ns/m" ||
				wanted.Spec.ProviderID != idPrefix+"x" {
				t.Errorf("not claimed: %+v", wanted)
			}
			if _, ordered := wanted.Annotations[clusterv1alpha1.DeleteNowAnnotation]; ordered {
				t.Error("the Node orders the end of its machine")
			}
			if isSynced(before, wanted) || !isSynced(wanted, wantedNode(wanted, m, c.rollout, joining{})) {
				t.Errorf("synced before %t, after %t", isSynced(before, wanted), isSynced(wanted, wantedNode(wanted, m, c.rollout, joining{})))
			}
		})
	}
}

// awaitNode waits until the Node is as it should be.
func (b *bench) awaitNode(node *corev1.Node, what string, is func(*corev1.Node) bool) {
	b.Helper()
	b.await(what, func() (bool, any) {
		b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(node), node))
		return is(node), []any{node.ObjectMeta.Labels, node.Annotations, node.Spec.Taints}
	})
}

// A Node follows its Machine for life, by one write for each change. A person's changes to what is
// ours are taken back.
func TestNodeFollowsItsMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a"), clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{taint("dedicated", "x", corev1.TaintEffectNoSchedule)}
	})
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.writes.take()

	b.change(m, func() {
		m.Labels = map[string]string{"pool": "b"}
		m.Spec.Metadata.Labels = map[string]string{"role": "other"}
		m.Spec.Metadata.Annotations = map[string]string{"more": "yes"}
		m.Spec.Taints = []clusterv1alpha1.Taint{{Key: "fresh", Effect: corev1.TaintEffectNoExecute}}
	})
	b.awaitNode(node, "the Node in step", func(n *corev1.Node) bool {
		_, worker := n.Labels["node-role.kubernetes.io/worker"]
		_, note := n.Annotations["note"]
		return n.Labels["pool"] == "b" && n.Labels["role"] == "other" && n.Labels["kubelet"] == "yes" && !worker &&
			n.Annotations["more"] == "yes" && !note && tainted(n, "fresh") && !tainted(n, "dedicated")
	})
	b.awaitMachine(m, "the status that has seen it", func(m *clusterv1alpha1.Machine) bool {
		return m.Status.ObservedGeneration == m.Generation
	})
	if w := b.nodeWrites(); len(w) != 1 {
		t.Errorf("%d writes to the Node for one change of the Machine: %v", len(w), w)
	}

	b.change(node, func() {
		delete(node.Labels, "pool")
		node.Labels["theirs"] = "yes"
		node.Spec.Taints = []corev1.Taint{taint("theirs", "", corev1.TaintEffectNoSchedule)}
	})
	b.awaitNode(node, "what is ours back, what is theirs there", func(n *corev1.Node) bool {
		return n.Labels["pool"] == "b" && n.Labels["theirs"] == "yes" && tainted(n, "fresh") && tainted(n, "theirs")
	})
	if w := b.nodeWrites(); len(w) != 1 {
		t.Errorf("%d writes to the Node for one change of it: %v", len(w), w)
	}
	b.remove(m)
	b.awaitGone(m)
}

// While its set says that a rollout goes on, an old Node is tainted. Where the set says so, it is
// kept from cluster-autoscaler.
func TestNodeIsMarkedDuringARollout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.outdatedDelay = time.Nanosecond
	b.serve()
	b.startCore()
	set := b.newSet()
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind))}
	})
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	for _, c := range []struct {
		rollout, hold string
		held, tainted bool
	}{
		{clusterv1alpha1.RolloutCurrent, "true", true, false}, {clusterv1alpha1.RolloutOutdated, "true", true, true},
		{clusterv1alpha1.RolloutOutdated, "", false, true}, {"", "", false, false},
	} {
		b.writes.take()
		b.change(set, func() {
			set.Annotations = map[string]string{clusterv1alpha1.RolloutAnnotation: c.rollout}
			if c.hold != "" {
				set.Annotations[clusterv1alpha1.HoldScaleDownAnnotation] = c.hold
			}
		})
		b.awaitNode(node, "the Node of a set that is "+c.rollout, func(n *corev1.Node) bool {
			_, held := n.Annotations[held]
			return held == c.held && tainted(n, clusterv1alpha1.OutdatedTaint) == c.tainted
		})
		if w := b.nodeWrites(); len(w) != 1 {
			t.Errorf("%d writes to the Node for %q: %v", len(w), c.rollout, w)
		}
	}
	b.remove(set)
	b.remove(m)
	b.awaitGone(m)
}

// A Node that is about to go costs no write for the rollout.
func TestOutdatedNodeIsNotMarkedBeforeTheDelay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.outdatedDelay = time.Hour
	b.serve()
	b.startCore()
	set := b.newSet()
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind))}
	})
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	node := b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.change(set, func() {
		set.Annotations = map[string]string{
			clusterv1alpha1.RolloutAnnotation: clusterv1alpha1.RolloutOutdated, clusterv1alpha1.HoldScaleDownAnnotation: "true",
		}
	})
	b.change(m, func() { m.Labels = map[string]string{"pool": "a", "seen": "yes"} })
	b.awaitNode(node, "the Machine's label", func(n *corev1.Node) bool { return n.Labels["seen"] == "yes" })
	if _, isHeld := node.Annotations[held]; isHeld || tainted(node, clusterv1alpha1.OutdatedTaint) {
		t.Errorf("the Node is marked: held %t, taints %v", isHeld, node.Spec.Taints)
	}
	b.remove(set)
	b.remove(m)
	b.awaitGone(m)
}

func tainted(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// change changes an object as a person would, whatever changes meanwhile.
func (b *bench) change(o client.Object, do func()) {
	b.Helper()
	b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	do()
	b.check(server.user.Patch(b.Context(), o, client.MergeFrom(before)))
}

// nodeWrites are the writes to Nodes since the last time.
func (b *bench) nodeWrites() []string {
	return slices.DeleteFunc(b.writes.take(), func(w string) bool { return !strings.Contains(w, "/nodes/") })
}

// newSet is a MachineSet of which no controller takes care.
func (b *bench) newSet() *clusterv1alpha1.MachineSet {
	b.Helper()
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "set"},
		Spec: clusterv1alpha1.MachineSetSpec{
			Replicas: new(int32(0)),
			Selector: clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Template: clusterv1alpha1.MachineTemplateSpec{
				ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: map[string]string{"pool": "a"}},
				Spec: clusterv1alpha1.MachineSpec{
					ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
						CloudProvider: provider, OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
						CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"size":"m"}`)},
					}},
					Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
				},
			},
		},
	}
	b.check(server.user.Create(b.Context(), set))
	return set
}
