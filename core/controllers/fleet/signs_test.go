package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
)

func TestSigns(t *testing.T) {
	condition := func(kind, reason string, status metav1.ConditionStatus) func(*clusterv1alpha1.Machine) {
		return func(m *clusterv1alpha1.Machine) {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Reason: reason, Status: status})
		}
	}
	phase := func(p clusterv1alpha1.MachinePhase) func(*clusterv1alpha1.Machine) {
		return func(m *clusterv1alpha1.Machine) { m.Status.Phase = p }
	}
	annotated := func(name, value string) func(*clusterv1alpha1.Machine) {
		return func(m *clusterv1alpha1.Machine) { m.Annotations = map[string]string{name: value} }
	}
	type changes = []func(*clusterv1alpha1.Machine)
	for _, tc := range []struct {
		name    string
		changes changes
		want    health.Signs
	}{
		{"new", nil, health.Signs{}},
		{"booting", changes{phase("Provisioned"), condition("NodeReady", "NodeNotReady", "False")}, health.Signs{}},
		{"works", changes{phase("Running"), condition("NodeReady", "NodeReady", "True")}, health.Signs{CameUp: true, Ready: true}},
		{"silent", changes{phase("Running"), condition("NodeReady", "NodeUnknown", "Unknown")}, health.Signs{CameUp: true}},
		{"changed in place", changes{phase("Updating")}, health.Signs{CameUp: true}},
		{"forgotten by its driver before it joined", changes{phase("Unknown")}, health.Signs{}},
		{
			"forgotten by its driver later",
			changes{phase("Unknown"), func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{} }},
			health.Signs{CameUp: true},
		},
		{"failed", changes{phase("Failed")}, health.Signs{Failed: true, CameUp: true}},
		{
			"failed before it had a Node", changes{phase("Failed"), func(m *clusterv1alpha1.Machine) { m.Status.FailureReason = new("JoinTimeout") }},
			health.Signs{Failed: true},
		},
		{
			"its Node never became Ready",
			changes{phase("Failed"), condition("NodeReady", "JoinTimeout", "False"), func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{} }},
			health.Signs{Failed: true},
		},
		{"its Node is gone", changes{phase("Failed"), condition("NodeReady", "JoinTimeout", "False")}, health.Signs{Failed: true, CameUp: true}},
		{
			"its VM is gone",
			changes{phase("Failed"), condition("NodeReady", "NodeUnknown", "Unknown"), func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{} }},
			health.Signs{Failed: true, CameUp: true},
		},
		{
			"refused", changes{phase("Failed"), func(m *clusterv1alpha1.Machine) { m.Status.FailureReason = new("SpecInvalid") }},
			health.Signs{Failed: true, Refused: true},
		},
		{
			"switched off, and its Node has not noticed",
			changes{phase("Running"), condition("NodeReady", "NodeReady", "True"), condition("InstanceReady", "Stopped", "False")}, health.Signs{CameUp: true},
		},
		{"driver away", changes{phase("Running"), condition("InstanceReady", "DriverUnavailable", "Unknown")}, health.Signs{CameUp: true, DriverAway: true}},
		{"other account", changes{phase("Running"), condition("InstanceReady", "AccountChanged", "False")}, health.Signs{CameUp: true, DriverAway: true}},
		{"paused", changes{annotated("cluster.k8s.io/paused", "")}, health.Signs{Paused: true}},
		{"not paused", changes{annotated("cluster.k8s.io/paused", "false")}, health.Signs{}},
		{"its cluster is paused", changes{condition("Paused", "PausedByAnnotation", "True")}, health.Signs{Paused: true}},
		{
			"another system's", changes{func(m *clusterv1alpha1.Machine) { m.Finalizers = []string{"machine-delete-finalizer"} }},
			health.Signs{Foreign: true},
		},
		{"preserved", changes{annotated("cluster.k8s.io/preserve-machine", "true")}, health.Signs{Preserved: true}},
		{"going", changes{func(m *clusterv1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }}, health.Signs{Deleting: true}},
	} {
		m := &clusterv1alpha1.Machine{}
		for _, change := range tc.changes {
			change(m)
		}
		if diff := cmp.Diff(tc.want, Signs(m)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, diff)
		}
	}
}

func TestFactsForScaling(t *testing.T) {
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		clusterv1alpha1.PreserveMachineAnnotation: "", clusterv1alpha1.MachinePriorityAnnotation: "-7",
		clusterv1alpha1.DeleteMachineAnnotation: "",
	}}}
	m.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonInstanceStopped,
	}}
	if f := Facts(m); !f.Preserved || !f.Stopped || !f.Marked || f.Priority != -7 {
		t.Errorf("%+v", f)
	}
	m.Annotations[clusterv1alpha1.MachinePriorityAnnotation] = "high"
	if f := Facts(m); f.Priority != 0 {
		t.Errorf("a priority that is no number is %d", f.Priority)
	}
}
