package instance

import "testing"

func TestStateToRepeatComesFromTheAnswerOrTheFailure(t *testing.T) {
	for _, tc := range []struct {
		name    string
		outcome Outcome
		want    string
	}{
		{"a create that succeeded", Outcome{Instance: &Instance{LastKnownState: []byte("made")}}, "made"},
		{"a create that failed half-way", Outcome{Failure: &Failure{LastKnownState: []byte("half")}}, "half"},
		{
			"the failure is the newer of the two",
			Outcome{Instance: &Instance{LastKnownState: []byte("made")}, Failure: &Failure{}}, "",
		},
		{"a delete that left nothing", Outcome{}, ""},
	} {
		if got := string(tc.outcome.LastKnownState()); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestInstanceIsKnownByAllItsIDs(t *testing.T) {
	vm := Instance{
		ProviderID:           "cloud:///1",
		ProviderIDAliases:    []string{"cloud://region/1"},
		DuplicateProviderIDs: []string{"cloud:///2"},
	}
	for id, want := range map[string]bool{
		"cloud:///1": true, "cloud://region/1": true, "cloud:///2": true, "cloud:///3": false, "": false,
	} {
		if got := vm.Has(id); got != want {
			t.Errorf("the VM has the id %q: %t, want %t", id, got, want)
		}
	}
	if (&Instance{}).Has("") {
		t.Error("a VM without an id has the empty one")
	}
}

func TestFailureNamesReasonAndMessage(t *testing.T) {
	failure := &Failure{Class: Quota, Reason: "QuotaExceeded", Message: "no cores left"}
	if got, want := failure.Error(), "QuotaExceeded: no cores left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
