package coexistence

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
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/foreign"
	"github.com/millwright-dev/millwright/core/ownership"
)

// index finds the Machines that carry another system's mark: by the uid of their controller, and
// all of them by anyOwner. Most clusters have none, so that a look costs nothing.
const index = "foreign"

const anyOwner = "any"

// AddIndex adds what a Reader needs to a cache, beside ownership.Index.
func AddIndex(ctx context.Context, cache client.FieldIndexer) error {
	if err := cache.IndexField(ctx, &clusterv1alpha1.Machine{}, index, indexKey); err != nil {
		return fmt.Errorf("index Machines by %s: %w", index, err)
	}
	return nil
}

func indexKey(o client.Object) []string {
	if foreign.Of(o) == (foreign.Mark{}) {
		return nil
	}
	return append(ownership.IndexKey(o), anyOwner)
}

// Reader finds out what another system works on. Its cache has ownership.Index and that of
// AddIndex.
type Reader struct{ cache client.Reader }

// NewReader reads that cache.
func NewReader(cache client.Reader) Reader { return Reader{cache: cache} }

// listMarked lists the Machines with a mark that have that controller, or anyOwner. They are the
// cache's own: for reading only.
func (r Reader) listMarked(ctx context.Context, namespace, owner string) ([]clusterv1alpha1.Machine, error) {
	machines := &clusterv1alpha1.MachineList{}
	if err := r.cache.List(ctx, machines, client.InNamespace(namespace), client.MatchingFields{index: owner},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Machines of other systems: %w", err)
	}
	return machines.Items, nil
}

// Where a mark is, in words that do not change from one Machine to the next.
const (
	onOwned      = "What it owns carries the"
	onDeployment = "What its MachineDeployment owns carries the"
)

// WhyMachine says why another system works on the Machine; empty if none does. A Machine without
// Millwright's finalizer goes with its set: another system's controllers make it first, and mark it
// a moment later. sets reads the sets that the cache does not show.
func (r Reader) WhyMachine(ctx context.Context, m *clusterv1alpha1.Machine, sets client.Reader) (why string, err error) {
	if mark := foreign.Of(m); mark != (foreign.Mark{}) {
		return describe("It carries the", mark), nil
	}
	owner := ownership.ControllerOf(m, clusterv1alpha1.MachineSetKind)
	if owner == nil || slices.Contains(m.Finalizers, clusterv1alpha1.MachineFinalizer) {
		return "", nil
	}
	set, key := &clusterv1alpha1.MachineSet{}, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}
	err = r.cache.Get(ctx, key, set)
	if apierrors.IsNotFound(err) {
		err = sets.Get(ctx, key, set)
	}
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up the Machine's set: %w", err)
	}
	return r.WhySet(ctx, set)
}

// WhySet says why another system works on the set; empty if none does. The mark may be on the set,
// on its MachineDeployment, or on a Machine of any set of that MachineDeployment.
func (r Reader) WhySet(ctx context.Context, set *clusterv1alpha1.MachineSet) (why string, err error) {
	if mark := foreign.Of(set); mark != (foreign.Mark{}) {
		return describe("It carries the", mark), nil
	}
	mark, err := r.markOnMachines(ctx, set)
	if err != nil || mark != (foreign.Mark{}) {
		return describe(onOwned, mark), err
	}
	owner := ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind)
	if owner == nil {
		return "", nil
	}
	md := &clusterv1alpha1.MachineDeployment{}
	err = r.cache.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}, md)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("look up the set's MachineDeployment: %w", err)
	}
	if md.UID == owner.UID {
		mark = foreign.Of(md)
	}
	if mark == (foreign.Mark{}) {
		mark, err = r.markUnderDeployment(ctx, set.Namespace, owner.UID)
	}
	return describe(onDeployment, mark), err
}

// WhyDeployment says why another system works on the deployment; empty if none does. The mark may
// be on the deployment, on one of its sets, or on a Machine of those.
func (r Reader) WhyDeployment(ctx context.Context, md *clusterv1alpha1.MachineDeployment) (why string, err error) {
	if mark := foreign.Of(md); mark != (foreign.Mark{}) {
		return describe("It carries the", mark), nil
	}
	mark, err := r.markUnderDeployment(ctx, md.Namespace, md.UID)
	return describe(onOwned, mark), err
}

// markUnderDeployment is the mark of the MachineDeployment's sets and their Machines.
func (r Reader) markUnderDeployment(ctx context.Context, namespace string, md types.UID) (found foreign.Mark, err error) {
	sets := &clusterv1alpha1.MachineSetList{}
	if err := r.cache.List(ctx, sets, client.InNamespace(namespace), client.MatchingFields{ownership.Index: string(md)},
		client.UnsafeDisableDeepCopy); err != nil {
		return found, fmt.Errorf("list the MachineDeployment's sets: %w", err)
	}
	for i := range sets.Items {
		mark, err := r.markOnMachines(ctx, &sets.Items[i])
		if err != nil {
			return foreign.Mark{}, err
		}
		found = foreign.First(found, foreign.First(mark, foreign.Of(&sets.Items[i])))
	}
	return found, nil
}

// markOnMachines is the mark of the set's Machines.
func (r Reader) markOnMachines(ctx context.Context, set *clusterv1alpha1.MachineSet) (found foreign.Mark, err error) {
	machines, err := r.listMarked(ctx, set.Namespace, string(set.UID))
	for i := range machines {
		found = foreign.First(found, foreign.Of(&machines[i]))
	}
	return found, err
}

// describe says where the mark is and what follows; empty without a mark.
func describe(where string, mark foreign.Mark) string {
	if mark == (foreign.Mark{}) {
		return ""
	}
	return fmt.Sprintf("%s %s of %s: nothing is done for it, also when it is deleted, until that is gone", where, mark.What, mark.System)
}

// LeaveAlone shows on an object that another system works on it, and writes nothing else. The
// object becomes what was written.
func LeaveAlone(ctx context.Context, c client.Client, o client.Object, why string) (ctrl.Result, error) {
	return conditions.Write(ctx, c, o, metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonManagedByAnother, Message: why,
	})
}

// IsLeftAlone says whether the object shows that another system works on it.
func IsLeftAlone(o client.Object) bool {
	c := apimeta.FindStatusCondition(*conditions.Of(o), clusterv1alpha1.ConditionPaused)
	return c != nil && c.Reason == clusterv1alpha1.ReasonManagedByAnother
}

// LeftAloneChanged passes objects that another system has begun to work on, or has ceased to. What
// they own follows them, and has no event of its own.
func LeftAloneChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return IsLeftAlone(e.ObjectOld) != IsLeftAlone(e.ObjectNew) },
	}
}
