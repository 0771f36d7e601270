package health

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestMachineIsReadForScaling(t *testing.T) {
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		clusterv1alpha1.PreserveMachineAnnotation: "", clusterv1alpha1.MachinePriorityAnnotation: "-7",
		clusterv1alpha1.DeleteMachineAnnotation: "",
	}}}
	m.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonInstanceStopped,
	}}
	if f := MachineOf(m); !f.Preserved || !f.Stopped || !f.Marked || f.Priority != -7 {
		t.Errorf("%+v", f)
	}
	m.Annotations[clusterv1alpha1.MachinePriorityAnnotation] = "high"
	if f := MachineOf(m); f.Priority != 0 {
		t.Errorf("a priority that is no number is %d", f.Priority)
	}
}

func TestMachineWithoutAVMOfItsOwnIsUnadopted(t *testing.T) {
	for _, tc := range []struct {
		reason string
		status metav1.ConditionStatus
		want   bool
	}{
		{clusterv1alpha1.ReasonNotAdopted, metav1.ConditionFalse, true},
		{clusterv1alpha1.ReasonMachineUIDTaken, metav1.ConditionFalse, true},
		{clusterv1alpha1.ReasonNotAdopted, metav1.ConditionUnknown, false},
		{clusterv1alpha1.ReasonInstanceMissing, metav1.ConditionFalse, false},
		{clusterv1alpha1.ReasonInstanceRunning, metav1.ConditionTrue, false},
	} {
		m := &clusterv1alpha1.Machine{}
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionInstanceReady, Status: tc.status, Reason: tc.reason}}
		if got := MachineOf(m).Unadopted; got != tc.want {
			t.Errorf("InstanceReady=%s %s: unadopted %t, want %t", tc.status, tc.reason, got, tc.want)
		}
	}
	m := &clusterv1alpha1.Machine{}
	if f := MachineOf(m); f.Unadopted || f.HasNode {
		t.Errorf("a new Machine is %+v", f)
	}
	m.Status.NodeRef = &corev1.ObjectReference{}
	if !MachineOf(m).HasNode {
		t.Error("a Machine with a nodeRef has no Node")
	}
}
