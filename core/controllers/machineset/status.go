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
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/surge"
)

// report writes the status, if it has changed and it is time, and says when to look again.
func (r *reconciler) report(ctx context.Context, o *observation, p *plan, done *results) (ctrl.Result, error) {
	failure := done.err()
	if errors.Is(failure, requeue.ErrStale) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	o.refresh()
	again := p.requeue
	if done.isShort {
		// What takes the room may be the record of a Machine that never came about, and no event
		// tells when that expires.
		again = earliest.Delay(again, surge.Expiry)
	}
	if p.isHalted() && !r.health.hold(o.set) {
		again = requeue.Soon
	}
	if !o.memory.names.LostSince().IsZero() {
		again = earliest.Delay(again, settleAfter)
	}
	if !o.memory.pending.IsSettled() && failure == nil {
		// The cache shows in a moment what was just done. Until then nothing certain can be
		// reported.
		return ctrl.Result{RequeueAfter: earliest.Delay(again, lookUpAfter)}, nil
	}
	changed := o.set.DeepCopy()
	changed.Status = *newStatus(o, p, done)
	if wait, isDue := isStatusDue(&o.set.Status, &changed.Status, o.memory.reported, r.clock.Now()); !isDue {
		return requeue.Result(earliest.Delay(again, wait), failure)
	}
	// Only what has changed is written, and only if nobody else has changed the set: nextIndex must
	// never fall.
	patch := client.MergeFromWithOptions(o.set, client.MergeFromWithOptimisticLock{})
	switch err := r.client.Status().Patch(ctx, changed, patch); {
	case apierrors.IsConflict(err):
		return requeue.Result(earliest.Delay(again, requeue.Soon), failure)
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, fmt.Errorf("write the status: %w", client.IgnoreNotFound(err)))
	}
	o.memory.reported = r.clock.Now()
	return requeue.Result(again, failure)
}

// isStatusDue says whether a status is to be written now in place of the old one; if not, but
// later, in how long.
func isStatusDue(old, status *clusterv1alpha1.MachineSetStatus, written, now time.Time) (time.Duration, bool) {
	isUrgent := old.ObservedGeneration != status.ObservedGeneration || old.Selector != status.Selector ||
		!conditions.HaveSameReasons(old.Conditions, status.Conditions)
	return requeue.StatusDue(!apiequality.Semantic.DeepEqual(old, status), isUrgent, written, now)
}

// newStatus returns the status as it should be after the plan was carried out.
func newStatus(o *observation, p *plan, done *results) *clusterv1alpha1.MachineSetStatus {
	set := o.set
	status := set.Status.DeepCopy()
	if o.memory.pending.IsSettled() {
		status.ObservedGeneration = set.Generation
	}
	if selector, err := set.Spec.Selector.AsSelector(); err == nil {
		status.Selector = selector.String()
	}
	status.NextIndex = o.memory.names.Next()
	status.Replicas, status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0, 0
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	for i := range o.state.Machines {
		status.Replicas++
		status.AvailableReplicas += oneIf(o.state.Machines[i].Available)
	}
	for _, m := range o.machines {
		status.FullyLabeledReplicas += oneIf(template.Matches(labels.Set(m.Labels)))
		status.ReadyReplicas += oneIf(health.IsReady(m))
	}
	status.Remediation = writeAttempts(o.memory.attempts)
	setAvailable(status, o)
	setFailure(status, o, p, done)
	setObstacles(status, o, p)
	return status
}

func oneIf(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func setAvailable(status *clusterv1alpha1.MachineSetStatus, o *observation) {
	available := metav1.Condition{
		Type: clusterv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: o.set.Generation,
		Reason: clusterv1alpha1.ReasonMinimumMachinesAvailable, Message: "All Machines are available",
	}
	if int(status.AvailableReplicas) < o.state.Desired {
		available.Status, available.Reason = metav1.ConditionFalse, clusterv1alpha1.ReasonMinimumMachinesUnavailable
		available.Message = "Not all Machines are available"
	}
	apimeta.SetStatusCondition(&status.Conditions, available)
}

func setFailure(status *clusterv1alpha1.MachineSetStatus, o *observation, p *plan, done *results) {
	reason, message := failureOf(o, p, done)
	if reason == "" {
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
		return
	}
	apimeta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionReplicaFailure, Status: metav1.ConditionTrue, ObservedGeneration: o.set.Generation,
		Reason: reason, Message: conditions.TruncateMessage(message),
	})
}

// failureOf returns what is in the way, the most serious first; nothing if nothing is. Of several
// Machines it names the first by name, so that the message does not change from one moment to the
// next.
func failureOf(o *observation, p *plan, done *results) (reason, message string) {
	switch {
	case done.createErr != nil:
		return clusterv1alpha1.ReasonMachineCreationFailed, done.createErr.Error()
	case done.deleteErr != nil:
		return clusterv1alpha1.ReasonMachineDeletionFailed, done.deleteErr.Error()
	case done.updateErr != nil:
		return clusterv1alpha1.ReasonMachineUpdateFailed, done.updateErr.Error()
	}
	reason = clusterv1alpha1.ReasonMachinesFailed
	first := ""
	for _, m := range o.machines {
		problem := health.Problem(m)
		isRefused := p.decision.Held && health.IsSpecRefused(m)
		if problem == "" || p.decision.Held && !isRefused || first != "" && first <= m.Name {
			continue
		}
		first, message = m.Name, fmt.Sprintf("Machine %s: %s", m.Name, problem)
	}
	if first == "" {
		return "", ""
	}
	if p.decision.Held {
		reason = clusterv1alpha1.ReasonTemplateInvalid
	}
	if pause := p.decision.Health.Pause; pause > 0 {
		message += fmt.Sprintf(" (none is replaced within %s of the creation of one that failed)", pause)
	}
	return reason, message
}

// setObstacles shows what keeps the set from being worked on, as long as it does.
func setObstacles(status *clusterv1alpha1.MachineSetStatus, o *observation, p *plan) {
	show := func(is bool, c metav1.Condition) {
		if !is {
			apimeta.RemoveStatusCondition(&status.Conditions, c.Type)
			return
		}
		c.ObservedGeneration = o.set.Generation
		apimeta.SetStatusCondition(&status.Conditions, c)
	}
	show(p.isHalted(), metav1.Condition{
		Type: clusterv1alpha1.ConditionRemediationAllowed, Status: metav1.ConditionFalse,
		Reason: clusterv1alpha1.ReasonTooManyUnhealthy, Message: o.haltedMessage(),
	})
	show(p.decision.Frozen, metav1.Condition{
		Type: clusterv1alpha1.ConditionFrozen, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonOvershoot, Message: o.frozenMessage(),
	})
	show(o.paused, conditions.Paused(o.set))
}

// frozenMessage says why nothing is created, in words that change with the limit only.
func (o *observation) frozenMessage() string {
	return fmt.Sprintf("There are far more Machines than there may be: none is created until there are no more than %d, those on "+
		"their way out included", o.state.Bound)
}

// haltedMessage says why nothing is replaced, in words that change with the limit only.
func (o *observation) haltedMessage() string {
	return fmt.Sprintf("More than %s of all Machines that should be healthy are not: no failed Machine is replaced until fewer are",
		o.state.Repair.MaxUnhealthy.String())
}
