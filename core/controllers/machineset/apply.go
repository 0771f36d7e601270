package machineset

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/scale"
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
	r.releaseReservations(o)
	var done results
	if !o.paused {
		done.created, done.isShort, done.createErr = r.create(ctx, o, p.decision.Create)
		done.deleted, done.deleteErr = r.deleteMachines(ctx, o, &p)
		done.updated, done.updateErr = r.updateInPlace(ctx, o.memory, p.update)
		r.recorder.record(o, &p, &done)
	}
	return r.report(ctx, o, &p, &done)
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
		o.memory.attempts = o.memory.attempts.After(o.confirmed.Machines)
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
func (r *reconciler) updateInPlace(ctx context.Context, mem *memory, outdated []*clusterv1alpha1.Machine) (int, error) {
	errs := make([]error, len(outdated))
	isDone := make([]bool, len(outdated))
	inParallel(len(outdated), func(i int) bool {
		// The patch names what the template gives, and no version: it can undo nobody's change.
		changed := withTemplate(outdated[i], &mem.template).DeepCopy()
		err := r.client.Patch(ctx, changed, client.MergeFrom(outdated[i]))
		if client.IgnoreNotFound(err) != nil {
			errs[i] = fmt.Errorf("bring Machine %s up to the template: %w", outdated[i].Name, err)
			return false
		}
		isDone[i] = true
		return true
	})
	changed := 0
	for i, m := range outdated {
		if isDone[i] {
			mem.upToDate[m.UID] = m.ResourceVersion
			changed++
		}
	}
	return changed, errors.Join(errs...)
}

// inParallel calls do with 0 to n-1, width at a time, and begins no more once one has returned
// false.
func inParallel(n int, do func(int) bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	workqueue.ParallelizeUntil(ctx, width, n, func(i int) {
		if !do(i) {
			cancel()
		}
	})
}
