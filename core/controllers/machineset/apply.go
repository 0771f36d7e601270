package machineset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/surge"
)

// width is how many requests for one set are under way at once.
const width = 32

// results are what came of a plan.
type results struct {
	created, deleted, updated int
	// isShort: fewer Machines were created than planned, since others had just taken the room.
	isShort bool
	// createErr, deleteErr and updateErr are what failed.
	createErr, deleteErr, updateErr error
}

func (r *results) err() error { return errors.Join(r.createErr, r.deleteErr, r.updateErr) }

// apply carries out the plan, reports what there is, and says when to look again.
func (r *reconciler) apply(ctx context.Context, o *observation, p plan) (ctrl.Result, error) {
	switch {
	case p.forget:
		r.memories.forget(o.key)
		r.debounce.Forget(o.key)
		return ctrl.Result{}, nil
	case p.leaveAlone != "":
		r.memories.forget(o.key)
		return coexistence.LeaveAlone(ctx, r.client, o.set, p.leaveAlone)
	case p.replicas != nil:
		return ctrl.Result{}, r.writeSize(ctx, o.set, *p.replicas)
	case !p.report:
		return requeue.Result(p.requeue, r.changeOwners(ctx, p))
	}
	if o.memory.pending.IsSettled() {
		r.reservations.settle(o)
	}
	var done results
	if !o.paused {
		done.created, done.isShort, done.createErr = r.creator.create(ctx, o, p.decision.Create)
		done.deleted, done.deleteErr = r.deleteMachines(ctx, o, &p)
		done.updated, done.updateErr = r.updateInPlace(ctx, o, p.update)
		r.recorder.record(o, &p, &done)
	}
	return r.report(ctx, o, &p, &done)
}

// writeSize gives the set a size. A conflict is no error: an event follows.
func (r *reconciler) writeSize(ctx context.Context, set *clusterv1alpha1.MachineSet, replicas int32) error {
	patch := client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{})
	set.Spec.Replicas = &replicas
	if err := r.client.Patch(ctx, set, patch); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the default of spec.replicas: %w", err)
	}
	return nil
}

func (r *reconciler) changeOwners(ctx context.Context, p plan) error {
	for _, change := range p.ownerChanges {
		if err := change.Write(ctx, r.client, r.live); err != nil {
			return err
		}
	}
	return nil
}

// deleteMachines deletes the Machines that are too many, or that are replaced. It returns how many
// it deleted.
func (r *reconciler) deleteMachines(ctx context.Context, o *observation, p *plan) (int, error) {
	if p.deleteErr != nil {
		return 0, p.deleteErr
	}
	victims := p.decision.Delete
	errs := make([]error, len(victims))
	inParallel(len(victims), func(i int) bool {
		errs[i] = r.deleteMachine(ctx, o.set.Namespace, &victims[i])
		return errs[i] == nil
	})
	deleted := 0
	for i := range victims {
		if errs[i] == nil {
			o.memory.pending.AddDeleted(victims[i].UID)
			deleted++
		}
	}
	if deleted > 0 && len(p.decision.Health.Replace) > 0 {
		o.memory.attempts = o.memory.attempts.After(scale.HealthMachines(o.confirmed.Machines))
	}
	return deleted, errors.Join(errs...)
}

// deleteMachine deletes this very Machine, and not one that has its name by now.
func (r *reconciler) deleteMachine(ctx context.Context, namespace string, victim *scale.Machine) error {
	m := &clusterv1alpha1.Machine{}
	m.Namespace, m.Name = namespace, victim.Name
	uid := types.UID(victim.UID)
	err := r.client.Delete(ctx, m, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// updateInPlace brings Machines up to the template, as far as that needs no other VM, with one
// patch each. It returns how many it changed.
func (r *reconciler) updateInPlace(ctx context.Context, o *observation, machines []*clusterv1alpha1.Machine) (int, error) {
	if len(machines) == 0 {
		return 0, nil
	}
	part := partOf(o.set)
	errs := make([]error, len(machines))
	isDone := make([]bool, len(machines))
	inParallel(len(machines), func(i int) bool {
		// The patch names what the template gives, and no version: it can undo nobody's change.
		err := r.client.Patch(ctx, part.addTo(machines[i]), client.MergeFrom(machines[i]))
		if client.IgnoreNotFound(err) != nil {
			errs[i] = fmt.Errorf("bring Machine %s up to the template: %w", machines[i].Name, err)
			return false
		}
		isDone[i] = true
		return true
	})
	changed := 0
	for i, m := range machines {
		if isDone[i] {
			o.memory.inPlace.upToDate[m.UID] = m.ResourceVersion
			changed++
		}
	}
	return changed, errors.Join(errs...)
}

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
		again = requeue.Earlier(again, surge.Expiry)
	}
	if p.isHalted() && !r.health.hold(o.set) {
		again = requeue.Soon
	}
	if len(o.memory.lost) > 0 {
		again = requeue.Earlier(again, settleAfter)
	}
	if !o.memory.pending.IsSettled() && failure == nil {
		// The cache shows in a moment what was just done. Until then nothing certain can be
		// reported.
		return ctrl.Result{RequeueAfter: requeue.Earlier(again, lookUpAfter)}, nil
	}
	status := newStatus(o, p, done)
	if wait, isDue := o.isStatusDue(status, r.clock.Now()); !isDue {
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

// isStatusDue says whether the status is to be written now; if not, but later, in how long.
func (o *observation) isStatusDue(status *clusterv1alpha1.MachineSetStatus, now time.Time) (time.Duration, bool) {
	old := &o.set.Status
	isUrgent := old.ObservedGeneration != status.ObservedGeneration || old.Selector != status.Selector ||
		!conditions.HaveSameReasons(old.Conditions, status.Conditions)
	return requeue.StatusDue(!apiequality.Semantic.DeepEqual(old, status), isUrgent, o.memory.reported, now)
}

// writeStatus writes only what has changed, and only if nobody else has changed the set: nextIndex
// must never fall.
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

// inParallel calls do with 0 to n-1, width at a time, and begins no more once one has returned
// false.
func inParallel(n int, do func(int) bool) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next, hasFailed := 0, false
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if hasFailed || next == n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(n, width) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if !do(i) {
					mu.Lock()
					hasFailed = true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}
