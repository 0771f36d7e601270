package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/apiserver"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/surge"
)

// results are what came of a plan.
type results struct {
	// created is the set that was made for the template, found one of before that is used again;
	// empty if there is none.
	created, found string
	// createErr is why no set could be made; err the first error of all.
	createErr, err error
}

// apply carries out the plan, reports what there is, and says when to look again.
func (r *reconciler) apply(ctx context.Context, o *observation, p plan) (ctrl.Result, error) {
	var done results
	if !o.paused {
		done = r.moveRollout(ctx, o, &p)
	}
	if errors.Is(done.err, requeue.ErrStale) || apierrors.IsConflict(done.err) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	return r.report(ctx, o, &p, &done)
}

// deleteSet deletes this very version of a set, if it exists.
func (r *reconciler) deleteSet(ctx context.Context, set *clusterv1alpha1.MachineSet) error {
	named := &clusterv1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
	err := r.client.Delete(ctx, named, client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion})
	return client.IgnoreNotFound(err)
}

// moveRollout changes, makes and drops sets as planned, up to the first error.
func (r *reconciler) moveRollout(ctx context.Context, o *observation, p *plan) results {
	var done results
	if p.hasSteps || len(p.edits) > 0 {
		if done.err = r.confirm(ctx, o); done.err != nil {
			return done
		}
	}
	done.found = p.found
	for _, e := range p.edits {
		if done.err = r.edit(ctx, o, e); done.err != nil {
			return done
		}
	}
	if p.create != nil {
		done.created, done.createErr = r.createSet(ctx, o, p)
		if done.err = done.createErr; done.err != nil {
			return done
		}
	}
	for _, set := range p.remove {
		if err := r.deleteSet(ctx, set); err != nil {
			done.err = fmt.Errorf("delete MachineSet %s: %w", set.Name, err)
			return done
		}
	}
	if o.current != nil || p.create != nil {
		done.err = r.writeRevision(ctx, o, p.revision)
	}
	return done
}

// confirm makes sure that the cache shows the deployment and its sets as the API server has them
// now. It fails with requeue.ErrStale if it does not.
func (r *reconciler) confirm(ctx context.Context, o *observation) error {
	md := &clusterv1alpha1.MachineDeployment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.md), md); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look up the MachineDeployment: %w", err)
	}
	if md.UID != o.md.UID || md.Generation != o.md.Generation || !md.DeletionTimestamp.IsZero() {
		return requeue.ErrStale
	}
	selector, err := o.md.Spec.Selector.AsSelector()
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	live := &clusterv1alpha1.MachineSetList{}
	if err := r.live.List(ctx, live, client.InNamespace(o.md.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the MachineSets there are: %w", err)
	}
	cached := map[types.UID]int64{}
	for i := range o.sets {
		// A set that is being deleted is the deployment's also when it is not selected any more.
		if selector.Matches(labels.Set(o.sets[i].Labels)) {
			cached[o.sets[i].UID] = o.sets[i].Generation
		}
	}
	for i := range live.Items {
		set := &live.Items[i]
		if !metav1.IsControlledBy(set, o.md) {
			continue
		}
		if generation, ok := cached[set.UID]; !ok || generation != set.Generation {
			return requeue.ErrStale
		}
		delete(cached, set.UID)
	}
	if len(cached) > 0 {
		return requeue.ErrStale
	}
	return nil
}

// edit changes a set.
func (r *reconciler) edit(ctx context.Context, o *observation, e edit) error {
	before := e.from.ResourceVersion
	err := r.client.Patch(ctx, e.to, client.MergeFromWithOptions(e.from, client.MergeFromWithOptimisticLock{}))
	o.recordSize(e.to, before, err)
	if err != nil {
		return fmt.Errorf("change MachineSet %s: %w", e.to.Name, err)
	}
	r.recorder.recordSetScaled(o.md, e)
	return nil
}

// recordSize records in the deployment's account that a set was given its size, unless the API
// server refused.
func (o *observation) recordSize(set *clusterv1alpha1.MachineSet, before string, err error) {
	if !apiserver.IsRefused(err) {
		size := surge.Size{Replicas: int(ptr.Deref(set.Spec.Replicas, 0)), Max: int(o.maxReplicas())}
		o.account.SetSize(set.Name, before, size)
	}
}

