package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestStatusesAreEqualUnlessAReaderCouldTell: two statuses are equal unless a reader could tell
// them apart.
func TestStatusesAreEqualUnlessAReaderCouldTell(t *testing.T) {
	full := func() Status {
		return Status{
			Phase: clusterv1alpha1.MachinePhaseRunning, Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "MachineReady"}},
			NodeRef: &corev1.ObjectReference{Name: "node", UID: "1"}, Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.1"}},
			LastOperation: &clusterv1alpha1.LastOperation{Type: opCreate, State: "Succeeded", LastUpdateTime: metav1.NewTime(epoch)}, LastKnownState: []byte("x"),
			FailureReason: new("Failed"), FailureMessage: new("words"), NodeInfo: &clusterv1alpha1.NodeInfo{KernelVersion: "6.1"},
		}
	}
	for name, c := range map[string]struct {
		change func(*Status)
		equal  bool
	}{
		"nothing":                    {func(*Status) {}, true},
		"the time of the operation":  {func(s *Status) { s.LastOperation.LastUpdateTime = metav1.NewTime(epoch.Add(1)) }, true},
		"the phase":                  {func(s *Status) { s.Phase = clusterv1alpha1.MachinePhaseFailed }, false},
		"a condition":                {func(s *Status) { s.Conditions[0].Message = "other" }, false},
		"the status of a condition":  {func(s *Status) { s.Conditions[0].Status = "False" }, false},
		"the reason of a condition":  {func(s *Status) { s.Conditions[0].Reason = "other" }, false},
		"the type of a condition":    {func(s *Status) { s.Conditions[0].Type = "Other" }, false},
		"the time of a condition":    {func(s *Status) { s.Conditions[0].LastTransitionTime = metav1.NewTime(epoch) }, true},
		"the Node":                   {func(s *Status) { s.NodeRef = nil }, false},
		"the Node's uid":             {func(s *Status) { s.NodeRef = &corev1.ObjectReference{Name: "node", UID: "2"} }, false},
		"what runs on the Node":      {func(s *Status) { s.NodeInfo = &clusterv1alpha1.NodeInfo{KernelVersion: "6.12"} }, false},
		"no word of what runs there": {func(s *Status) { s.NodeInfo = nil }, true},
		"an address":                 {func(s *Status) { s.Addresses = nil }, false},
		"the operation":              {func(s *Status) { s.LastOperation.State = "Failed" }, false},
		"no operation":               {func(s *Status) { s.LastOperation = nil }, false},
		"what the cloud said last":   {func(s *Status) { s.LastKnownState = nil }, false},
		"the failure":                {func(s *Status) { s.FailureMessage = new("other") }, false},
		"the failure's reason":       {func(s *Status) { s.FailureReason = new("other") }, false},
		"no failure":                 {func(s *Status) { s.FailureReason, s.FailureMessage = nil, nil }, false},
		"neither failure, nor a try": {func(s *Status) { s.FailureReason, s.FailureMessage, s.LastOperation = nil, nil, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := full(), full()
			c.change(&other)
			if one.Equal(other) != c.equal || other.Equal(one) != c.equal {
				t.Errorf("equal %t and %t, want %t", one.Equal(other), other.Equal(one), c.equal)
			}
		})
	}
	if !(Status{}).Equal(Status{}) {
		t.Error("two empty statuses differ")
	}
}
