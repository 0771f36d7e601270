package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// criticalDaemonSet runs on the Nodes of the pool gated.
const criticalDaemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: kube-system, name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      priorityClassName: system-node-critical
      nodeSelector: {pool: gated}
      tolerations: [{operator: Exists}]
      containers: [{name: network, image: network}]
`

// daemonSetsKept is how long the manager may know the DaemonSets of before: docs/adr/0032.
const daemonSetsKept = 10 * time.Second

// A machine is Running once its Node is Ready and the pods of critical DaemonSets run there: then
// its start-up taint goes, and no sooner.
func TestLIFE5_TheStartupTaintGoesWhenTheNodeCanTakePods(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	const taint = "example.com/starting"
	network := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, criticalDaemonSet, u.own), &network.Object); err != nil {
		t.Fatal(err)
	}
	if err := u.client.Create(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.client.Delete(context.WithoutCancel(t.Context()), network); err != nil {
			t.Error(err)
		}
	})
	u.watchFor(daemonSetsKept, func(*clusterv1alpha1.Machine) {})
	allow := u.forbid(`{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}`)
	u.apply(`apiVersion: cluster.k8s.io/v1alpha1
kind: Cluster
metadata: {name: gated}
spec: {bootstrap: {startupTaints: [{key: ` + taint + `, effect: NoSchedule}]}}
`)
	u.apply(deployment("gated", 1, map[string]string{"spec": "\n      clusterRef: {name: gated}"}))
	u.awaitCondition(clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonWaitingForDaemonSets, "kube-system/"+u.own)
	if !u.isTainted(taint) {
		t.Error("the start-up taint has gone before the DaemonSet's pod runs")
	}
	if phase := u.machine().Status.Phase; phase != clusterv1alpha1.MachinePhaseProvisioned {
		t.Errorf("the machine is %s", phase)
	}
	allow()
	// Its controller tries again at once when it changes; else that may take minutes.
	patch := []byte(`{"metadata":{"annotations":{"try":"again"}}}`)
	if err := u.client.Patch(t.Context(), network, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	u.awaitRunning(1)
	eventually(t, "the start-up taint to go", func(context.Context) error {
		if u.isTainted(taint) {
			return errors.New("it is there")
		}
		return nil
	})
}

// isTainted says whether the machine's Node has the taint.
func (u *user) isTainted(key string) bool {
	u.t.Helper()
	ref := u.machine().Status.NodeRef
	if ref == nil {
		u.t.Fatal("the machine has no Node")
	}
	node := &corev1.Node{}
	if err := u.client.Get(u.t.Context(), client.ObjectKey{Name: ref.Name}, node); err != nil {
		u.t.Fatal(err)
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}
