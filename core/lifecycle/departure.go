package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Pauses between two passes of a drain: short at first, for most pods stop within seconds.
var drainBackoff = instance.Backoff{First: time.Second, Last: 10 * time.Second}

// Pauses between deletes of a VM that does not go.
var deleteBackoff = instance.Backoff{First: time.Second, Last: time.Minute}

// Pauses between deletes of a VM that looks show to be on its way out.
var dyingBackoff = instance.Backoff{First: time.Minute, Last: 5 * time.Minute}

// blockedPause is the pause while a PodDisruptionBudget is in the way.
const blockedPause = 5 * time.Second

// repeatDelete is how long a delete that left nothing waits for its repetition while a create is in
// doubt.
const repeatDelete = 5 * time.Second

// recorded: a VM whose create was answered after the deletion began still has to be known, for its
// Node is found by it.
func (p *plan) recorded() bool {
	v := p.view()
	if v.instance == nil || v.instance.ProviderID == "" || p.Machine.ProviderID != "" || p.Memory.Gone {
		return false
	}
	return p.recordProviderID(v.instance.ProviderID)
}

// drained: no pod is left on the Node that could be evicted, or the time for it is over.
func (p *plan) drained() bool {
	fresh := p.status.Phase != clusterv1alpha1.MachinePhaseDeleting
	p.status.Phase = clusterv1alpha1.MachinePhaseDeleting
	p.status.Failure = nil
	if p.Memory.Drained.Type != "" {
		p.status = p.status.set(p.Memory.Drained)
	}
	if p.Memory.Gone || p.Memory.Drained.Type != "" || !fresh && p.isDrainRecorded() {
		return false
	}
	if p.Node.Match == NodeConflicting {
		p.drainedAs(metav1.ConditionFalse, clusterv1alpha1.ReasonNodeConflict, p.Node.Conflict)
		return false
	}
	if p.Node.Match == NodeNone {
		p.drainedAs(metav1.ConditionTrue, clusterv1alpha1.ReasonNoNode, "The machine has no Node to drain.")
		return false
	}
	left := p.drainLeft()
	if p.Drain == nil && left > 0 {
		return p.act(DrainNode)
	}
	if p.judgeDrain(left) {
		return true
	}
	p.Memory.Drained = p.status.Condition(clusterv1alpha1.ConditionDrained)
	return false
}

// isDrainRecorded says whether the drain is written down as over.
func (p *plan) isDrainRecorded() bool {
	c := p.Machine.Status.Condition(clusterv1alpha1.ConditionDrained)
	return c.Status == metav1.ConditionTrue && c.Reason != clusterv1alpha1.ReasonNoNode || c.Reason == clusterv1alpha1.ReasonDrainTimedOut
}

// judgeDrain judges by what the pass found, and how long the drain may yet take.
func (p *plan) judgeDrain(left time.Duration) bool {
	d := p.Drain
	complete := d != nil && d.Trouble == ""
	unreachable := complete && p.unreachable(d)
	switch {
	case complete && d.Done:
		p.drainedAs(metav1.ConditionTrue, clusterv1alpha1.ReasonDrained,
			fmt.Sprintf("No pod is left on Node %s that could be evicted.", p.Node.Name))
		return false
	case unreachable && d.Terminating:
		p.drainedAs(metav1.ConditionTrue, clusterv1alpha1.ReasonNodeUnreachable,
			fmt.Sprintf("Node %s does not answer; its pods are not waited for: %s.", p.Node.Name, d.Remaining))
		return false
	case left <= 0:
		message := fmt.Sprintf("The drain of Node %s took longer than %s; the VM goes with the pods that are left",
			p.Node.Name, p.Machine.DrainTimeout)
		if p.Memory.Remaining != "" {
			message += ": " + p.Memory.Remaining
		}
		p.drainedAs(metav1.ConditionFalse, clusterv1alpha1.ReasonDrainTimedOut, message+".")
		return false
	}
	p.Memory.Passes++
	p.Memory.Remaining = d.Remaining
	wait := drainBackoff.Nth(p.Memory.Passes)
	if complete && d.Blocked != "" {
		wait = blockedPause
	}
	p.showDrain(d)
	return p.waitUntil(p.Now.Add(min(wait, left)))
}

// showDrain shows what the drain waits for.
func (p *plan) showDrain(d *Drain) {
	switch {
	case d.Trouble != "":
		p.showDrainTrouble(clusterv1alpha1.ReasonDraining, fmt.Sprintf("Node %s cannot be drained: %s", p.Node.Name, d.Trouble))
	case d.Blocked != "" && d.Refused != "":
		p.drainedAs(metav1.ConditionFalse, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget, d.Blocked+"; "+d.Refused)
	case d.Blocked != "":
		p.drainedAs(metav1.ConditionFalse, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget, d.Blocked)
	case d.Refused != "":
		p.showDrainTrouble(clusterv1alpha1.ReasonEvictionRefused, d.Refused)
	default:
		p.drainedAs(metav1.ConditionFalse, clusterv1alpha1.ReasonDraining,
			fmt.Sprintf("Waiting for the pods that were evicted from Node %s.", p.Node.Name)+p.withSilence(d))
	}
}

// showDrainTrouble shows that the API server does not let the drain go on, unless that passes.
func (p *plan) showDrainTrouble(reason, message string) {
	if p.Machine.Status.Phase == clusterv1alpha1.MachinePhaseDeleting {
		p.debounceFor("drain", drainPatience)
	}
	p.drainedAs(metav1.ConditionFalse, reason, message)
}

