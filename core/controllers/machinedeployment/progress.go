package machinedeployment

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/rollout"
)

// progress is how the rollout gets on.
type progress struct {
	condition metav1.Condition
	// last is when it last got on.
	last metav1.Time
	// left is in how long the deadline is over if nothing happens; 0 if it does not run.
	left time.Duration
}

// progress says how the rollout gets on. Once a rollout is complete it stays so until the next one
// begins: that Machines come and go, because the deployment is scaled or a Machine is replaced, is
// none. since is when this process began.
func (o *observation) progress(done applied, since, now time.Time) progress {
	was := apimeta.FindStatusCondition(o.md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
	if was == nil {
		was = &metav1.Condition{}
	}
	p := progress{last: o.md.Status.LastProgressTime}
	p.say(metav1.ConditionTrue, clusterv1alpha1.ReasonMachineSetUpdated, waitsFor(done))
	switch {
	case done.createErr != nil:
		p.say(metav1.ConditionFalse, clusterv1alpha1.ReasonMachineSetCreateFailed, conditions.TruncateMessage(done.createErr.Error()))
	case o.md.Spec.Paused:
		p.say(metav1.ConditionUnknown, clusterv1alpha1.ReasonDeploymentPaused, "The rollout is paused")
	case was.Reason == clusterv1alpha1.ReasonDeploymentPaused:
		p.last = metav1.NewTime(now)
		p.say(metav1.ConditionUnknown, clusterv1alpha1.ReasonDeploymentResumed, "The rollout is resumed")
	case done.created != "":
		p.last = metav1.NewTime(now)
		p.say(metav1.ConditionTrue, clusterv1alpha1.ReasonNewMachineSetCreated, "Created MachineSet "+done.created)
	case done.found != "":
		p.last = metav1.NewTime(now)
		p.say(metav1.ConditionTrue, clusterv1alpha1.ReasonFoundExistingMachineSet,
			"MachineSet "+done.found+" of before has the template and is used again")
	case o.isComplete(done, was):
		p.say(metav1.ConditionTrue, clusterv1alpha1.ReasonNewMachineSetAvailable, "The rollout is complete")
	case done.wait.For == rollout.Request:
		p.say(metav1.ConditionTrue, clusterv1alpha1.ReasonDeletionAwaited, waitsFor(done))
	default:
		p.await(o, was, since, now)
	}
	p.condition.ObservedGeneration = o.md.Generation
	return p
}

func (p *progress) say(status metav1.ConditionStatus, reason, message string) {
	p.condition = metav1.Condition{Type: clusterv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message}
}

// isComplete says that no rollout goes on.
func (o *observation) isComplete(done applied, was *metav1.Condition) bool {
	settled := len(done.actions) == 0 && done.wait.For == rollout.Nothing
	return settled || was.Reason == clusterv1alpha1.ReasonNewMachineSetAvailable && o.fresh != nil && !o.state.Rolling()
}

// await lets the deadline run. It counts from the last progress, which stands in the status so that
// it outlasts this process, but not from before this process looked: nobody was there to make any.
func (p *progress) await(o *observation, was *metav1.Condition, since, now time.Time) {
	exceeded := was.Reason == clusterv1alpha1.ReasonProgressDeadlineExceeded
	if o.hasProgressed(was) {
		p.last, exceeded = metav1.NewTime(now), false
	}
	if o.md.Spec.ProgressDeadlineSeconds == nil {
		return
	}
	deadline := time.Duration(*o.md.Spec.ProgressDeadlineSeconds) * time.Second
	from := p.last.Time
	if since.After(from) {
		from = since
	}
	// The status holds whole seconds; what is cut off must not shorten the deadline.
	p.left = max(from.Truncate(time.Second).Add(time.Second).Add(deadline).Sub(now), 0)
	if exceeded || p.left == 0 {
		p.left = 0
		p.say(metav1.ConditionFalse, clusterv1alpha1.ReasonProgressDeadlineExceeded,
			fmt.Sprintf("No progress for %s: %s", deadline, p.condition.Message))
	}
}

// hasProgressed says whether the rollout has come further than the status shows, as for a
// Deployment of apps/v1, or was not under way at all.
func (o *observation) hasProgressed(was *metav1.Condition) bool {
	switch was.Reason {
	case "", clusterv1alpha1.ReasonNewMachineSetAvailable, clusterv1alpha1.ReasonDeletionAwaited:
		return true
	}
	if apimeta.IsStatusConditionTrue(o.md.Status.Conditions, clusterv1alpha1.ConditionPaused) {
		return true
	}
	before := &o.md.Status
	return o.counts.updated > before.UpdatedReplicas || o.counts.ready > before.ReadyReplicas ||
		o.counts.available > before.AvailableReplicas ||
		o.counts.present-o.counts.updated < before.Replicas-before.UpdatedReplicas
}

// waitsFor says what is waited for. It has no numbers: they stand in the status, and would change
// with each Machine.
func waitsFor(done applied) string {
	switch {
	case len(done.actions) > 0:
		return "The rollout goes on"
	case done.wait.For == rollout.Observation:
		return "Waiting for MachineSet " + done.wait.Set + " to be observed"
	case done.wait.For == rollout.Creation:
		return "Waiting for Machines of MachineSet " + done.wait.Set + " to be created"
	case done.wait.For == rollout.Availability:
		return "Waiting for Machines of MachineSet " + done.wait.Set + " to become available"
	case done.wait.For == rollout.Deletion:
		return "Waiting for Machines of MachineSet " + done.wait.Set + " to be gone"
	case done.wait.For == rollout.Request:
		return "Waiting for somebody to delete Machines of MachineSet " + done.wait.Set
	default:
		return "The rollout goes on"
	}
}
