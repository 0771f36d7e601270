package ownership

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

// Owner is an object that owns others by label and controllerRef.
type Owner struct {
	client.Object
	Kind     schema.GroupVersionKind
	Selector labels.Selector
}

// Action is what has to happen for an object to have the right owner.
type Action int

const (
	// Ignore: the object is not the owner's, nor should it be.
	Ignore Action = iota
	// Keep: it is the owner's.
	Keep
	// Adopt: it is nobody's, and the owner selects it.
	Adopt
	// Release: it is the owner's, which does not select it any more.
	Release
)

// ActionFor decides about an object. An object that is being deleted does not change hands, and an
// owner that is being deleted adopts nothing. Nobody adopts what another system works on.
func (o Owner) ActionFor(obj client.Object) Action {
	isSelected := o.Selector.Matches(labels.Set(obj.GetLabels()))
	isDeleting := !obj.GetDeletionTimestamp().IsZero()
	ref := metav1.GetControllerOfNoCopy(obj)
	switch {
	case ref != nil && ref.UID != o.GetUID():
		return Ignore
	case ref != nil && (isSelected || isDeleting):
		return Keep
	case ref != nil:
		return Release
	case isSelected && !isDeleting && o.GetDeletionTimestamp().IsZero() && foreign.Of(obj) == (foreign.Mark{}):
		return Adopt
	default:
		return Ignore
	}
}

// Reference makes o the controller of an object. A foreground deletion of o waits for the object.
func (o Owner) Reference() metav1.OwnerReference {
	return *metav1.NewControllerRef(o, o.Kind)
}

// Change is a change of an object's owner that is due.
type Change struct {
	Owner  Owner
	Object client.Object
	// Action is Adopt or Release.
	Action Action
}

// Write writes the change. live reads the owner from the API server: only one that still exists may
// adopt, because the garbage collector deletes what a vanished owner owns. A conflict, or an object
// that is gone, is no error: an event follows.
func (c Change) Write(ctx context.Context, writer client.Writer, live client.Reader) error {
	changed := c.Object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	switch c.Action {
	case Adopt:
		owner := &metav1.PartialObjectMetadata{}
		owner.SetGroupVersionKind(c.Owner.Kind)
		if err := live.Get(ctx, client.ObjectKeyFromObject(c.Owner), owner); err != nil {
			return fmt.Errorf("look up the owner before adopting %s: %w", c.Object.GetName(), err)
		}
		if owner.UID != c.Owner.GetUID() || !owner.DeletionTimestamp.IsZero() {
			return nil
		}
		changed.SetOwnerReferences(append(changed.GetOwnerReferences(), c.Owner.Reference()))
	case Release:
		changed.SetOwnerReferences(slices.DeleteFunc(changed.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.UID == c.Owner.GetUID()
		}))
	case Keep, Ignore:
		return nil
	}
	patch := client.MergeFromWithOptions(c.Object, client.MergeFromWithOptimisticLock{})
	if err := writer.Patch(ctx, changed, patch); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("change the owner of %s: %w", c.Object.GetName(), err)
	}
	return nil
}

// ControllerOf is the reference to the object's controller if that is of this API group's kind of
// that name, in any version; else nil. Other API groups have kinds of the same names.
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
