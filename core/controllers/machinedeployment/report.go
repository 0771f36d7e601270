package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/requeue"
)

// report writes the status, if it has changed and it is time, and says when to look again.
func (r *reconciler) report(ctx context.Context, o *observation, done applied) (ctrl.Result, error) {
	now := r.clock.Now()
	status, left := o.status(done, r.since, now)
	again := requeue.Earlier(o.next, left)
	wait, due := r.due(o.md, status)
	if !due {
		return requeue.Result(requeue.Earlier(again, wait), done.err)
	}
	changed := o.md.DeepCopy()
	changed.Status = *status
	patch := client.MergeFromWithOptions(o.md, client.MergeFromWithOptimisticLock{})
	switch err := r.client.Status().Patch(ctx, changed, patch); {
	case apierrors.IsConflict(err):
		return requeue.Result(requeue.Earlier(again, requeue.Soon), done.err)
	case err != nil:
		return ctrl.Result{}, errors.Join(done.err, fmt.Errorf("write the status: %w", err))
	}
	r.recordProgress(o.md, status)
	r.reports.note(client.ObjectKeyFromObject(o.md), now)
	return requeue.Result(again, done.err)
}

// due says whether the status is to be written now; if not, but later, in how long.
func (r *reconciler) due(md *clusterv1alpha1.MachineDeployment, status *clusterv1alpha1.MachineDeploymentStatus) (time.Duration, bool) {
	old := &md.Status
	urgent := old.ObservedGeneration != status.ObservedGeneration || old.Selector != status.Selector ||
		!conditions.HaveSameReasons(old.Conditions, status.Conditions)
	written := r.reports.last(client.ObjectKeyFromObject(md))
	return requeue.StatusDue(!apiequality.Semantic.DeepEqual(old, status), urgent, written, r.clock.Now())
}

// status is the status as it should be, and in how long the progress deadline is over if nothing
// happens; 0 if it does not run.
func (o *observation) status(done applied, since, now time.Time) (*clusterv1alpha1.MachineDeploymentStatus, time.Duration) {
	status := o.md.Status.DeepCopy()
	if selector, err := o.md.Spec.Selector.AsSelector(); err == nil {
		status.Selector = selector.String()
	}
	status.Replicas, status.UpdatedReplicas = o.counts.present, o.counts.updated
	status.ReadyReplicas, status.AvailableReplicas = o.counts.ready, o.counts.available
	status.UnavailableReplicas = max(o.state.Replicas-o.counts.available, 0)

	apimeta.SetStatusCondition(&status.Conditions, o.availability())
	if failure := o.failure(); failure != nil {
		apimeta.SetStatusCondition(&status.Conditions, *failure)
	} else {
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
	}
	if done.held {
		// What the spec asks for is not acted on: the generation is not observed, and what was said
		// of progress stays.
		apimeta.SetStatusCondition(&status.Conditions, conditions.Paused(o.md))
		return status, 0
	}
	status.ObservedGeneration = o.md.Generation
	apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionPaused)
	p := o.progress(done, since, now)
	status.LastProgressTime = p.last
	apimeta.SetStatusCondition(&status.Conditions, p.condition)
	return status, p.left
}

func (o *observation) availability() metav1.Condition {
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

// failure repeats what is in the way of a set, first of all of the new one; nil if nothing is.
func (o *observation) failure() *metav1.Condition {
	sets := make([]*clusterv1alpha1.MachineSet, 0, len(o.sets)+1)
	if o.fresh != nil {
		sets = append(sets, o.fresh)
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

// reports remember when a status was last written. They are safe for concurrent use; the zero value
// is empty.
type reports struct {
	mu   sync.Mutex
	when map[types.NamespacedName]time.Time
}

func (r *reports) last(key types.NamespacedName) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.when[key]
}

func (r *reports) note(key types.NamespacedName, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.when == nil {
		r.when = map[types.NamespacedName]time.Time{}
	}
	r.when[key] = now
}

func (r *reports) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.when, key)
}
