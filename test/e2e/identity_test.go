package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/audit"
)

// What is written in the API, as text: these tests also run against releases that do not have it
// yet.
const (
	notAdopted      = "NotAdopted"
	machineUIDTaken = "MachineUIDTaken"
)

// A Machine that somebody makes with the providerID of a Node which is none of Millwright's: that
// Node is never written to, neither while the Machine is there nor when it is deleted.
func TestSAFE8_AForeignNodeIsNeverTouched(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	const id = "fake:///fake-1a/control-plane-1"
	uid := string(uuid.NewUUID())
	u.makeNode("control-plane-1", id)
	u.apply(machineOf("foreign", uid, "fake") + "  providerID: " + id + "\n")
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, notAdopted, "knows no VM")
	u.kubectl("delete", "machine", "foreign", "--timeout="+waitLimit.String())
	var node corev1.Node
	if err := u.client.Get(t.Context(), client.ObjectKey{Name: "control-plane-1"}, &node); err != nil {
		t.Fatalf("the Node is gone: %v", err)
	}
	if node.Spec.Unschedulable || len(node.Annotations[clusterv1alpha1.NodeMachineAnnotation]) > 0 {
		t.Errorf("the Node is taken over: %+v", node.ObjectMeta)
	}
	requests, err := audit.NewLog(u.AuditLogPath()).Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if r.User == stack.ManagerUser && r.Resource == "nodes" && r.Name == "control-plane-1" {
			t.Errorf("the manager wrote to the Node: %+v", r)
		}
	}
	if ever := u.vmsEver()[uid]; ever != 0 {
		t.Errorf("%d VMs were made", ever)
	}
}

// Two Machines with one machineUID, as a copied manifest makes them: the first keeps its VM and its
// Node, the second goes without a trace.
func TestSAFE8_OneMachineUIDTwice(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	uid := string(uuid.NewUUID())
	u.apply(machineOf("first", uid, "fake"))
	u.awaitRunning(1)
	first := u.machine()
	node := u.nodeIn("first")
	u.apply(machineOf("second", uid, "fake") + "  providerID: " + *first.Spec.ProviderID + "\n")
	eventually(t, "the second to be refused", func(ctx context.Context) error {
		return u.reasonOf(ctx, "second", machineUIDTaken)
	})
	u.kubectl("delete", "machine", "second", "--timeout="+waitLimit.String())
	u.awaitRunning(1)
	if after := u.nodeIn("first"); after.UID != node.UID || after.Spec.Unschedulable {
		t.Errorf("the first one's Node was touched: %+v", after.ObjectMeta)
	}
	u.checkOneVMEach()
	if vm := u.vm(*first.Spec.ProviderID); vm.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING {
		t.Errorf("the first one's VM is %s", vm.GetState())
	}
}

// A Node that has another of its VM's ids, as the driver declares them, is the Machine's, and the
// Machine takes the Node's form over.
func TestLIFE4_NodeWithAnotherIDOfItsVM(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(machineOf("aliased", string(uuid.NewUUID()), "fake"))
	u.awaitRunning(1)
	m := u.machine()
	vm := u.vm(*m.Spec.ProviderID)
	alias := fmt.Sprintf("fake://%s/%s/%s", vm.GetRegion(), vm.GetZone(), vm.GetId())
	if err := u.client.Delete(t.Context(), u.nodeIn(m.Name)); err != nil {
		t.Fatal(err)
	}
	u.makeNode(m.Name, alias)
	eventually(t, "the Node's form to be taken over", func(context.Context) error {
		m = u.machine()
		if *m.Spec.ProviderID != alias || !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1alpha1.ConditionReady) {
			return fmt.Errorf("providerID %s%s", *m.Spec.ProviderID, words(m.Status.Conditions))
		}
		node, err := u.nodeOf(m.Name)
		if err != nil {
			return err
		}
		if node.Spec.ProviderID != alias || node.Annotations[clusterv1alpha1.NodeMachineAnnotation] != u.namespace+"/"+m.Name {
			return fmt.Errorf("the Node is not the machine's: %+v", node)
		}
		return nil
	})
	u.checkOneVMEach()
	u.kubectl("delete", "machine", m.Name, "--timeout="+waitLimit.String())
	if err := u.client.Get(t.Context(), client.ObjectKey{Name: m.Name}, &corev1.Node{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Node is still there: %v", err)
	}
}

// makeNode makes a Node that is Ready, as a kubelet would that is none of the simulated ones. It
// goes with the test.
func (u *user) makeNode(name, providerID string) {
	u.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	if err := u.client.Create(u.t.Context(), node); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = client.IgnoreNotFound(u.client.Delete(context.WithoutCancel(u.t.Context()), node)) })
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "up",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if err := u.client.Status().Patch(u.t.Context(), node, client.MergeFrom(before)); err != nil {
		u.t.Fatal(err)
	}
}

// nodeIn returns the Node of a Machine, and ends the test where there is none.
func (u *user) nodeIn(machine string) *corev1.Node {
	u.t.Helper()
	node, err := u.nodeOf(machine)
	if err != nil {
		u.t.Fatal(err)
	}
	return node
}

// reasonOf returns an error unless InstanceReady of a Machine has the reason.
func (u *user) reasonOf(ctx context.Context, name, reason string) error {
	var m clusterv1alpha1.Machine
	if err := u.client.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, &m); err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == clusterv1alpha1.ConditionInstanceReady && c.Reason == reason
	}) {
		return fmt.Errorf("machine %s says%s", name, words(m.Status.Conditions))
	}
	return nil
}
