package lifecycle

import (
	"strings"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// forgetRecheck is when to decide again after it was written down what is left behind.
const forgetRecheck = time.Second

// decideForget: a machine that is to be forgotten goes without its VM, and the driver is not called
// any more. What it leaves behind is written down, and told by an Event, before anything else is
// done. A call under way is waited for: its answer may name the VM.
func decideForget(s State, d decision) (decision, bool) {
	if !s.Machine.Forgotten || d.Memory.Gone || !mayHaveInstance(s) {
		return d, false
	}
	d.phase = clusterv1alpha1.MachinePhaseDeleting
	if s.Driver.UnderWay {
		return showDeleting(s, d), true
	}
	if shown := s.Machine.Status.leftovers(); shown != "" && strings.Contains(shown, s.Machine.ProviderID) {
		return d, false
	}
	return d.instanceIs(clusterv1alpha1.ReasonInstanceForgotten).waitUntil(s.Now.Add(forgetRecheck))
}

// leftovers is what a status says that the machine leaves behind; empty for nothing.
func (s Status) leftovers() string {
	if c := s.Condition(clusterv1alpha1.ConditionInstanceReady); c.Reason == clusterv1alpha1.ReasonInstanceForgotten {
		return c.Message
	}
	return ""
}

// listLeftovers lists the ids by which people find in the cloud what is left there.
func listLeftovers(s State) string {
	ids := []string{"machineUID " + s.Machine.UID}
	if s.Machine.ProviderID != "" {
		ids = append(ids, "VM "+s.Machine.ProviderID)
	}
	if vm := s.view().instance; vm != nil {
		for _, id := range vm.DuplicateProviderIDs {
			ids = append(ids, "VM "+id)
		}
	}
	return strings.Join(ids, ", ")
}
