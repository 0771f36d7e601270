package health

import (
	"testing"

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
