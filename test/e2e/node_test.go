package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// standalone renders a Machine that no set owns. spec is added to its spec, line by line with four
// spaces less than that has.
func standalone(name, spec string) string {
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: %s
  labels: {pool: alone}
spec:
  versions: {kubelet: 1.34.3}
  providerSpec:
    value:
      cloudProvider: fake
      cloudProviderSpec: {flavor: small, image: ubuntu-24.04}
      operatingSystem: ubuntu
%s`, name, spec)
}

// nodeOf returns the Node of a Machine.
func (u *user) nodeOf(machine string) (*corev1.Node, error) {
	m, found := u.find(machine)
	if !found || m.Status.NodeRef == nil {
		return nil, fmt.Errorf("machine %s has no Node", machine)
	}
	node := &corev1.Node{}
	err := u.workload.Get(u.t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node)
	return node, err
}

// A Node follows its Machine: what comes is set, what was Millwright's and is gone goes, what is
// foreign stays.
func TestLIFE6_NodeFollowsItsMachine(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(standalone("followed", "  metadata:\n    annotations: {example.com/first: \"1\"}\n"+
		"  taints: [{key: example.com/first, effect: PreferNoSchedule}]\n"))
	u.awaitRunning(1)
	node, err := u.nodeOf("followed")
	if err != nil {
		t.Fatal(err)
	}
	if node.Labels["pool"] != "alone" || node.Annotations["example.com/first"] != "1" || !tainted(node, "example.com/first") {
		t.Fatalf("the Node joined with labels %v, annotations %v, taints %v", node.Labels, node.Annotations, node.Spec.Taints)
	}
	u.kubectl("label", "node", node.Name, "example.com/theirs=yes")
	u.kubectl("taint", "node", node.Name, "example.com/theirs=:PreferNoSchedule")
	u.kubectl("label", "machine", "followed", "pool-", "example.com/second=2")
	u.kubectl("patch", "machine", "followed", "--type=merge", "-p",
		`{"spec":{"metadata":{"annotations":{"example.com/first":null}},"taints":[{"key":"example.com/second","effect":"PreferNoSchedule"}]}}`)
	follows := func(context.Context) error {
		node, err := u.nodeOf("followed")
		if err != nil {
			return err
		}
		_, pool := node.Labels["pool"]
		_, first := node.Annotations["example.com/first"]
		stale := pool || first || tainted(node, "example.com/first")
		if stale || node.Labels["example.com/second"] != "2" || !tainted(node, "example.com/second") ||
			node.Labels["example.com/theirs"] != "yes" || !tainted(node, "example.com/theirs") {
			return fmt.Errorf("the Node has labels %v, annotations %v, taints %v", node.Labels, node.Annotations, node.Spec.Taints)
		}
		return nil
	}
	eventually(t, "the Node to follow its Machine", follows)
	u.kubectl("taint", "node", node.Name, "example.com/second-")
	u.kubectl("label", "node", node.Name, "example.com/second-")
	eventually(t, "what is Millwright's to come back", follows)
	if m := u.machine(); m.Status.Phase != clusterv1alpha1.MachinePhaseRunning {
		t.Errorf("the machine became %s", m.Status.Phase)
	}
	u.checkOneVMEach()
}

func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}
