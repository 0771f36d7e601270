package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
)

// Pauses between deletes of a VM that does not go.
var deleteBackoff = instance.Backoff{First: time.Second, Last: time.Minute}

// Pauses between deletes of a VM that polls show to be on its way out.
var dyingBackoff = instance.Backoff{First: time.Minute, Last: 5 * time.Minute}

// repeatDeleteAfter is how long a delete that left nothing waits for its repetition while a create
// is in doubt.
const repeatDeleteAfter = 5 * time.Second

// decideDelete: nothing of the machine is left in the cloud, and nothing can come any more.
func decideDelete(s State, d decision) (decision, bool) {
	if d.Memory.Gone || s.Machine.Forgotten || !mayHaveInstance(s) {
		return d, false
	}
	d, waits := decideFirst(s, d, awaitDriver, awaitLostState, awaitPreTerminateHooks)
	last := s.Memory.Last
	switch {
	case waits:
		return d, true
	case s.Driver.UnderWay:
		return showDeleting(s, d), true
	}
	d.driverStateShown = true
	switch {
	case last == nil || last.Operation != instance.Delete:
		return deleteAt(s, showDeleting(s, d), s.Now)
	case last.Failure != nil:
		return afterFailedDelete(s, d)
	case last.Instance == nil:
		return confirmGone(s, d)
	}
	return awaitDeletion(s, d)
}

// afterFailedDelete: the delete has failed. One that the spec keeps from being understood is no
// obstacle where nothing was ever made: every create met such a refusal, or the cloud knows nothing
// of the machine.
func afterFailedDelete(s State, d decision) (decision, bool) {
	failure := s.Memory.Last.Failure
	d = d.callFailed(failure)
	if !s.Confirmed() && failure.Class.IsTerminal() {
		d.Poll = instance.PollPending
		operation := s.Machine.Status.LastOperation
		refused := operation != nil && operation.Type == clusterv1alpha1.OperationCreate && operation.State == clusterv1alpha1.OperationFailed
		if refused || s.Memory.Refused || s.view().isMissing() {
			return confirmGone(s, d)
		}
	}
	return deleteAt(s, d, s.Memory.RetryAt)
}

// confirmGone: a delete left nothing. That counts if it was sent after every doubt had settled.
func confirmGone(s State, d decision) (decision, bool) {
	last, settled := s.Memory.Last, settledAt(s)
	if settled.IsZero() || !last.Started.Before(settled) {
		d.Memory.Gone = true
		return d, false
	}
	return deleteAt(s, showDeleting(s, d), earliest.Instant(settled, last.Ended.Add(repeatDeleteAfter)))
}

// awaitDeletion: the cloud has accepted the delete. Another one follows as soon as a poll finds
// anything but a VM on its way out: nothing, which is confirmed by it, or what the VM has left
// behind, which is removed by it. One that changed nothing is not repeated at once.
func awaitDeletion(s State, d decision) (decision, bool) {
	d.Poll = instance.PollPending
	v, last, again := s.view(), s.Memory.Last, s.Memory.RetryAt
	switch {
	case v.misses > 0:
		again = last.Ended.Add(min(deleteRepetition(s.Memory.Deletes), repeatDeleteAfter))
	case v.polled && v.instance != nil && v.instance.State != instance.Deleting:
		again = last.Ended.Add(deleteRepetition(s.Memory.Deletes))
	case v.polled && v.instance != nil && v.failure == nil:
		again = last.Ended.Add(dyingBackoff.Nth(s.Memory.Deletes))
	}
	return deleteAt(s, showDeleting(s, d), again)
}

// deleteRepetition is how long the last of a row of deletes waits for its repetition. The first
// follows at once.
func deleteRepetition(deletes int) time.Duration {
	if deletes <= 1 {
		return 0
	}
	return deleteBackoff.Nth(deletes - 1)
}