func (p *plan) drainedAs(status metav1.ConditionStatus, reason, message string) {
	p.condition(clusterv1alpha1.ConditionDrained, status, reason, message)
}

// deleted: nothing of the machine is left in the cloud, and nothing can come any more.
func (p *plan) deleted() bool {
	if p.Memory.Gone || p.Machine.Forgotten || !p.mayHaveInstance() {
		return false
	}
	if p.Driver.Unknown != "" {
		p.setInstanceReady(metav1.ConditionFalse, p.Driver.unknownReason(), p.Driver.Unknown)
		return p.waitUntil(time.Time{})
	}
	if p.isStateLost() {
		p.status.Phase = clusterv1alpha1.MachinePhaseDeleting
		return p.waitUntil(time.Time{})
	}
	if p.Driver.UnderWay {
		p.deleting("The VM is being deleted.")
		return p.waitUntil(time.Time{})
	}
	last := p.Memory.Last
	p.writeDriverState()
	if last == nil || last.Operation != instance.Delete {
		p.deleting("The VM is being deleted.")
		return p.delete()
	}
	if last.Failure != nil {
		return p.afterFailedDelete(last)
	}
	if last.Instance == nil {
		return p.confirmGone(last)
	}
	return p.awaitDeletion(last)
}

// afterFailedDelete: the delete has failed. One that the spec keeps from being understood is no
// obstacle where nothing was ever made: every create met such a refusal, or the cloud knows nothing
// of the machine.
func (p *plan) afterFailedDelete(last *instance.Outcome) bool {
	p.refused(last.Failure)
	if !p.Confirmed() && last.Failure.Class.IsTerminal() {
		p.watch = Closely
		operation := p.Machine.Status.LastOperation
		refused := operation != nil && operation.Type == clusterv1alpha1.OperationCreate && operation.State == clusterv1alpha1.OperationFailed
		if refused || p.Memory.Refused || p.view().looks >= confirmations {
			return p.confirmGone(last)
		}
	}
	return p.deleteAt(p.Memory.RetryAt)
}

// confirmGone: a delete left nothing. That counts if it was sent after every doubt had settled.
func (p *plan) confirmGone(last *instance.Outcome) bool {
	settled := p.settledAt()
	if settled.IsZero() || !last.Started.Before(settled) {
		p.Memory.Gone = true
		return false
	}
	p.deleting("A create whose outcome is unknown may still bring forth a VM; it is waited for, to be deleted.")
	return p.deleteAt(earlier(settled, last.Ended.Add(repeatDelete)))
}

// awaitDeletion: the cloud has accepted the delete. Another one follows as soon as a look finds
// anything but a VM on its way out: nothing, which is confirmed by it, or what the VM has left
// behind, which is removed by it. One that changed nothing is not repeated at once.
func (p *plan) awaitDeletion(last *instance.Outcome) bool {
	p.watch = Closely
	p.deleting(words("The VM is being deleted", last.Instance))
	v, again := p.view(), p.Memory.RetryAt
	switch {
	case v.looks > 0:
		again = last.Ended.Add(min(p.repeated(), repeatDelete))
	case v.looked && v.instance != nil && v.instance.State != instance.Deleting:
		again = last.Ended.Add(p.repeated())
	case v.looked && v.instance != nil && v.failure == nil:
		again = last.Ended.Add(dyingBackoff.Nth(p.Memory.Deletes))
	}
	return p.deleteAt(again)
}

// repeated is how long a delete waits for its repetition. The first follows at once.
func (p *plan) repeated() time.Duration {
	if p.Memory.Deletes <= 1 {
		return 0
	}
	return deleteBackoff.Nth(p.Memory.Deletes - 1)
}

// deleting shows that the VM is on its way out.
func (p *plan) deleting(message string) {
	if p.Machine.Status.Phase == clusterv1alpha1.MachinePhaseDeleting {
		p.debounceFor("delete", deletePatience)
	}
	// While a create is in doubt, that is what a later process has to know.
	last := p.status.LastOperation
	if last == nil || last.State == clusterv1alpha1.OperationSucceeded && !p.Now.Before(p.settledAt()) {
		p.status.LastOperation = &Operation{Type: clusterv1alpha1.OperationDelete, State: clusterv1alpha1.OperationProcessing}
	}
	p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonInstanceDeleting, message)
}

// deleteAt deletes from t on.
func (p *plan) deleteAt(t time.Time) bool {
	if p.Now.Before(t) {
		return p.waitUntil(t)
	}
	return p.delete()
}

// delete starts a delete as soon as the driver takes it.
func (p *plan) delete() bool {
	if !p.Driver.Ready {
		p.debounceFor("driver", driverPatience)
		p.setInstanceReady(metav1.ConditionFalse, clusterv1alpha1.ReasonDriverUnavailable, p.Driver.Unready)
		return p.waitUntil(time.Time{})
	}
	if p.Driver.Throttled {
		return p.waitUntil(time.Time{})
	}
	if p.Driver.Held != nil {
		return p.showBreaker()
	}
	p.Memory.Attempted, p.Memory.AttemptedAt = instance.Delete, p.Now
	return p.act(Delete)
}

// removeNode: the Node goes after its VM.
func (p *plan) removeNode() bool {
	if p.Node.Match != NodeFound {
		return false
	}
	return p.act(RemoveNode)
}

// release ends the machine.
func (p *plan) release() bool {
	p.debounceFor("release", deletePatience)
	p.events = append(p.events, Event{Reason: "Deleted", Message: p.finalMessage()})
	return p.act(Release)
}
