package machineset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/surge"
)

// report writes the status, if it has changed and it is time, and says when to look again.
func (r *reconciler) report(ctx context.Context, o *observation, done applied) (ctrl.Result, error) {
	failure := errors.Join(done.createErr, done.deleteErr, done.updateErr)
	if errors.Is(failure, requeue.ErrStale) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	r.refresh(o)
	again := requeue.Earlier(o.nextAvailable, done.decision.Health.Again)
	if done.short {
		// What keeps the room may be a note of something that never came about, and no event tells
		// of that.
		again = requeue.Earlier(again, surge.Expiry)
	}
	if done.decision.Health.Reason == health.TooManyUnhealthy && !r.healthTracker.hold(o.set) {
		again = requeue.Soon
	}
	if len(o.memory.lost) > 0 {
		again = requeue.Earlier(again, settleAfter)
	}
	if !o.memory.pending.Settled() && failure == nil {
		// The cache shows in a moment what was done just now. Until then there is nothing certain
		// to report.
		return ctrl.Result{RequeueAfter: requeue.Earlier(again, lookUpAfter)}, nil
	}
	status := r.status(o, done)
	wait, due := r.due(o, status)
	if !due {
		return requeue.Result(requeue.Earlier(again, wait), failure)
	}
	switch err := r.writeStatus(ctx, o, status); {
	case apierrors.IsConflict(err):
		return requeue.Result(requeue.Earlier(again, requeue.Soon), failure)
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, fmt.Errorf("write the status: %w", client.IgnoreNotFound(err)))
	default:
		return requeue.Result(again, failure)
	}
}

// status is the status as it should be.
func (r *reconciler) status(o *observation, done applied) *clusterv1alpha1.MachineSetStatus {
	set := o.set
	status := set.Status.DeepCopy()
	if o.memory.pending.Settled() {
		status.ObservedGeneration = set.Generation
	}
	if selector, err := set.Spec.Selector.AsSelector(); err == nil {
		status.Selector = selector.String()
	}
	status.NextIndex = o.memory.names.Next()
	status.Replicas, status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0, 0
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	for _, m := range o.state.Machines {
		status.Replicas++
		status.AvailableReplicas += one(m.Available)
	}
	for i := range o.machines {
		status.FullyLabeledReplicas += one(template.Matches(labels.Set(o.machines[i].Labels)))
		status.ReadyReplicas += one(health.IsReady(&o.machines[i]))
	}
	status.Remediation = writeAttempts(o.memory.attempts)
	setConditions(status, o, done)
	r.setObstacles(status, o, done)
	return status
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func setConditions(status *clusterv1alpha1.MachineSetStatus, o *observation, done applied) {
	available := metav1.Condition{
		Type: clusterv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: o.set.Generation,
		Reason: clusterv1alpha1.ReasonMinimumMachinesAvailable, Message: "All Machines are available",
	}
	if int(status.AvailableReplicas) < o.state.Desired {
		available.Status, available.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonMinimumMachinesUnavailable
		available.Message = "Not all Machines are available"
	}
	apimeta.SetStatusCondition(&status.Conditions, available)
	reason, message := failureOf(o, done)
	if reason == "" {
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
		return
	}
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionReplicaFailure, Status: metav1.ConditionTrue, ObservedGeneration: o.set.Generation,
		Reason: reason, Message: conditions.TruncateMessage(message),
	})
}

// setObstacles shows what keeps the set from being worked on, as long as it does.
func (r *reconciler) setObstacles(status *clusterv1alpha1.MachineSetStatus, o *observation, done applied) {
	show := func(is bool, c metav1.Condition) {
		if !is {
			apimeta.RemoveStatusCondition(&status.Conditions, c.Type)
			return
		}
		c.ObservedGeneration = o.set.Generation
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	show(done.decision.Health.Reason == health.TooManyUnhealthy, metav1.Condition{
		Type: clusterv1alpha1.ConditionRemediationAllowed, Status: metav1.ConditionFalse,
		Reason: clusterv1alpha1.ReasonTooManyUnhealthy, Message: r.healthTracker.verdict(),
	})
	show(done.decision.Frozen, metav1.Condition{
		Type: clusterv1alpha1.ConditionFrozen, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonOvershoot, Message: frozen(o),
	})
	show(o.paused, conditions.Paused(o.set))
}

// frozen says why nothing is created, in words that change with the limit only.
func frozen(o *observation) string {
	return fmt.Sprintf("There are far more Machines than there may be: none is created until there are no more than %d, those on "+
		"their way out included", o.room.bound)
}

// failureOf says what is in the way, the most serious first; nothing if nothing is. Of several
// Machines it is the first by name, so that the message does not change from one moment to the
// next.
func failureOf(o *observation, done applied) (reason, message string) {
	switch {
	case done.createErr != nil:
		return clusterv1alpha1.ReasonMachineCreationFailed, done.createErr.Error()
	case done.deleteErr != nil:
		return clusterv1alpha1.ReasonMachineDeletionFailed, done.deleteErr.Error()
	case done.updateErr != nil:
		return clusterv1alpha1.ReasonMachineUpdateFailed, done.updateErr.Error()
	}
	reason = clusterv1alpha1.ReasonMachinesFailed
	troubled := ""
	for i := range o.machines {
		m := &o.machines[i]
		trouble := health.Problem(m)
		refused := done.decision.Held && health.IsSpecRefused(m)
		if trouble == "" || done.decision.Held && !refused || troubled != "" && troubled <= m.Name {
			continue
		}
		troubled, message = m.Name, fmt.Sprintf("Machine %s: %s", m.Name, trouble)
	}
	if troubled == "" {
		return "", ""
	}
	if done.decision.Held {
		reason = clusterv1alpha1.ReasonTemplateInvalid
	}
	if pause := done.decision.Health.Pause; pause > 0 {
		message += fmt.Sprintf(" (none is replaced within %s of the creation of one that failed)", pause)
	}
	return reason, message
}

// due says whether the status is to be written now; if not, but later, in how long.
func (r *reconciler) due(o *observation, status *clusterv1alpha1.MachineSetStatus) (time.Duration, bool) {
	old := &o.set.Status
	urgent := old.ObservedGeneration != status.ObservedGeneration || old.Selector != status.Selector ||
		!conditions.HaveSameReasons(old.Conditions, status.Conditions)
	return requeue.StatusDue(!apiequality.Semantic.DeepEqual(old, status), urgent, o.memory.reported, r.clock.Now())
}

// writeStatus writes only what has changed, and only if nobody else has changed the set: the number
// in nextIndex must never fall.
func (r *reconciler) writeStatus(ctx context.Context, o *observation, status *clusterv1alpha1.MachineSetStatus) error {
	changed := o.set.DeepCopy()
	changed.Status = *status
	patch := client.MergeFromWithOptions(o.set, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch); err != nil {
		return err
	}
	o.memory.reported = r.clock.Now()
	return nil
}
