package machine

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestFindNode: by providerID, else by address, else by name, and never a Node that is somebody
// else's.
func TestFindNode(t *testing.T) {
	t.Parallel()
	const id, alias, address = idPrefix + "x", "sawmill://region/x", "192.0.2.7"
	type nodes map[string]func(*corev1.Node)
	withID := func(id string) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.ProviderID = id } }
	withAddress := func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	}
	ofMachine := func(owner string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			withAddress(n)
			n.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: owner}
		}
	}
	ofControlPlane := func(n *corev1.Node) {
		n.Spec.ProviderID, n.Labels = id, map[string]string{"node-role.kubernetes.io/control-plane": ""}
	}
	for name, c := range map[string]struct {
		nodes nodes
		noID  bool
		young bool
		// rival is another Machine that has no Node yet, by the addresses of its VM.
		rival    []string
		given    bool
		want     string
		conflict string
	}{
		"none":          {},
		"by providerID": {nodes: nodes{"other": withID(id), "m": func(*corev1.Node) {}}, want: "other"},
		"by providerID, by another machine's name":   {nodes: nodes{"rival": withID(id)}, rival: []string{"192.0.2.8"}, conflict: "rival"},
		"by another id of its VM":                    {nodes: nodes{"other": withID(alias), "m": func(*corev1.Node) {}}, want: "other"},
		"by name, with another id":                   {nodes: nodes{"m": withID(alias)}, want: "m"},
		"two, by two ids of its VM":                  {nodes: nodes{"one": withID(id), "two": withID(alias)}, conflict: "one, two"},
		"by address":                                 {nodes: nodes{"other": withAddress}, want: "other"},
		"by name":                                    {nodes: nodes{"m": func(*corev1.Node) {}, "other": func(*corev1.Node) {}}, want: "m"},
		"a machine that never had a VM":              {nodes: nodes{"m": withAddress}, noID: true},
		"two by address, and none by name":           {nodes: nodes{"one": withAddress, "two": withAddress}},
		"two by address, one of them by name":        {nodes: nodes{"m": withAddress, "two": withAddress}, want: "m"},
		"two by address, one with its own id":        {nodes: nodes{"one": withAddress, "two": func(n *corev1.Node) { withAddress(n); n.Spec.ProviderID = idPrefix + "y" }}},
		"two by address, one known to be its":        {nodes: nodes{"one": withAddress, "two": ofMachine("ours")}, given: true, want: "two"},
		"by address, of another machine":             {nodes: nodes{"one": ofMachine("ns/other")}},
		"by address, that another machine has, too":  {nodes: nodes{"one": withAddress}, rival: []string{address}},
		"by address, by another machine's name":      {nodes: nodes{"rival": withAddress}, rival: []string{"192.0.2.8"}},
		"by name, before the address of another":     {nodes: nodes{"m": func(*corev1.Node) {}, "one": withAddress}, want: "m"},
		"by name, of another VM":                     {nodes: nodes{"m": withID(idPrefix + "y")}, conflict: idPrefix + "y, and the driver knows its VM by none but " + id + ", " + alias},
		"by name, of a VM from before":               {nodes: nodes{"m": withID(idPrefix + "y")}, young: true, conflict: "Delete the Node if its VM is gone"},
		"an address that a VM took over":             {nodes: nodes{"other": func(n *corev1.Node) { withAddress(n); n.Spec.ProviderID = idPrefix + "y" }}},
		"one that was there before":                  {nodes: nodes{"m": func(*corev1.Node) {}}, young: true, conflict: "was there before"},
		"one of the control plane":                   {nodes: nodes{"other": ofControlPlane}, conflict: "control-plane node"},
		"one of the control plane that it was given": {nodes: nodes{"other": ofControlPlane}, given: true, want: "other"},
		"another machine's": {nodes: nodes{"m": func(n *corev1.Node) {
			n.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: "ns/other"}
		}}, conflict: "ns/other"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "m"}}
			m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
			if c.young {
				m.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Minute))
			}
			if c.rival != nil {
				b.newRival(c.rival)
			}
			var ids []string
			if !c.noID {
				m.Spec.ProviderID, ids = new(id), []string{id, alias}
			}
			for name, change := range c.nodes {
				change := func(n *corev1.Node) {
					change(n)
					if c.given && (n.Annotations != nil || len(c.nodes) == 1) {
						n.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: keyOf(m)}
					}
				}
				b.newNode(&clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}, change)
			}
			cached := b.nodeCache()
			nodes := nodeClient{Client: cached, machines: machineFinder{cache: cached}}
			b.await("the match", func() (bool, any) {
				got, err := nodes.find(t.Context(), m, ids, "m")
				b.check(err)
				if c.conflict != "" {
					return strings.Contains(got.conflict, c.conflict), got
				}
				return got.conflict == "" && (got.node == nil && c.want == "" || got.node != nil && got.node.Name == c.want), got
			})
		})
	}
}

// newRival makes a Machine without a Node that is called rival.
func (b *bench) newRival(has []string) {
	b.Helper()
	m := b.newMachine("r", func(m *clusterv1alpha1.Machine) { m.Name, m.Finalizers = "rival", nil })
	for _, address := range has {
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	b.check(server.user.Status().Update(b.Context(), m))
	b.Cleanup(func() { _ = server.user.Delete(context.Background(), m) }) // The test's own context has ended by then.
}

// TestChooseClaimed: a machine that goes takes the Node that it had claimed along, for pods are to
// be drained from it.
func TestChooseClaimed(t *testing.T) {
	now := metav1.Now()
	node := func(name, owner string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: idPrefix + "x"}}
		if owner != "" {
			n.Annotations = map[string]string{clusterv1alpha1.NodeMachineAnnotation: owner}
		}
		return n
	}
	for name, c := range map[string]struct {
		going bool
		nodes []*corev1.Node
		want  string
	}{
		"one that goes":                     {going: true, nodes: []*corev1.Node{node("late", ""), node("mine", "ns/m")}, want: "mine"},
		"one that stays":                    {nodes: []*corev1.Node{node("late", ""), node("mine", "ns/m")}},
		"one that goes and claimed none":    {going: true, nodes: []*corev1.Node{node("late", ""), node("other", "ns/other")}},
		"one that goes and claimed several": {going: true, nodes: []*corev1.Node{node("mine", "ns/m"), node("also", "ns/m")}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
			m.Spec.ProviderID = new(idPrefix + "x")
			if c.going {
				m.DeletionTimestamp = &now
			}
			got := choose(m, []string{idPrefix + "x"}, c.nodes)
			if got.node == nil && (c.want != "" || got.conflict == "") || got.node != nil && got.node.Name != c.want {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}
