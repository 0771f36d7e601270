package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
)

// report writes the status, if it has changed and it is time, and says when to look again.
func (r *reconciler) report(ctx context.Context, o *observation, p *plan, done *results) (ctrl.Result, error) {
	status, left := newStatus(o, p, done)
	again := earliest.Delay(p.requeue, left)
	if wait, isDue := o.isStatusDue(status, r.clock.Now()); !isDue {
		return requeue.Result(earliest.Delay(again, wait), done.err)
	}
	changed := o.md.DeepCopy()
	changed.Status = *status
	patch := client.MergeFromWithOptions(o.md, client.MergeFromWithOptimisticLock{})
	switch err := r.client.Status().Patch(ctx, changed, patch); {
	case apierrors.IsConflict(err):
		return requeue.Result(earliest.Delay(again, requeue.Soon), done.err)
	case err != nil:
		return ctrl.Result{}, errors.Join(done.err, fmt.Errorf("write the status: %w", err))
	}
	r.recorder.recordProgress(o.md, status)
	r.reported.Store(client.ObjectKeyFromObject(o.md), r.clock.Now())
	return requeue.Result(again, done.err)
}

// isStatusDue says whether the status is to be written now; if not, but later, in how long.
func (o *observation) isStatusDue(status *clusterv1alpha1.MachineDeploymentStatus, now time.Time) (time.Duration, bool) {
	old := &o.md.Status
	isUrgent := old.ObservedGeneration != status.ObservedGeneration || old.Selector != status.Selector ||
		!conditions.HaveSameReasons(old.Conditions, status.Conditions)
	return requeue.StatusDue(!apiequality.Semantic.DeepEqual(old, status), isUrgent, o.reported, now)
}

// newStatus returns the status as it should be after the plan was carried out. It also returns
// how long is left of the progress deadline if nothing happens; 0 if the deadline does not run.
func newStatus(o *observation, p *plan, done *results) (status *clusterv1alpha1.MachineDeploymentStatus, left time.Duration) {
	status = o.md.Status.DeepCopy()
	if selector, err := o.md.Spec.Selector.AsSelector(); err == nil {
		status.Selector = selector.String()
	}
	status.Replicas, status.UpdatedReplicas = o.counts.present, o.counts.updated
	status.ReadyReplicas, status.AvailableReplicas = o.counts.ready, o.counts.available
	status.UnavailableReplicas = max(o.state.Replicas-o.counts.available, 0)

	apimeta.SetStatusCondition(&status.Conditions, o.availableCondition())
	if failure := o.failureCondition(); failure != nil {
		apimeta.SetStatusCondition(&status.Conditions, *failure)
	} else {
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
	}
	if o.paused {
		// What the spec asks for is not acted on. So the generation is not observed, and what was
		// said of progress stays.
		apimeta.SetStatusCondition(&status.Conditions, conditions.Paused(o.md))
		return status, 0
	}
	status.ObservedGeneration = o.md.Generation
	apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionPaused)
	progress := newProgress(o, p, done)
	status.LastProgressTime = progress.last
	apimeta.SetStatusCondition(&status.Conditions, progress.condition)
	apimeta.SetStatusCondition(&status.Conditions, o.readyCondition(&progress.condition))
	if stalled := stalledCondition(&progress.condition); stalled != nil {
		apimeta.SetStatusCondition(&status.Conditions, *stalled)
	} else {
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionStalled)
	}
	return status, progress.left
}

func (o *observation) availableCondition() metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1alpha1.ConditionAvailable, ObservedGeneration: o.md.Generation, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonMinimumMachinesAvailable, Message: "Enough Machines are available",
	}
	if o.counts.available < o.state.Replicas-o.state.Limits.MaxUnavailable {
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonMinimumMachinesUnavailable
		c.Message = "Too few Machines are available"
	}
	return c
}

// readyCondition says whether there is nothing to wait for. While a rollout goes on it repeats what
// the rollout waits for.
func (o *observation) readyCondition(progress *metav1.Condition) metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1alpha1.ConditionReady, ObservedGeneration: o.md.Generation, Status: metav1.ConditionFalse,
		Reason: progress.Reason, Message: progress.Message,
	}
	switch {
	case o.md.Spec.Paused:
	case progress.Reason == clusterv1alpha1.ReasonDeletionAwaited:
		c.Status = metav1.ConditionTrue
	case progress.Reason != clusterv1alpha1.ReasonNewMachineSetAvailable:
	case o.counts.updated < o.state.Replicas || o.counts.present > o.counts.updated || o.counts.available < o.counts.updated:
		c.Reason, c.Message = clusterv1alpha1.ReasonMachinesUnavailable, "Machines are missing, not available, or being deleted"
	default:
		c.Status = metav1.ConditionTrue
		c.Reason, c.Message = clusterv1alpha1.ReasonAllMachinesAvailable, "All Machines have the template and are available"
	}
	return c
}

// stalledCondition says that waiting for the rollout is in vain; nil while it is not.
func stalledCondition(progress *metav1.Condition) *metav1.Condition {
	if progress.Reason != clusterv1alpha1.ReasonProgressDeadlineExceeded {
		return nil
	}
	return &metav1.Condition{
		Type: clusterv1alpha1.ConditionStalled, ObservedGeneration: progress.ObservedGeneration, Status: metav1.ConditionTrue,
		Reason: progress.Reason, Message: progress.Message,
	}
}

