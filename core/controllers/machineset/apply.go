package machineset

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/scale"
)

// width is how many requests for one set are under way at once.
const width = 32

// applied is what came of a decision.
type applied struct {
	decision scale.Decision
	created  int
	deleted  int
	updated  int
	// short: fewer were created than was decided, since others had just taken the room.
	short bool
	// createErr, deleteErr and updateErr are what failed.
	createErr, deleteErr, updateErr error
}

// apply carries out what package scale decides, and brings the Machines that stay up to the
// template. Of a set that is paused it touches nothing.
func (r *reconciler) apply(ctx context.Context, o *observation) applied {
	if o.paused {
		return applied{}
	}
	done := applied{decision: scale.Decide(o.state)}
	if o.set.Annotations[clusterv1alpha1.RolloutAnnotation] == clusterv1alpha1.RolloutDwindling {
		// Who deletes a Machine of it wants one of the new template, which another set makes.
		done.decision.Create = 0
	}
	if done.decision.Create > 0 {
		done.created, done.short, done.createErr = r.create(ctx, o, done.decision.Create)
	}
	if len(done.decision.Delete) > 0 {
		done.deleted, done.deleteErr = r.delete(ctx, o, &done.decision)
	}
	isDeploymentLeaving := map[string]bool{}
	for _, victim := range done.decision.Delete {
		isDeploymentLeaving[victim.UID] = true
	}
	done.updated, done.updateErr = r.sync(ctx, o, isDeploymentLeaving)
	r.recordEvents(o, done)
	return done
}

// create creates count Machines, a few at first and then many at once, until one fails. It creates
// fewer where that would take what there is to spare and somebody else has just taken it; short
// says so.
func (r *reconciler) create(ctx context.Context, o *observation, count int) (created int, short bool, err error) {
	last := 0
	for created < count {
		last = scale.Batch(last, count-created, width)
		names, err := r.reserveNames(ctx, o, created, last)
		if err != nil || len(names) == 0 {
			return created, true, err
		}
		outcomes := make([]outcome, len(names))
		inParallel(len(names), func(i int) bool {
			outcomes[i] = r.post(ctx, o.set, names[i])
			return outcomes[i].kind == exists || outcomes[i].kind == taken
		})
		r.release(o, names, outcomes)
		n, err := r.recordOutcomes(o, names, outcomes)
		created += n
		if err != nil {
			return created, false, err
		}
	}
	return created, false, nil
}

// recordOutcomes remembers what came of requests. It returns how many Machines are there now, and
// the first error.
func (r *reconciler) recordOutcomes(o *observation, names []string, outcomes []outcome) (int, error) {
	created, first := 0, error(nil)
	for i, out := range outcomes {
		_, lostBefore := o.memory.lost[names[i]]
		switch out.kind {
		case notSent, refused:
			// Nothing was created by this request, but one that was lost before may yet be carried
			// out.
			if !lostBefore {
				o.memory.names.Refused(names[i])
			}
		case exists:
			o.memory.names.Created(names[i])
			o.memory.pending.Created(out.machine)
			delete(o.memory.lost, names[i])
			created++
		case taken:
			o.memory.names.Created(names[i])
			delete(o.memory.lost, names[i])
			r.recordNameTaken(o.set, names[i])
		case lost:
			o.memory.lost[names[i]] = r.clock.Now()
			o.memory.needsConfirmation = true
		}
		if first == nil {
			first = out.err
		}
	}
	return created, first
}

// delete deletes the Machines that are too many, or that are replaced. It decides anew, on what is
// certain by then. What it decides replaces what was decided.
func (r *reconciler) delete(ctx context.Context, o *observation, decision *scale.Decision) (int, error) {
	state, err := r.confirm(ctx, o)
	if err != nil {
		return 0, err
	}
	now := scale.Decide(state)
	decision.Delete, decision.Health = now.Delete, now.Health
	victims := now.Delete
	errs := make([]error, len(victims))
	inParallel(len(victims), func(i int) bool {
		errs[i] = r.deleteMachine(ctx, o.set.Namespace, victims[i])
		return errs[i] == nil
	})
	deleted := 0
	for i, victim := range victims {
		if errs[i] == nil {
			o.memory.pending.Deleted(victim.UID)
			deleted++
		}
	}
	if deleted > 0 && len(now.Health.Replace) > 0 {
		o.memory.attempts = o.memory.attempts.After(scale.Patients(state.Machines))
	}
	return deleted, errors.Join(errs...)
}

// deleteMachine deletes this very Machine, and not one that has its name by now.
func (r *reconciler) deleteMachine(ctx context.Context, namespace string, victim scale.Machine) error {
	m := &clusterv1alpha1.Machine{}
	m.Namespace, m.Name = namespace, victim.Name
	uid := types.UID(victim.UID)
	err := r.client.Delete(ctx, m, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// inParallel calls do with 0 to n-1, width at a time, and begins no more once one has returned
// false.
func inParallel(n int, do func(int) bool) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next, failed := 0, false
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed || next == n {
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
					failed = true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}
