package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
)

// eachNode waits until check is content with every Machine and its Node.
func (u *user) eachNode(what string, check func(*clusterv1alpha1.Machine, *corev1.Node) error) {
	u.t.Helper()
	eventually(u.t, what, func(context.Context) error {
		for _, m := range u.machines() {
			node, err := u.nodeOf(m.Name)
			if err != nil {
				return err
			}
			if err := check(&m, node); err != nil {
				return fmt.Errorf("%s: %w; the Node has labels %v, annotations %v, taints %v", m.Name, err, node.Labels, node.Annotations, node.Spec.Taints)
			}
		}
		return nil
	})
}

// A label, an annotation, a taint and a timeout of a MachineDeployment reach its Machines and their
// Nodes, and go again. No Machine is replaced, and what is foreign stays.
func TestROL3_TemplateReachesTheNodes(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("dressed", 2, nil))
	u.awaitRunning(2)
	before := u.uids()
	for _, m := range u.machines() {
		node, err := u.nodeOf(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		u.kubectl("label", "node", node.Name, "example.com/theirs=yes")
		u.kubectl("taint", "node", node.Name, "example.com/theirs=:PreferNoSchedule")
	}
	u.kubectl("patch", "machinedeployment", "dressed", "--type=merge", "-p", `{"spec":{"template":{`+
		`"metadata":{"labels":{"example.com/team":"a"}},"spec":{"metadata":{"annotations":{"example.com/note":"b"}},`+
		`"taints":[{"key":"example.com/ours","effect":"PreferNoSchedule"}],"nodeDrainTimeout":"7m"}}}}`)
	u.eachNode("what the template gives to arrive", func(m *clusterv1alpha1.Machine, node *corev1.Node) error {
		if node.Labels["example.com/team"] != "a" || node.Annotations["example.com/note"] != "b" || !tainted(node, "example.com/ours") {
			return fmt.Errorf("something is missing")
		}
		if m.Spec.NodeDrainTimeout == nil || m.Spec.NodeDrainTimeout.Minutes() != 7 {
			return fmt.Errorf("its timeout is %v", m.Spec.NodeDrainTimeout)
		}
		return nil
	})
	u.kubectl("patch", "machinedeployment", "dressed", "--type=merge", "-p", `{"spec":{"template":{`+
		`"metadata":{"labels":{"example.com/team":null}},"spec":{"metadata":null,"taints":null,"nodeDrainTimeout":null}}}}`)
	u.eachNode("what the template gave to go", func(m *clusterv1alpha1.Machine, node *corev1.Node) error {
		_, team := node.Labels["example.com/team"]
		_, note := node.Annotations["example.com/note"]
		if team || note || tainted(node, "example.com/ours") || m.Spec.NodeDrainTimeout != nil {
			return fmt.Errorf("something is left")
		}
		if node.Labels["example.com/theirs"] != "yes" || !tainted(node, "example.com/theirs") {
			return fmt.Errorf("something foreign is gone")
		}
		return nil
	})
	u.rolledOut("dressed")
	if after := u.uids(); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("machines were replaced: uids %v became %v", before, after)
	}
	if out := u.rollout("history", "dressed"); strings.Count(out, "\n") != 2 {
		t.Errorf("there is a new revision:\n%s", out)
	}
}

// heldAndTainted says what a rollout does to a Node.
func heldAndTainted(node *corev1.Node) (held, outdated bool) {
	return node.Annotations[clusterv1alpha1.ScaleDownDisabledAnnotation] == "true", tainted(node, clusterv1alpha1.OutdatedTaint)
}

// Old Nodes of a rollout are tainted, and no Node of it is scaled down, also while it is paused and
// the manager was killed. Afterwards all of that is gone.
func TestROL6_NodesOfARollout(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("marked", 2, map[string]string{"kubelet": "1.34.1"}))
	u.kubectl("annotate", "machinedeployment", "marked",
		clusterv1alpha1.NodeGroupMinSizeAnnotation+"=1", clusterv1alpha1.NodeGroupMaxSizeAnnotation+"=9")
	u.awaitRunning(2)
	marked := func(rolling bool) func(*clusterv1alpha1.Machine, *corev1.Node) error {
		return func(m *clusterv1alpha1.Machine, node *corev1.Node) error {
			old := m.Spec.Versions.Kubelet == "1.34.1"
			if held, outdated := heldAndTainted(node); held != rolling || outdated != (rolling && old) {
				return fmt.Errorf("it is held: %t, outdated: %t", held, outdated)
			}
			return nil
		}
	}
	u.eachNode("no Node to be marked", marked(false))

	// Its new machines take a while to count, so that both templates have Nodes.
	u.kubectl("patch", "machinedeployment", "marked", "--type=merge", "-p",
		`{"spec":{"minReadySeconds":3600,"template":{"spec":{"versions":{"kubelet":"1.34.2"}}}}}`)
	u.awaitRunning(3)
	u.kubectl("scale", "machinedeployment", "marked", "--replicas=3")
	u.awaitRunning(4)
	u.eachNode("all Nodes to be held, and old ones tainted", marked(true))
	u.rollout("pause", "marked")
	u.awaitProgressing("marked", clusterv1alpha1.ReasonDeploymentPaused)
	u.kill([]string{stack.Manager})
	u.revive([]string{stack.Manager})
	u.watchFor(5*time.Second, func(*clusterv1alpha1.Machine) {})
	u.eachNode("all Nodes to be held still", marked(true))
	u.kubectl("patch", "machinedeployment", "marked", "--type=merge", "-p", `{"spec":{"minReadySeconds":0,"paused":false}}`)
	u.rolledOut("marked")
	u.awaitRunning(3)
	u.eachNode("no Node to be marked after it", marked(false))
}