// showDeleting shows that the VM is on its way out. While a create is in doubt, the last operation
// stays: that is what a later process has to know.
func showDeleting(s State, d decision) decision {
	if s.Machine.Status.Phase == clusterv1alpha1.MachinePhaseDeleting {
		d = d.debounce("delete", deleteDebounce)
	}
	last := s.Machine.Status.LastOperation
	if last == nil || last.State == clusterv1alpha1.OperationSucceeded && !s.Now.Before(settledAt(s)) {
		d.operation = clusterv1alpha1.LastOperation{Type: clusterv1alpha1.OperationDelete, State: clusterv1alpha1.OperationProcessing}
	}
	return d.instanceIs(clusterv1alpha1.ReasonInstanceDeleting)
}

// deleteAt starts a delete from t on, as soon as the driver takes it.
func deleteAt(s State, d decision, t time.Time) (decision, bool) {
	if s.Now.Before(t) {
		return d.waitUntil(t)
	}
	return decideFirst(s, d, awaitTurn, startDelete)
}

func startDelete(s State, d decision) (decision, bool) {
	d.Memory.Attempted, d.Memory.AttemptedAt = instance.Delete, s.Now
	return d.act(Delete)
}

// settledAt is when every create of which nobody knows what became has come to its end; zero when
// there is no doubt.
func settledAt(s State) time.Time {
	uncertain := s.Memory.UncertainAt
	if before := lastCreateOfOthers(s); uncertain.Before(before) {
		uncertain = before
	}
	if uncertain.IsZero() {
		return uncertain
	}
	return uncertain.Add(s.Driver.CreateSettle)
}

// lastCreateOfOthers is when the last create of an earlier process ended at the latest; zero when
// nothing tells of one. Once a VM was there no other was asked for.
func lastCreateOfOthers(s State) time.Time {
	operation, leading := s.Machine.Status.LastOperation, s.Driver.LeadingSince
	switch {
	case operation == nil || operation.Type != clusterv1alpha1.OperationCreate:
		return time.Time{}
	case operation.State != clusterv1alpha1.OperationSucceeded:
		return leading
	case !operation.LastUpdateTime.After(leading):
		return operation.LastUpdateTime.Time
	}
	return time.Time{}
}

// decideRemoveNode: the Node goes after its VM.
func decideRemoveNode(s State, d decision) (decision, bool) {
	if s.Node.Match != NodeFound {
		return d, false
	}
	return d.act(RemoveNode)
}

// decideRelease ends the machine. By then its drain is over: done, timed out, the Node unreachable,
// none to drain, or in conflict. No volume is waited for. Nothing of it is left in the cloud or can
// come, or it is forgotten (see isForgotten) and its status says what it leaves behind. Its Node is
// gone; Nodes in conflict are left alone. A machine that is paused, or another system's, does not
// get here.
func decideRelease(s State, d decision) (decision, bool) {
	message := "Nothing of the machine is left."
	if left := s.Machine.Status.leftovers(); s.Machine.Forgotten && left != "" {
		message = left
	}
	d.Events = []Event{{Reason: "Deleted", Message: message}}
	return d.debounce("release", deleteDebounce).act(Release)
}

// describeDeparting is the condition for a reason, of a machine on its way out.
func describeDeparting(s State, reason string) metav1.Condition {
	last := s.Memory.Last
	switch {
	case reason == clusterv1alpha1.ReasonInstanceForgotten:
		return instanceNotReady(reason, "The annotation "+clusterv1alpha1.ForgetAnnotation+
			" lets the machine go without its VM. This may be left behind in the cloud: "+listLeftovers(s)+".")
	case reason == clusterv1alpha1.ReasonWaitingForPreTerminateHooks:
		return instanceNotReady(reason, "The driver is not asked to delete the VM until these annotations are taken away: "+s.hooksOfVM()+".")
	case reason != clusterv1alpha1.ReasonInstanceDeleting:
		return describeDriver(s, reason)
	case s.Machine.Forgotten:
		return instanceNotReady(reason, "A call to the driver is under way; then the machine is forgotten.")
	case s.Driver.UnderWay || last == nil || last.Operation != instance.Delete:
		return instanceNotReady(reason, "The VM is being deleted.")
	case last.Instance == nil:
		return instanceNotReady(reason, "A create whose outcome is unknown may still bring forth a VM; it is waited for, to be deleted.")
	}
	return instanceNotReady(reason, words("The VM is being deleted", last.Instance))
}
