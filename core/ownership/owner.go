package ownership

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
)

// Index finds MachineSets in the cache by the uid of their controller, or by NoOwner. Machines are
// found by type Machines.
const Index = "owner"

// NoOwner is the key of objects that no controller owns.
const NoOwner = "none"

// AddIndexes adds to a cache what finds MachineSets and Machines by their controllers. Several of
// our controllers share it, so it has to be there before they are added.
func AddIndexes(ctx context.Context, to cache.Cache) error {
	if err := to.IndexField(ctx, &clusterv1alpha1.MachineSet{}, Index, IndexKey); err != nil {
		return fmt.Errorf("index MachineSets by %s: %w", Index, err)
	}
	machines, err := to.GetInformer(ctx, &clusterv1alpha1.Machine{}, cache.BlockUntilSynced(false))
	if err == nil {
		err = machines.AddIndexers(toolscache.Indexers{machineIndex: machineIndexKeys})
	}
	if err != nil {
		return fmt.Errorf("index Machines by %s: %w", machineIndex, err)
	}
	return nil
}

// IndexKey is the key of an object in Index.
func IndexKey(o client.Object) []string { return []string{ownerOf(o)} }

// ownerOf is the uid of the object's controller, or NoOwner.
func ownerOf(o client.Object) string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return string(owner.UID)
	}
	return NoOwner
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

// SetOf returns the set that the Machine belongs to; nil if it belongs to none, or to one that is
// gone. The set may be the cache's own: for reading only.
func SetOf(ctx context.Context, reader client.Reader, machine client.Object) (*clusterv1alpha1.MachineSet, error) {
	owner := ControllerOf(machine, clusterv1alpha1.MachineSetKind)
	if owner == nil {
		return nil, nil
	}
	set, key := &clusterv1alpha1.MachineSet{}, client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}
	err := reader.Get(ctx, key, set, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the Machine's set: %w", err)
	}
	if set.UID != owner.UID {
		return nil, nil
	}
	return set, nil
}

// Owner is a MachineDeployment, which owns MachineSets, or a MachineSet, which owns Machines.
type Owner struct {
	client.Object
	selector labels.Selector
}

// OwnerOf returns o as an owner. It fails for good if nobody can read what o selects.
func OwnerOf(o client.Object) (Owner, error) {
	selector, err := selectorOf(o)
	if err != nil {
		return Owner{}, reconcile.TerminalError(fmt.Errorf("spec.selector: %w", err))
	}
	return Owner{Object: o, selector: selector}, nil
}

func selectorOf(owner client.Object) (labels.Selector, error) {
	if md, ok := owner.(*clusterv1alpha1.MachineDeployment); ok {
		return md.Spec.Selector.AsSelector()
	}
	if set, ok := owner.(*clusterv1alpha1.MachineSet); ok {
		return set.Spec.Selector.AsSelector()
	}
	return labels.Nothing(), nil
}

func kindOf(owner client.Object) schema.GroupVersionKind {
	if _, ok := owner.(*clusterv1alpha1.MachineDeployment); ok {
		return clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind)
	}
	return clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind)
}

// Reference makes a MachineDeployment or MachineSet the controller of an object. A foreground
// deletion of the owner waits for the object.
func Reference(owner client.Object) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, kindOf(owner))
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
	isSelected := o.selector.Matches(labels.Set(obj.GetLabels()))
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

// Change is a change of an object's owner that is due.
type Change struct {
	Owner  Owner
	Object client.Object
	// Action is Adopt or Release.
	Action Action
}

// WriteChanges writes changes of owners, up to the first error. live reads the owner from the API
// server: only one that still exists may adopt, because the garbage collector deletes what a
// vanished owner owns. A conflict, or an object that is gone, is no error: an event follows.
func WriteChanges(ctx context.Context, writer client.Writer, live client.Reader, changes []Change) error {
	for _, c := range changes {
		if err := c.write(ctx, writer, live); err != nil {
			return err
		}
	}
	return nil
}

func (c Change) write(ctx context.Context, writer client.Writer, live client.Reader) error {
	changed := c.Object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	if c.Action == Adopt {
		owner := &metav1.PartialObjectMetadata{}
		owner.SetGroupVersionKind(kindOf(c.Owner.Object))
		if err := live.Get(ctx, client.ObjectKeyFromObject(c.Owner), owner); err != nil {
			return fmt.Errorf("look up the owner before adopting %s: %w", c.Object.GetName(), err)
		}
		if owner.UID != c.Owner.GetUID() || !owner.DeletionTimestamp.IsZero() {
			return nil
		}
		changed.SetOwnerReferences(append(changed.GetOwnerReferences(), Reference(c.Owner.Object)))
	} else {
		changed.SetOwnerReferences(slices.DeleteFunc(changed.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.UID == c.Owner.GetUID()
		}))
	}
	patch := client.MergeFromWithOptions(c.Object, client.MergeFromWithOptimisticLock{})
	if err := writer.Patch(ctx, changed, patch); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("change the owner of %s: %w", c.Object.GetName(), err)
	}
	return nil
}
