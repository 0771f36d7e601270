package fleet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
)

// OwnerIndex finds MachineSets and Machines in the cache by the uid of their controller, or by Orphan: see IndexOwners.
const OwnerIndex = "owner"

// Orphan is under which key OwnerIndex has the objects that no controller owns.
const Orphan = "orphan"

// IndexOwners adds OwnerIndex to a cache, and the index of Foreigners. The controllers of MachineDeployments, MachineSets and Machines share it, so it has to be
// there before they are added.
func IndexOwners(ctx context.Context, cache client.FieldIndexer) error {
	for _, kind := range []client.Object{&clusterv1alpha1.MachineSet{}, &clusterv1alpha1.Machine{}} {
		if err := cache.IndexField(ctx, kind, OwnerIndex, OwnerKey); err != nil {
			return fmt.Errorf("index %T by %s: %w", kind, OwnerIndex, err)
		}
	}
	if err := cache.IndexField(ctx, &clusterv1alpha1.Machine{}, foreignIndex, foreignKey); err != nil {
		return fmt.Errorf("index Machines by %s: %w", foreignIndex, err)
	}
	return nil
}

// OwnerKey is the uid of the object's controller, or Orphan.
func OwnerKey(o client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{Orphan}
}

// ControllerOf is the reference to the object's controller if it is of the project's kind of that name, in whatever
// version; else nil. Other projects have kinds of the same names.
func ControllerOf(o client.Object, kind string) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != kind {
		return nil
	}
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || group.Group != clusterv1alpha1.GroupVersion.Group {
		return nil
	}
	return owner
}

// Owner is an object that owns others by label and controllerRef.
type Owner struct {
	client.Object
	Kind     schema.GroupVersionKind
	Selector labels.Selector
}

// Claim says what has to happen for an object to belong to whom it should belong to.
type Claim int

const (
	// Ignore: the object is not the owner's, nor should it be.
	Ignore Claim = iota
	// Keep: it is the owner's.
	Keep
	// Adopt: it is nobody's, and the owner selects it.
	Adopt
	// Release: it is the owner's, which does not select it any more.
	Release
)

// Claims decides about an object. An object that is being deleted changes hands no more, and an owner that is being
// deleted adopts nothing. Nobody adopts what another system works on.
func (o Owner) Claims(obj client.Object) Claim {
	selected := o.Selector.Matches(labels.Set(obj.GetLabels()))
	leaving := !obj.GetDeletionTimestamp().IsZero()
	ref := metav1.GetControllerOfNoCopy(obj)
	switch {
	case ref != nil && ref.UID != o.GetUID():
		return Ignore
	case ref != nil && (selected || leaving):
		return Keep
	case ref != nil:
		return Release
	case selected && !leaving && o.GetDeletionTimestamp().IsZero() && foreign.Of(obj) == (foreign.Mark{}):
		return Adopt
	default:
		return Ignore
	}
}

// Ref is the reference that makes o the controller of an object. o is kept in a foreground deletion until the object is
// gone.
func (o Owner) Ref() metav1.OwnerReference {
	return *metav1.NewControllerRef(o, o.Kind)
}

// Settle writes the change of ownership that claim asks for. live returns the owner as the API server has it now: only
// one that still exists adopts, since the garbage collector would delete what a vanished owner owns. That the object has
// changed or gone meanwhile is no error: an event will tell.
func (o Owner) Settle(ctx context.Context, c client.Client, live func(context.Context) (client.Object, error), obj client.Object, claim Claim) error {
	if claim == Keep || claim == Ignore {
		return nil // So it is with nearly all, each time: nothing is to be copied for them.
	}
	changed := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	switch claim {
	case Adopt:
		now, err := live(ctx)
		if err != nil {
			return fmt.Errorf("look up the owner before adopting %s: %w", obj.GetName(), err)
		}
		if now.GetUID() != o.GetUID() || !now.GetDeletionTimestamp().IsZero() {
			return nil
		}
		changed.SetOwnerReferences(append(changed.GetOwnerReferences(), o.Ref()))
	case Release:
		changed.SetOwnerReferences(slices.DeleteFunc(changed.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.UID == o.GetUID()
		}))
	case Keep, Ignore:
	}
	patch := client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, changed, patch); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("change the owner of %s: %w", obj.GetName(), err)
	}
	return nil
}
