package machinedeployment

import (
	"context"
	"fmt"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/surge"
)

// applied is what came of a plan.
type applied struct {
	actions []rollout.Action
	wait    rollout.Wait
	// created is the set that was made for the template, found one of before that is used again;
	// empty if none was.
	created, found string
	// createErr is why no set could be made; err the first error of all.
	createErr, err error
	// held says that nothing was done, since somebody asked for the deployment to be left alone.
	held bool
}

// apply carries out what package rollout plans, and keeps on the sets what they have from the
// deployment.
func (r *reconciler) apply(ctx context.Context, o *observation) applied {
	var done applied
	done.actions, done.wait = rollout.Plan(o.state)
	edits := o.edits(done.actions)
	if len(done.actions) > 0 || len(edits) > 0 {
		if done.err = r.confirm(ctx, o); done.err != nil {
			return done
		}
	}
	if o.fresh != nil && revisionOf(o.fresh) < o.revision() && len(o.sets) > 1 {
		done.found = o.fresh.Name
	}
	for _, e := range edits {
		patch := client.MergeFromWithOptions(e.from, client.MergeFromWithOptimisticLock{})
		version := e.from.ResourceVersion
		err := r.client.Patch(ctx, e.to, patch)
		o.recordSize(e.to, version, err)
		if err != nil {
			done.err = fmt.Errorf("change MachineSet %s: %w", e.to.Name, err)
			return done
		}
		r.recordSetScaled(o.md, e)
	}
	r.createAndDeleteSets(ctx, o, &done)
	if done.err == nil && (o.fresh != nil || done.created != "") {
		done.err = r.noteRevision(ctx, o)
	}
	return done
}

// createAndDeleteSets carries out what makes sets and drops them, up to the first error.
func (r *reconciler) createAndDeleteSets(ctx context.Context, o *observation, done *applied) {
	for _, a := range done.actions {
		switch a := a.(type) {
		case rollout.CreateSet:
			done.created, done.createErr = r.createSet(ctx, o, a)
			done.err = done.createErr
		case rollout.DeleteSet:
			done.err = r.deleteSet(ctx, o, a)
		case rollout.ScaleSet:
			// Is among the edits.
		}
		if done.err != nil {
			return
		}
	}
}

// recordSize notes in the deployment's room that a set was given its size, unless that was refused.
func (o *observation) recordSize(set *clusterv1alpha1.MachineSet, before string, err error) {
	if !surge.IsRefused(err) {
		o.room.SetSize(set.Name, before, surge.Size{
			Replicas: int(ptr.Deref(set.Spec.Replicas, 0)), Max: int(o.state.Replicas + o.state.Limits.MaxSurge),
		})
	}
}

// confirm makes sure that the cache shows the deployment and its sets as the API server has them
// now.
func (r *reconciler) confirm(ctx context.Context, o *observation) error {
	md := &clusterv1alpha1.MachineDeployment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.md), md); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look up the MachineDeployment: %w", err)
	}
	if md.UID != o.md.UID || md.Generation != o.md.Generation || !md.DeletionTimestamp.IsZero() {
		return requeue.ErrStale
	}
	live := &clusterv1alpha1.MachineSetList{}
	if err := r.live.List(ctx, live, client.InNamespace(o.md.Namespace)); err != nil {
		return fmt.Errorf("list the MachineSets there are: %w", err)
	}
	cached := map[types.UID]int64{}
	for i := range o.sets {
		cached[o.sets[i].UID] = o.sets[i].Generation
	}
	for i := range live.Items {
		owner := metav1.GetControllerOf(&live.Items[i])
		if owner == nil || owner.UID != o.md.UID {
			continue
		}
		if generation, ok := cached[live.Items[i].UID]; !ok || generation != live.Items[i].Generation {
			return requeue.ErrStale
		}
		delete(cached, live.Items[i].UID)
	}
	if len(cached) > 0 {
		return requeue.ErrStale
	}
	return nil
}

// edit is a change of a set, in one write.
type edit struct {
	from, to *clusterv1alpha1.MachineSet
	reason   rollout.Reason
}

// edits returns the sets that have to change: those that are scaled, and those that lack something
// of the deployment.
func (o *observation) edits(actions []rollout.Action) []edit {
	scaled := map[string]rollout.ScaleSet{}
	for _, a := range actions {
		if s, ok := a.(rollout.ScaleSet); ok {
			scaled[s.Name] = s
		}
	}
	var edits []edit
	for i := range o.sets {
		e := edit{from: &o.sets[i], to: o.sets[i].DeepCopy()}
		if !e.from.DeletionTimestamp.IsZero() {
			continue
		}
		revision := revisionOf(e.from)
		if e.from == o.fresh {
			revision = o.revision()
			o.update(e.to)
		}
		o.syncMetadata(e.to, revision, o.state.Part(&o.state.Sets[i]))
		if s, ok := scaled[e.to.Name]; ok {
			e.reason = s.Reason
			o.scale(e.to, s.To, s.Reason)
		}
		if !apiequality.Semantic.DeepEqual(e.from, e.to) {
			edits = append(edits, e)
		}
	}
	return edits
}

// maxReplicas is how many Machines the deployment may have, for an annotation.
func (o *observation) maxReplicas() string {
	return strconv.Itoa(int(o.state.Replicas + o.state.Limits.MaxSurge))
}

// scale sets the size, and notes what it was planned for and why.
func (o *observation) scale(set *clusterv1alpha1.MachineSet, to int32, reason rollout.Reason) {
	set.Spec.Replicas = &to
	replicas := o.state.Replicas
	for key, value := range map[string]string{
		clusterv1alpha1.DesiredReplicasAnnotation: strconv.Itoa(int(replicas)),
		clusterv1alpha1.MaxReplicasAnnotation:     o.maxReplicas(),
		clusterv1alpha1.ScalingReasonAnnotation:   string(reason),
	} {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
}

// deleteSet drops an empty set, if nobody has given it a size meanwhile.
func (r *reconciler) deleteSet(ctx context.Context, o *observation, a rollout.DeleteSet) error {
	for i := range o.sets {
		set := &o.sets[i]
		if set.Name != a.Name {
			continue
		}
		err := r.client.Delete(ctx, set, client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete MachineSet %s: %w", set.Name, err)
		}
	}
	return nil
}

// noteRevision writes the new set's revision on the deployment.
func (r *reconciler) noteRevision(ctx context.Context, o *observation) error {
	if revisionOf(o.md) == o.revision() {
		return nil
	}
	changed := o.md.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, clusterv1alpha1.RevisionAnnotation, strconv.FormatInt(o.revision(), 10))
	if err := r.client.Patch(ctx, changed, client.MergeFrom(o.md)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the revision: %w", err)
	}
	// The status, which is written next, must not fail because of this write.
	o.md.ResourceVersion = changed.ResourceVersion
	o.md.Annotations = changed.Annotations
	return nil
}
