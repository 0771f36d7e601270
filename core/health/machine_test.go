package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestSignsAreReadOffTheMachine(t *testing.T) {
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
		want    Signs
	}{
		{"new", nil, Signs{}},
		{"booting", changes{phase("Provisioned"), condition("NodeReady", "NodeNotReady", "False")}, Signs{}},
		{"works", changes{phase("Running"), condition("NodeReady", "NodeReady", "True")}, Signs{CameUp: true, Ready: true}},
		{"silent", changes{phase("Running"), condition("NodeReady", "NodeUnknown", "Unknown")}, Signs{CameUp: true}},
		{"changed in place", changes{phase("Updating")}, Signs{CameUp: true}},
		{"forgotten by its driver before it joined", changes{phase("Unknown")}, Signs{}},
		{
			"forgotten by its driver later",
			changes{phase("Unknown"), func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{} }},
			Signs{CameUp: true},
		},
		{"failed", changes{phase("Failed")}, Signs{Failed: true, CameUp: true}},
		{
			"failed before it had a Node", changes{phase("Failed"), func(m *clusterv1alpha1.Machine) { m.Status.FailureReason = new("JoinTimeout") }},
			Signs{Failed: true},
		},
		{
			"its Node never became Ready",
			changes{phase("Failed"), condition("NodeReady", "JoinTimeout", "False"), func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{} }},
			Signs{Failed: true},
		},
		{"its Node is gone", changes{phase("Failed"), condition("NodeReady", "JoinTimeout", "False")}, Signs{Failed: true, CameUp: true}},
		{
			"its VM is gone",
			changes{phase("Failed"), condition("NodeReady", "NodeUnknown", "Unknown"), func(m *clusterv1alpha1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{} }},
			Signs{Failed: true, CameUp: true},
		},
		{
			"refused", changes{phase("Failed"), func(m *clusterv1alpha1.Machine) { m.Status.FailureReason = new("SpecInvalid") }},
			Signs{Failed: true, Refused: true},
		},
		{
			"switched off, and its Node has not noticed",
			changes{phase("Running"), condition("NodeReady", "NodeReady", "True"), condition("InstanceReady", "Stopped", "False")}, Signs{CameUp: true},
		},
		{
			"found unhealthy, and its Node is Ready",
			changes{phase("Running"), condition("NodeReady", "NodeReady", "True"), condition("HealthCheckSucceeded", "UnhealthyNode", "False")},
			Signs{CameUp: true},
		},
		{
			"spared by its health check",
			changes{phase("Running"), condition("HealthCheckSucceeded", "UnhealthyNode", "False"), condition("OwnerRemediated", "TooManyUnhealthy", "Unknown")},
			Signs{CameUp: true},
		},
		{
			"to be replaced for its health check",
			changes{phase("Running"), condition("HealthCheckSucceeded", "UnhealthyNode", "False"), condition("OwnerRemediated", "WaitingForRemediation", "False")},
			Signs{CameUp: true, Failed: true},
		},
		{"driver away", changes{phase("Running"), condition("InstanceReady", "DriverUnavailable", "Unknown")}, Signs{CameUp: true, DriverAway: true}},
		{"other account", changes{phase("Running"), condition("InstanceReady", "AccountChanged", "False")}, Signs{CameUp: true, DriverAway: true}},
		{"paused", changes{annotated("cluster.k8s.io/paused", "")}, Signs{Paused: true}},
		{"not paused", changes{annotated("cluster.k8s.io/paused", "false")}, Signs{}},
		{"its cluster is paused", changes{condition("Paused", "PausedByAnnotation", "True")}, Signs{Paused: true}},
		{
			"another system's", changes{func(m *clusterv1alpha1.Machine) { m.Finalizers = []string{"machine-delete-finalizer"} }},
			Signs{Foreign: true},
		},
		{"preserved", changes{annotated("cluster.k8s.io/preserve-machine", "true")}, Signs{Preserved: true}},
		{"going", changes{func(m *clusterv1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }}, Signs{Deleting: true}},
	} {
		m := &clusterv1alpha1.Machine{}
		for _, change := range tc.changes {
			change(m)
		}
		if diff := cmp.Diff(tc.want, SignsOf(m)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, diff)
		}
	}
}

func TestProblemIsToldInTheCloudsWords(t *testing.T) {
	type changes = func(*clusterv1alpha1.Machine)
	condition := func(kind, reason string, status metav1.ConditionStatus) changes {
		return func(m *clusterv1alpha1.Machine) {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
				Type: kind, Reason: reason, Status: status, Message: "in the cloud's words",
			})
		}
	}
	failed := func(m *clusterv1alpha1.Machine) { m.Status.Phase = clusterv1alpha1.MachinePhaseFailed }
	for _, tc := range []struct {
		name    string
		changes []changes
		want    string
	}{
		{"new", nil, ""},
		{"booting", []changes{condition("InstanceReady", clusterv1alpha1.ReasonInstanceBooting, "False")}, ""},
		{
			"without quota", []changes{condition("InstanceReady", "QuotaExceeded", "False")},
			"QuotaExceeded: in the cloud's words",
		},
		{
			"on its way out", []changes{
				condition("InstanceReady", "QuotaExceeded", "False"),
				func(m *clusterv1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			}, "",
		},
		{
			"failed for good", []changes{failed, func(m *clusterv1alpha1.Machine) { m.Status.FailureMessage = new("no such flavor\nand more") }},
			"no such flavor",
		},
		{
			"failed with a VM that is being deleted", []changes{failed, condition("InstanceReady", clusterv1alpha1.ReasonInstanceDeleting, "False")},
			clusterv1alpha1.ReasonInstanceDeleting + ": in the cloud's words",
		},
		{
			"failed without its Node", []changes{
				failed, condition("InstanceReady", clusterv1alpha1.ReasonInstanceRunning, "True"), condition("NodeReady", "JoinTimeout", "False"),
			}, "JoinTimeout: in the cloud's words",
		},
		{
			"found unhealthy", []changes{condition("HealthCheckSucceeded", "UnhealthyNode", "False")}, "UnhealthyNode: in the cloud's words",
		},
		{"failed, and nothing tells why", []changes{failed}, "failed"},
	} {
		m := &clusterv1alpha1.Machine{}
		for _, change := range tc.changes {
			change(m)
		}
		if got := Problem(m); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
