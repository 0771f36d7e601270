package lifecycle

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	// uidRecheck lies between two checks whether another machine still has the uid.
	uidRecheck = time.Minute
	// deleteNowRetry is how long the news that the machine is on its way out may take.
	deleteNowRetry = 30 * time.Second
)

// decidePause: nothing is done for a paused machine, on its way in or out. What became of a call
// that was under way is remembered. How the Node of a machine that runs is costs nothing to know,
// and is shown: others count on it.
func decidePause(s State, d decision) (decision, bool) {
	if !s.isPaused() {
		return d, false
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

// decideIdentity: a machine is known by a finalizer and a uid, both there before anything is made
// for it.
func decideIdentity(s State, d decision) (decision, bool) {
	if s.Machine.Finalizer && s.Machine.UID != "" {
		return d, false
	}
	return d.act(Identify)
}

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

// decideFailed: a machine that failed stays so; whoever made it replaces it.
func decideFailed(s State, d decision) (decision, bool) {
	if s.Machine.Status.Phase == clusterv1alpha1.MachinePhaseFailed {
		return d, true
	}
	return d.begin(), false
}

// begin gives a status that has none yet the phase Pending and the conditions that wait for others.
func (d decision) begin() decision {
	d.begun = true
	switch d.phase {
	case "":
		d.phase = clusterv1alpha1.MachinePhasePending
	case clusterv1alpha1.MachinePhaseUnknown:
		d.phase = clusterv1alpha1.MachinePhaseProvisioning
	}
	return d
}

// decideUID: if another machine has the uid, nothing is done for this one, and nothing is asked
// about it.
func decideUID(s State, d decision) (decision, bool) {
	if s.Machine.UIDTaken == "" {
		return d, false
	}
	return d.instanceIs(clusterv1alpha1.ReasonMachineUIDTaken).waitUntil(s.Now.Add(uidRecheck))
}
