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
	"github.com/millwright-dev/millwright/core/controllers/fleet"
	"github.com/millwright-dev/millwright/core/rollout"
)

const (
	// maxName is how long a set's name may be.
	maxName = 63
	// hashBytes of a template's hash are used in names.
	hashBytes = 5
)

// createSet makes the set for the deployment's template and returns its name. The name is made from the template, so
// that a repeat meets the set that an earlier request has made. If another object has it, the next attempt uses another.
func (r *reconciler) createSet(ctx context.Context, o *observation, a rollout.CreateSet) (string, error) {
	set := o.newSet(a.Replicas)
	err := r.client.Create(ctx, set)
	o.noteSize(set, "", err)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return "", fmt.Errorf("create MachineSet %s: %w", set.Name, err)
		}
		r.tellCreated(o.md, set)
		return set.Name, nil
	}
	there := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), there); err != nil {
		return "", fmt.Errorf("look up MachineSet %s, which exists already: %w", set.Name, err)
	}
	same, err := o.current(there)
	if owner := metav1.GetControllerOf(there); err == nil && same && owner != nil && owner.UID == o.md.UID {
		return "", fleet.ErrStale
	}
	changed := o.md.DeepCopy()
	count := int32(1)
	if changed.Status.CollisionCount != nil {
		count += *changed.Status.CollisionCount
	}
	changed.Status.CollisionCount = &count
	patch := client.MergeFromWithOptions(o.md, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, changed, patch); err != nil {
		return "", fmt.Errorf("note that %s is taken: %w", set.Name, err)
	}
	return "", fleet.ErrStale
}

// newSet makes the set for the template, of that size.
func (o *observation) newSet(replicas int32) *clusterv1alpha1.MachineSet {
	hash := o.hash()
	owner := fleet.Owner{Object: o.md, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind)}
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       o.md.Namespace,
			Name:            setName(o.md.Name, hash),
			OwnerReferences: []metav1.OwnerReference{owner.Ref()},
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
	o.dress(set, o.revision(), o.state.Part(&rollout.Set{New: true}))
	o.scale(set, replicas, rollout.Scaling)
	return set
}

// hash tells templates apart in names. Whether two are the same is never decided by it. A deployment that is made again under
// its name gives its sets other names: Kubernetes' garbage collector may take a set for its namesake, see namesake.go.
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