// failureCondition repeats what is in the way of a set, first of all of the current one; nil if
// nothing is.
func (o *observation) failureCondition() *metav1.Condition {
	sets := make([]*clusterv1alpha1.MachineSet, 0, len(o.sets)+1)
	if o.current != nil {
		sets = append(sets, o.current)
	}
	for i := range o.sets {
		sets = append(sets, &o.sets[i])
	}
	for _, set := range sets {
		c := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		return &metav1.Condition{
			Type: c.Type, Status: c.Status, ObservedGeneration: o.md.Generation, Reason: c.Reason, Message: c.Message,
		}
	}
	return nil
}

// progress is how the rollout gets on.
type progress struct {
	condition metav1.Condition
	// last is when it last got on.
	last metav1.Time
	// left is in how long the deadline is over if nothing happens; 0 if it does not run.
	left time.Duration
}

// newProgress says how the rollout gets on. A rollout that is complete stays so until the next one
// begins. Machines that come and go, because the deployment is scaled or a Machine is replaced, are
// no rollout.
func newProgress(o *observation, pl *plan, done *results) progress {
	was := apimeta.FindStatusCondition(o.md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
	if was == nil {
		was = &metav1.Condition{}
	}
	p := progress{last: o.md.Status.LastProgressTime}
	p.set(metav1.ConditionTrue, clusterv1alpha1.ReasonMachineSetUpdated, pl.waitMessage())
	switch {
	case done.createErr != nil:
		p.set(metav1.ConditionFalse, clusterv1alpha1.ReasonMachineSetCreateFailed, conditions.TruncateMessage(done.createErr.Error()))
	case o.md.Spec.Paused:
		p.set(metav1.ConditionUnknown, clusterv1alpha1.ReasonDeploymentPaused, "The rollout is paused")
	case was.Reason == clusterv1alpha1.ReasonDeploymentPaused:
		p.last = metav1.NewTime(o.now)
		p.set(metav1.ConditionUnknown, clusterv1alpha1.ReasonDeploymentResumed, "The rollout is resumed")
	case done.created != "":
		p.last = metav1.NewTime(o.now)
		p.set(metav1.ConditionTrue, clusterv1alpha1.ReasonNewMachineSetCreated, "Created MachineSet "+done.created)
	case done.found != "":
		p.last = metav1.NewTime(o.now)
		p.set(metav1.ConditionTrue, clusterv1alpha1.ReasonFoundExistingMachineSet,
			"MachineSet "+done.found+" of before has the template and is used again")
	case o.isComplete(pl, was):
		p.set(metav1.ConditionTrue, clusterv1alpha1.ReasonNewMachineSetAvailable, "The rollout is complete")
	case pl.wait.For == rollout.Request:
		p.set(metav1.ConditionTrue, clusterv1alpha1.ReasonDeletionAwaited, pl.waitMessage())
	default:
		p.runDeadline(o, was)
	}
	p.condition.ObservedGeneration = o.md.Generation
	return p
}

func (p *progress) set(status metav1.ConditionStatus, reason, message string) {
	p.condition = metav1.Condition{Type: clusterv1alpha1.ConditionProgressing, Status: status, Reason: reason, Message: message}
}

// isComplete says whether no rollout goes on.
func (o *observation) isComplete(pl *plan, was *metav1.Condition) bool {
	hasNothingToDo := !pl.hasSteps && pl.wait.For == rollout.Nothing
	return hasNothingToDo || was.Reason == clusterv1alpha1.ReasonNewMachineSetAvailable && o.current != nil && !o.state.IsRolling()
}

// runDeadline lets the deadline run. It counts from the last progress, which stands in the status
// so that it outlasts this process. It does not count the time before this process looked, when
// nobody was there to make progress.
func (p *progress) runDeadline(o *observation, was *metav1.Condition) {
	exceeded := was.Reason == clusterv1alpha1.ReasonProgressDeadlineExceeded
	if o.hasProgressed(was) {
		p.last, exceeded = metav1.NewTime(o.now), false
	}
	if o.md.Spec.ProgressDeadlineSeconds == nil {
		return
	}
	deadline := time.Duration(*o.md.Spec.ProgressDeadlineSeconds) * time.Second
	from := p.last.Time
	if o.started.After(from) {
		from = o.started
	}
	// The status holds whole seconds; what is cut off must not shorten the deadline.
	p.left = max(from.Truncate(time.Second).Add(time.Second).Add(deadline).Sub(o.now), 0)
	if exceeded || p.left == 0 {
		p.left = 0
		p.set(metav1.ConditionFalse, clusterv1alpha1.ReasonProgressDeadlineExceeded,
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

// waitMessage says what the rollout waits for. It has no numbers: they stand in the status, and
// would change with each Machine.
func (p *plan) waitMessage() string {
	const goesOn = "The rollout goes on"
	if p.hasSteps {
		return goesOn
	}
	switch p.wait.For {
	case rollout.Observation:
		return "Waiting for MachineSet " + p.wait.Set + " to be observed"
	case rollout.Creation:
		return "Waiting for Machines of MachineSet " + p.wait.Set + " to be created"
	case rollout.Availability:
		return "Waiting for Machines of MachineSet " + p.wait.Set + " to become available"
	case rollout.Deletion:
		return "Waiting for Machines of MachineSet " + p.wait.Set + " to be gone"
	case rollout.Request:
		return "Waiting for somebody to delete Machines of MachineSet " + p.wait.Set
	case rollout.Nothing, rollout.Resumption:
	}
	return goesOn
}
