package fleet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/foreign"
)

// foreignIndex finds the Machines that carry another system's mark: by the uid of their controller, and all of them by anyForeign.
// There are none in most clusters, so that asking it costs nothing.
const foreignIndex = "foreign"

const anyForeign = "any"

func foreignKey(o client.Object) []string {
	if foreign.Of(o) == (foreign.Mark{}) {
		return nil
	}
	return append(OwnerKey(o), anyForeign)
}

// Foreigners finds out what another system works on. It reads a cache that has OwnerIndex.
type Foreigners struct{ cache client.Reader }

// NewForeigners reads that cache.
func NewForeigners(cache client.Reader) Foreigners { return Foreigners{cache: cache} }

// Marked are all Machines with a mark. They are the cache's own: for reading only.
func (f Foreigners) Marked(ctx context.Context) ([]clusterv1alpha1.Machine, error) {
	machines := &clusterv1alpha1.MachineList{}
	err := f.cache.List(ctx, machines, client.MatchingFields{foreignIndex: anyForeign}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the Machines of other systems: %w", err)
	}
	return machines.Items, nil
}

// Machine says why another system works on the Machine; empty if none does. A Machine without Millwright's finalizer is as its
// set: another system's controllers make it first, and mark it a moment later. sets reads the sets that the cache does not show.
func (f Foreigners) Machine(ctx context.Context, m *clusterv1alpha1.Machine, sets client.Reader) (why string, err error) {
	if mark := foreign.Of(m); mark != (foreign.Mark{}) {
		return its(mark), nil
	}
	owner := ControllerOf(m, clusterv1alpha1.MachineSetKind)
	if owner == nil || slices.Contains(m.Finalizers, clusterv1alpha1.MachineFinalizer) {
		return "", nil
	}
	set, key := &clusterv1alpha1.MachineSet{}, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}
	err = f.cache.Get(ctx, key, set)
	if apierrors.IsNotFound(err) {
		err = sets.Get(ctx, key, set)
	}
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up the Machine's set: %w", err)
	}
	return f.Set(ctx, set)
}

// Set says why another system works on the set; empty if none does: it, its MachineDeployment, or a Machine of any set of that
// carries a mark.
func (f Foreigners) Set(ctx context.Context, set *clusterv1alpha1.MachineSet) (why string, err error) {
	if mark := foreign.Of(set); mark != (foreign.Mark{}) {
		return its(mark), nil
	}
	mark, err := f.below(ctx, set)
	if err != nil || mark != (foreign.Mark{}) {
		return theirs(mark), err
	}
	owner := ControllerOf(set, clusterv1alpha1.MachineDeploymentKind)
	if owner == nil {
		return "", nil
	}
	md := &clusterv1alpha1.MachineDeployment{}
	err = f.cache.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}, md)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("look up the set's MachineDeployment: %w", err)
	}
	if err == nil && md.UID == owner.UID {
		if mark := foreign.Of(md); mark != (foreign.Mark{}) {
			return above(mark), nil
		}
	}
	mark, err = f.belowDeployment(ctx, set.Namespace, owner.UID)
	return above(mark), err
}

// Deployment says why another system works on the deployment; empty if none does: it, one of its sets, or a Machine of those
// carries a mark.
func (f Foreigners) Deployment(ctx context.Context, md *clusterv1alpha1.MachineDeployment) (why string, err error) {
	if mark := foreign.Of(md); mark != (foreign.Mark{}) {
		return its(mark), nil
	}
	mark, err := f.belowDeployment(ctx, md.Namespace, md.UID)
	return theirs(mark), err
}

// belowDeployment is the mark of what a MachineDeployment owns.
func (f Foreigners) belowDeployment(ctx context.Context, namespace string, md types.UID) (foreign.Mark, error) {
	sets := &clusterv1alpha1.MachineSetList{}
	if err := f.cache.List(ctx, sets, client.InNamespace(namespace), client.MatchingFields{OwnerIndex: string(md)},
		client.UnsafeDisableDeepCopy); err != nil {
		return foreign.Mark{}, fmt.Errorf("list the MachineDeployment's sets: %w", err)
	}
	found := foreign.Mark{}
	for i := range sets.Items {
		mark, err := f.below(ctx, &sets.Items[i])
		if err != nil {
			return foreign.Mark{}, err
		}
		found = foreign.First(found, foreign.First(mark, foreign.Of(&sets.Items[i])))
	}
	return found, nil
}

// below is the mark of the set's Machines.
func (f Foreigners) below(ctx context.Context, set *clusterv1alpha1.MachineSet) (foreign.Mark, error) {
	machines := &clusterv1alpha1.MachineList{}
	if err := f.cache.List(ctx, machines, client.InNamespace(set.Namespace), client.MatchingFields{foreignIndex: string(set.UID)},
		client.UnsafeDisableDeepCopy); err != nil {
		return foreign.Mark{}, fmt.Errorf("list the set's Machines of other systems: %w", err)
	}
	found := foreign.Mark{}
	for i := range machines.Items {
		found = foreign.First(found, foreign.Of(&machines.Items[i]))
	}
	return found, nil
}

// its, theirs and above say, in words that do not change from one Machine to the next, where the mark is; nothing of none.
func its(mark foreign.Mark) string { return says("It carries the", mark) }

func theirs(mark foreign.Mark) string { return says("What it owns carries the", mark) }

func above(mark foreign.Mark) string {
	return says("What its MachineDeployment owns carries the", mark)
}

func says(where string, mark foreign.Mark) string {
	if mark == (foreign.Mark{}) {
		return ""
	}
	return fmt.Sprintf("%s %s of %s: nothing is done for it, also when it is deleted, until that is gone", where, mark.What, mark.System)
}

// LeaveAlone shows on an object that another system works on it, and writes nothing else. It writes nothing where that is
// shown already. The object becomes as it was written.
func LeaveAlone(ctx context.Context, c client.Client, o client.Object, why string) (ctrl.Result, error) {
	before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	if !apimeta.SetStatusCondition(conditionsOf(o), metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue, ObservedGeneration: o.GetGeneration(),
		Reason: clusterv1alpha1.ReasonManagedByAnother, Message: why,
	}) {
		return ctrl.Result{}, nil
	}
	// Conditions are one list to a merge patch: it must not undo what somebody else has written meanwhile.
	err := c.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: Soon}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("show that another system works on it: %w", err)
	}
	return ctrl.Result{}, nil
}

// LeftAlone says whether the object shows that another system works on it.
func LeftAlone(o client.Object) bool {
	c := apimeta.FindStatusCondition(*conditionsOf(o), clusterv1alpha1.ConditionPaused)
	return c != nil && c.Reason == clusterv1alpha1.ReasonManagedByAnother
}

// conditionsOf is where an object of this project's kinds for machines has its conditions.
func conditionsOf(o client.Object) *[]metav1.Condition {
	switch o := o.(type) {
	case *clusterv1alpha1.MachineDeployment:
		return &o.Status.Conditions
	case *clusterv1alpha1.MachineSet:
		return &o.Status.Conditions
	case *clusterv1alpha1.Machine:
		return &o.Status.Conditions
	}
	return &[]metav1.Condition{}
}

// LeftAloneChanges passes objects that another system has begun to work on, or has ceased to: so do those that they own, and those
// have no event of their own that tells.
func LeftAloneChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return LeftAlone(e.ObjectOld) != LeftAlone(e.ObjectNew) },
	}
}
