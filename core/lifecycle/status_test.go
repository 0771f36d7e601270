package lifecycle

import (
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// TestStatusEqual: two statuses are equal unless a reader could tell them apart.
func TestStatusEqual(t *testing.T) {
	full := func() Status {
		return Status{
			Phase: clusterv1alpha1.MachinePhaseRunning, Conditions: []Condition{{Type: "Ready", Status: "True", Reason: "MachineReady"}},
			NodeName: "node", Addresses: []instance.Address{{Type: "InternalIP", Address: "192.0.2.1"}},
			LastOperation: &Operation{Type: opCreate, State: "Succeeded", At: epoch}, LastKnownState: []byte("x"),
			Failure: &Failure{Reason: "Failed", Message: "words"},
		}
	}
	for name, c := range map[string]struct {
		change func(*Status)
		equal  bool
	}{
		"nothing":                    {func(*Status) {}, true},
		"the time of the operation":  {func(s *Status) { s.LastOperation.At = epoch.Add(1) }, true},
		"the phase":                  {func(s *Status) { s.Phase = clusterv1alpha1.MachinePhaseFailed }, false},
		"a condition":                {func(s *Status) { s.Conditions[0].Message = "other" }, false},
		"the Node":                   {func(s *Status) { s.NodeName = "" }, false},
		"an address":                 {func(s *Status) { s.Addresses = nil }, false},
		"the operation":              {func(s *Status) { s.LastOperation.State = "Failed" }, false},
		"no operation":               {func(s *Status) { s.LastOperation = nil }, false},
		"what the cloud said last":   {func(s *Status) { s.LastKnownState = nil }, false},
		"the failure":                {func(s *Status) { s.Failure.Message = "other" }, false},
		"no failure":                 {func(s *Status) { s.Failure = nil }, false},
		"neither failure, nor a try": {func(s *Status) { s.Failure, s.LastOperation = nil, nil }, false},
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