// createSet makes the set for the deployment's template and returns its name. The name is made from
// the template, so that a repeat meets the set that an earlier request has made. If another object
// has the name, the next attempt uses another.
//
// The set is made empty and gets its size with a second request. A create whose answer is lost may
// be carried out a minute later, when the deployment has another template and another set. An empty
// set brings no Machines then. A late size brings none either. It is given to the very set that
// was made, and only while nobody has written to that set. A rollout writes to each set that it
// leaves behind before it makes the next.
func (r *reconciler) createSet(ctx context.Context, o *observation, p *plan) (string, error) {
	set := p.create
	err := r.client.Create(ctx, set)
	if err == nil {
		err = r.giveSize(ctx, o, set, p.createReplicas)
		r.recorder.recordSetCreated(o.md, set)
		return set.Name, err
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create MachineSet %s: %w", set.Name, err)
	}
	there := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), there); err != nil {
		return "", fmt.Errorf("look up MachineSet %s, which exists already: %w", set.Name, err)
	}
	isCurrent, err := o.template.IsOf(there)
	if err == nil && isCurrent && metav1.IsControlledBy(there, o.md) {
		return "", requeue.ErrStale
	}
	return "", r.recordCollision(ctx, o, set.Name)
}

// giveSize gives a set that was just made its size. If somebody has written to the set already, the
// next plan does. That would be another plan: it sees a rollout under way, and a size that was
// changed together with the template has old sets grow. So a status does not count.
func (r *reconciler) giveSize(ctx context.Context, o *observation, set *clusterv1alpha1.MachineSet, replicas int32) error {
	if replicas == 0 {
		return nil
	}
	err := retry.OnError(retry.DefaultRetry,
		func(err error) bool { return apierrors.IsConflict(err) && r.hasOnlyStatus(ctx, set) },
		func() error { return r.giveSizeOnce(ctx, o, set, replicas) })
	if err != nil {
		return fmt.Errorf("give MachineSet %s its size: %w", set.Name, err)
	}
	return nil
}

func (r *reconciler) giveSizeOnce(ctx context.Context, o *observation, set *clusterv1alpha1.MachineSet, replicas int32) error {
	sized := set.DeepCopy()
	o.setSize(sized, replicas, rollout.Scaling)
	answer := sized.DeepCopy()
	err := r.client.Patch(ctx, answer, client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{}))
	o.recordSize(sized, set.ResourceVersion, err)
	if err == nil {
		*set = *answer
	}
	return err
}

// hasOnlyStatus says whether nothing but the status was written to a set since it was made, and
// has set be what there is now.
func (r *reconciler) hasOnlyStatus(ctx context.Context, set *clusterv1alpha1.MachineSet) bool {
	there := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), there); err != nil {
		return false // The conflict is told.
	}
	isAsMade := there.UID == set.UID && there.Generation == set.Generation && there.DeletionTimestamp.IsZero() &&
		maps.Equal(there.Annotations, set.Annotations) && maps.Equal(there.Labels, set.Labels)
	*set = *there
	return isAsMade
}

// recordCollision has the next attempt use another name. It returns requeue.ErrStale when that is
// written.
func (r *reconciler) recordCollision(ctx context.Context, o *observation, taken string) error {
	changed := o.md.DeepCopy()
	changed.Status.CollisionCount = new(ptr.Deref(changed.Status.CollisionCount, 0) + 1)
	patch := client.MergeFromWithOptions(o.md, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("note that %s is taken: %w", taken, err)
	}
	return requeue.ErrStale
}

// writeRevision writes the revision of the template's set on the deployment.
func (r *reconciler) writeRevision(ctx context.Context, o *observation, revision int64) error {
	if rollout.Revision(o.md) == revision {
		return nil
	}
	changed := o.md.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, clusterv1alpha1.RevisionAnnotation, strconv.FormatInt(revision, 10))
	if err := r.client.Patch(ctx, changed, client.MergeFrom(o.md)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the revision: %w", err)
	}
	// The status is written next, and must not fail because of this write.
	o.md.ResourceVersion = changed.ResourceVersion
	o.md.Annotations = changed.Annotations
	return nil
}
