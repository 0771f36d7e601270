package machine

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestFindNode: by providerID, else by address, else by name, and never a Node that is somebody else's.
func TestFindNode(t *testing.T) {
	const id, address = idPrefix + "x", "192.0.2.7"
	type nodes map[string]func(*corev1.Node)
	withID := func(id string) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.ProviderID = id } }
	withAddress := func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	}
	for name, c := range map[string]struct {
		nodes    nodes
		noID     bool
		young    bool
		want     string
		conflict string
	}{
		"none":                           {},
		"by providerID":                  {nodes: nodes{"other": withID(id), "m": func(*corev1.Node) {}}, want: "other"},
		"by address":                     {nodes: nodes{"other": withAddress}, want: "other"},
		"by name":                        {nodes: nodes{"m": func(*corev1.Node) {}, "other": func(*corev1.Node) {}}, want: "m"},
		"a machine that never had a VM":  {nodes: nodes{"m": withAddress}, noID: true},
		"two by address":                 {nodes: nodes{"one": withAddress, "two": withAddress}, conflict: "one, two"},
		"by name, of another VM":         {nodes: nodes{"m": withID(idPrefix + "y")}, conflict: idPrefix + "y"},
		"an address that a VM took over": {nodes: nodes{"other": func(n *corev1.Node) { withAddress(n); n.Spec.ProviderID = idPrefix + "y" }}},
		"one that was there before":      {nodes: nodes{"m": func(*corev1.Node) {}}, young: true, conflict: "was there before"},
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
			if !c.noID {
				m.Spec.ProviderID = new(id)
			}
			for name, change := range c.nodes {
				b.newNode(&clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}, change)
			}
			r := &reconciler{nodes: b.nodeCache()}
			b.await("the match", func() (bool, any) {
				got, err := r.findNode(t.Context(), m, "m")
				b.check(err)
				if c.conflict != "" {
					return strings.Contains(got.conflict, c.conflict), got
				}
				return got.conflict == "" && (got.node == nil && c.want == "" || got.node != nil && got.node.Name == c.want), got
			})
		})
	}
}
