package machinedeployment

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/rollout"
)

const (
	// maxName is how long a set's name may be.
	maxName = 63
	// hashBytes of a template's hash are used in names.
	hashBytes = 5
)

// createSet makes the set for the deployment's template and returns its name. The name is made from
// the template, so that a repeat meets the set that an earlier request has made. If another object
// has it, the next attempt uses another.
//
// The set is made empty and gets its size with a second request. A create whose answer is lost may
// be carried out a minute later, when the deployment has another template and another set: by then
// it brings no Machines. Nor does a size that is late: it is given to the very set that was made,
// and each set that a rollout leaves behind is written to before the next one is made.
func (r *reconciler) createSet(ctx context.Context, o *observation, a rollout.CreateSet) (string, error) {
	set := o.newSet()
	err := r.client.Create(ctx, set)
	if err == nil {
		err = r.giveSize(ctx, o, set, a.Replicas)
		r.recordSetCreated(o.md, set)
		return set.Name, err
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create MachineSet %s: %w", set.Name, err)
	}
	there := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), there); err != nil {
		return "", fmt.Errorf("look up MachineSet %s, which exists already: %w", set.Name, err)
	}
	same, err := o.isCurrent(there)
	if owner := metav1.GetControllerOf(there); err == nil && same && owner != nil && owner.UID == o.md.UID {
		return "", requeue.ErrStale
	}
	return "", r.noteCollision(ctx, o, set.Name)
}

// giveSize gives a set that was just made its size. Where somebody has written to the set already,
// the next plan does.
func (r *reconciler) giveSize(ctx context.Context, o *observation, set *clusterv1alpha1.MachineSet, replicas int32) error {
	if replicas == 0 {
		return nil
	}
	made, patch := set.DeepCopy(), client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{})
	o.scale(made, replicas, rollout.Scaling)
	sized := made.DeepCopy()
	err := r.client.Patch(ctx, made, patch)
	o.recordSize(sized, set.ResourceVersion, err)
	if err != nil {
		return fmt.Errorf("give MachineSet %s its size: %w", set.Name, err)
	}
	*set = *made
	return nil
}

// noteCollision has the next attempt use another name. It returns requeue.ErrStale when that is
// written.
func (r *reconciler) noteCollision(ctx context.Context, o *observation, taken string) error {
	changed := o.md.DeepCopy()
	count := int32(1)
	if changed.Status.CollisionCount != nil {
		count += *changed.Status.CollisionCount
	}
	changed.Status.CollisionCount = &count
	patch := client.MergeFromWithOptions(o.md, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("note that %s is taken: %w", taken, err)
	}
	return requeue.ErrStale
}

// newSet makes the set for the template, without Machines.
func (o *observation) newSet() *clusterv1alpha1.MachineSet {
	hash := o.hash()
	owner := ownership.Owner{Object: o.md, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind)}
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       o.md.Namespace,
			Name:            setName(o.md.Name, hash),
			OwnerReferences: []metav1.OwnerReference{owner.Reference()},
		},
		Spec: clusterv1alpha1.MachineSetSpec{
			Selector: *o.md.Spec.Selector.DeepCopy(),
			Template: *o.md.Spec.Template.DeepCopy(),
		},
	}
	if set.Spec.Selector.MatchLabels == nil {
		set.Spec.Selector.MatchLabels = map[string]string{}
	}
	set.Spec.Selector.MatchLabels[clusterv1alpha1.MachineTemplateHashLabel] = hash
	if o.since != nil {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1alpha1.RolloutAfterAnnotation, o.since.UTC().Format(time.RFC3339))
	}
	o.update(set)
	o.syncMetadata(set, o.revision(), o.state.Part(&rollout.Set{New: true}))
	o.scale(set, 0, rollout.Scaling)
	return set
}

// hash tells templates apart in names. Whether two are the same is never decided by it. A
// deployment that is made again under its name gives its sets other names: Kubernetes' garbage
// collector may take a set for its namesake, see namesake.go.
func (o *observation) hash() string {
	h := sha256.New()
	_, _ = h.Write(o.template)
	_, _ = fmt.Fprintf(h, "/of/%s", o.md.UID)
	if o.since != nil {
		_, _ = fmt.Fprintf(h, "/after/%d", o.since.Unix())
	}
	if count := o.md.Status.CollisionCount; count != nil {
		_, _ = fmt.Fprintf(h, "/%d", *count)
	}
	return rand.SafeEncodeString(fmt.Sprintf("%x", h.Sum(nil)[:hashBytes]))
}

func setName(deployment, hash string) string {
	if longest := maxName - len(hash) - 1; len(deployment) > longest {
		deployment = strings.TrimRight(deployment[:longest], "-.")
	}
	return deployment + "-" + hash
}
