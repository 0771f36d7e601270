package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// decidePause: nothing is done for a paused machine, on its way in or out, but that the token of a
// VM that is coming up lasts. What became of a call that was under way is remembered. How the Node
// of a machine that runs is costs nothing to know, and is shown: others count on it.
func decidePause(s State, d decision) (decision, bool) {
	if !s.isPaused() {
		return d, false
	}
	if !s.isDeleting() && s.Machine.UIDTaken == "" && s.Machine.Status.Phase != clusterv1alpha1.MachinePhaseFailed {
		var reads bool
		if d, reads = keepToken(s, d); reads {
			return d, true
		}
	}
	if s.Machine.Status.Condition(clusterv1alpha1.ConditionPaused).Type == "" {
		d.Events = []Event{{Reason: clusterv1alpha1.ConditionPaused, Message: s.Machine.Paused.Message}}
	}
	switch {
	case s.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Type == "":
		d = d.begin()
	case !s.isRunning() || s.isDeleting() || !s.Confirmed():
		// It has no Node, or which one it has is not known.
	case s.Node.Match == NodeFound:
		d.nodeReason = clusterv1alpha1.ReasonNodeReady
	default:
		d.nodeReason = clusterv1alpha1.ReasonNodeMissing
	}
	if s.isDeleting() {
		d.phase = clusterv1alpha1.MachinePhaseDeleting
	}
	return d, true
}

// describePaused says why nothing is done; the zero value where something may be.
func describePaused(s State) metav1.Condition {
	if !s.isPaused() {
		return metav1.Condition{}
	}
	why := s.Machine.Paused
	if s.isDeleting() {
		why.Message += " The machine is to be deleted; that waits, too."
	}
	return condition(clusterv1alpha1.ConditionPaused, metav1.ConditionTrue, why.Reason, why.Message)
}

// deleteNowRetry is how long the news that the machine is on its way out may take.
const deleteNowRetry = 30 * time.Second

// decideDeleteNow: a machine that somebody wants to go now is deleted as by anybody else.
func decideDeleteNow(s State, d decision) (decision, bool) {
	if s.Machine.DeleteNow == "" {
		return d, false
	}
	if again := d.Memory.DeleteNowAt.Add(deleteNowRetry); s.Now.Before(again) {
		return d.waitUntil(again)
	}
	d.Memory.DeleteNowAt = s.Now
	message := fmt.Sprintf("Deleted: %s carries the annotation %s.", s.Machine.DeleteNow, clusterv1alpha1.DeleteNowAnnotation)
	d.Events = []Event{{Reason: "DeleteNow", Message: message}}
	return d.act(DeleteNow)
}

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
