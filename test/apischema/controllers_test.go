package apischema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestMachineRoundTrip writes a Machine as controllers do and reads it back the
// same, spec and status.
func TestMachineRoundTrip(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	written := fullMachine(u.namespace)
	machine := written.DeepCopy()
	if err := u.server.client.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.Spec, machine.Spec); diff != "" {
		t.Errorf("spec (-written +read):\n%s", diff)
	}

	now := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Local())
	status := clusterv1alpha1.MachineStatus{
		Phase:              clusterv1alpha1.MachinePhaseFailed,
		NodeRef:            &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "full", UID: "u"},
		Addresses:          []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		ObservedGeneration: 1,
		LastOperation: &clusterv1alpha1.LastOperation{
			Type: clusterv1alpha1.OperationCreate, State: clusterv1alpha1.OperationFailed, Description: "no", LastUpdateTime: now,
		},
		LastKnownState: []byte{0, 1, 255},
		ErrorReason:    new(clusterv1alpha1.ReasonSpecInvalid),
		ErrorMessage:   new("no such size"),
		FailureReason:  new(clusterv1alpha1.ReasonSpecInvalid),
		FailureMessage: new("no such size"),
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: now,
		Reason: clusterv1alpha1.ReasonSpecInvalid, Message: "no such size", ObservedGeneration: 1,
	})
	machine.Status = status
	if err := u.server.client.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	var read clusterv1alpha1.Machine
	if err := u.server.client.Get(t.Context(), client.ObjectKeyFromObject(machine), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(status, read.Status); diff != "" {
		t.Errorf("status (-written +read):\n%s", diff)
	}
}

// TestEmptyObjectsStayAbsent guards readers that take mere presence for meaning:
// autoscalers count any nodeRef and any failureMessage.
func TestEmptyObjectsStayAbsent(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	machine := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "plain"},
		Spec:       machineSpec(),
	}
	if err := u.server.client.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	machine.Status.Phase = clusterv1alpha1.MachinePhasePending
	if err := u.server.client.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if got, want := u.do("", "get", "ma/plain", "-o", "jsonpath={.status}"), `{"phase":"Pending"}`; got != want {
		t.Errorf("status: got %s, want %s", got, want)
	}
	want := `{"providerSpec":{"value":{"cloudProvider":"fake","cloudProviderSpec":{"size":"small"},"operatingSystem":"ubuntu"}},"versions":{"kubelet":"1.36.3"}}`
	if got := u.do("", "get", "ma/plain", "-o", "jsonpath={.spec}"); got != want {
		t.Errorf("spec:\n got %s\nwant %s", got, want)
	}
}
