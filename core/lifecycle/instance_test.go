package lifecycle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// TestExplain: wrong fields are named by their whole path.
func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		fields []instance.Field
		want   string
	}{
		"no field": {nil, "words"},
		"fields": {
			[]instance.Field{{Path: "size", Description: "is wrong"}, {Path: "disks[0].type", Description: "is missing"}},
			"spec.providerSpec.value.cloudProviderSpec.size: is wrong; spec.providerSpec.value.cloudProviderSpec.disks[0].type: is missing",
		},
		"the whole": {[]instance.Field{{Description: "is no object"}}, "spec.providerSpec.value.cloudProviderSpec: is no object"},
		"an element": {
			[]instance.Field{{Path: `["a.b"]`, Description: "is unknown"}},
			`spec.providerSpec.value.cloudProviderSpec["a.b"]: is unknown`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explain(&instance.Failure{Message: "words", Fields: c.fields}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestInstanceReadyIsUnknownWhereNobodyCanTell tells apart what is False and what nobody knows.
func TestInstanceReadyIsUnknownWhereNobodyCanTell(t *testing.T) {
	for class, want := range map[instance.Class]metav1.ConditionStatus{
		instance.OutcomeUnknown: metav1.ConditionUnknown, instance.Unavailable: metav1.ConditionUnknown,
		instance.Quota: metav1.ConditionFalse, instance.Internal: metav1.ConditionFalse,
	} {
		if got := describeInstanceReady(given(intended), decision{failure: &instance.Failure{Class: class}}).Status; got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
	}
}

// TestAPollThatFailsIsToldOfAVMThatRuns: of another the condition has more to say.
func TestAPollThatFailsIsToldOfAVMThatRuns(t *testing.T) {
	s := given(running, refusedLook(instance.AccountChanged, true))
	runs, stopped := clusterv1alpha1.ReasonInstanceRunning, clusterv1alpha1.ReasonInstanceStopped
	for _, c := range []struct {
		shown        bool
		reason, want string
	}{
		{true, runs, string(instance.AccountChanged)}, {false, runs, runs}, {true, stopped, stopped}, {false, stopped, stopped},
	} {
		if got := describeInstanceReady(s, decision{pollFailureShown: c.shown, instanceReason: c.reason}).Reason; got != c.want {
			t.Errorf("%s, shown %t: %s, want %s", c.reason, c.shown, got, c.want)
		}
	}
}

// TestACreateThatFailedHalfWayIsNoVMThatFailed: it has left something, and no VM.
func TestACreateThatFailedHalfWayIsNoVMThatFailed(t *testing.T) {
	named := func(s *State) { s.Machine.ProviderID = "cloud:///1" }
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"leftovers":                 {given(seen(instance.Instance{State: instance.Failed})), "The create has failed half-way."},
		"leftovers of a VM":         {given(named, seen(instance.Instance{State: instance.Failed})), "The cloud has given the VM up."},
		"a VM, not written down":    {given(seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Failed})), "The cloud has given the VM up."},
		"a VM that is written down": {given(named, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Failed})), "The cloud has given the VM up."},
	} {
		if got := describeArriving(c.state, clusterv1alpha1.ReasonInstanceFailed).Message; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
