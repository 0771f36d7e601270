package machineset

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/surge"
)

// aloneSpare is how many Machines a set of its own may have beyond its size while others are on
// their way out: as many as a MachineDeployment that does not say.
const aloneSpare = 1

// room is how many Machines there may be.
type room struct {
	// spare is how many there may be beyond the set's size while others are on their way out.
	spare int
	// siblings is how many the other sets of the MachineDeployment have, bound how many all may
	// have together; 0 if nobody can tell.
	siblings, bound int
}

// reserveNames returns the names of n Machines to create next, after created of what was decided,
// or of fewer. Of a MachineDeployment's set it notes them in the deployment's room, so that whoever
// looks next counts them.
func (r *reconciler) reserveNames(ctx context.Context, o *observation, created, n int) ([]string, error) {
	deployment, ok := deploymentOf(o.set)
	if !ok {
		return o.memory.names.Take(n), nil
	}
	shared := r.enter(o.set.Namespace, deployment)
	defer shared.Unlock()
	if own, known := shared.UnseenSize(o.set.Name, o.set.ResourceVersion); known && own.Replicas != o.size {
		// The set has another size by now, of which an event will tell.
		return nil, nil
	}
	if len(o.state.Machines)+created+n > o.size {
		if isDeploymentLeaving, err := r.isDeploymentLeaving(ctx, o.set.Namespace, deployment); err != nil || isDeploymentLeaving {
			return nil, err
		}
		now, err := r.room(ctx, o.set, o.size, shared)
		if err != nil {
			return nil, err
		}
		state := o.state
		state.Spare, state.Siblings, state.Bound = now.spare, now.siblings, now.bound
		n = min(n, scale.Decide(state).Create-created)
	}
	names := o.memory.names.Take(max(n, 0))
	for _, name := range names {
		shared.AddMachine(o.set.UID, name)
	}
	o.memory.hasReservations = true
	return names, nil
}

// enter waits until it is in the MachineDeployment's room.
func (r *reconciler) enter(namespace string, deployment metav1.OwnerReference) *surge.Account {
	return r.rooms.Lock(client.ObjectKey{Namespace: namespace, Name: deployment.Name}, deployment.UID)
}

// forgetReservations takes back all that reserve noted, once the cache shows what became of it.
func (r *reconciler) forgetReservations(o *observation) {
	deployment, ok := deploymentOf(o.set)
	if !ok || !o.memory.hasReservations || len(o.memory.lost) > 0 {
		return
	}
	shared := r.enter(o.set.Namespace, deployment)
	defer shared.Unlock()
	shared.RemoveMachines(o.set.UID)
	o.memory.hasReservations = false
}

// release takes back what reserve noted of Machines that were not created.
func (r *reconciler) release(o *observation, names []string, outcomes []outcome) {
	deployment, ok := deploymentOf(o.set)
	if !ok {
		return
	}
	shared := r.enter(o.set.Namespace, deployment)
	defer shared.Unlock()
	for i, out := range outcomes {
		if out.kind == notSent || out.kind == refused || out.kind == taken {
			shared.RemoveMachine(o.set.UID, names[i])
		}
	}
}

// room looks what there is room for: of what the set's MachineDeployment may have, what neither it
// nor its siblings hold is to spare. The cache may be a moment behind; whoever is in the
// deployment's room, which is shared, knows what it does not show.
func (r *reconciler) room(ctx context.Context, set *clusterv1alpha1.MachineSet, size int, shared *surge.Account) (room, error) {
	deployment, ok := deploymentOf(set)
	if !ok {
		return room{spare: aloneSpare, bound: size + aloneSpare}, nil
	}
	own, ok := given(set, shared)
	if !ok {
		return room{}, nil // a limit that nobody can read leaves nothing to spare
	}
	siblings, err := r.setsOfDeployment(ctx, set.Namespace, deployment.UID)
	if err != nil {
		return room{}, err
	}
	found := room{bound: own.Max}
	left := own.Max - size
	for i := range siblings {
		if siblings[i].UID == set.UID {
			continue
		}
		machines, err := r.machinesOf(ctx, &siblings[i])
		if err != nil {
			return room{}, err
		}
		found.siblings += len(machines)
		// What it has, or may make without being asked again; package rollout counts the same way.
		theirs, _ := given(&siblings[i], shared)
		present := len(machines)
		if shared != nil {
			unseen, _ := shared.UnseenMachines(siblings[i].UID, machines)
			present += unseen
		}
		left -= max(present, theirs.Replicas)
	}
	if shared != nil {
		left -= shared.UnseenSets(func(name string) bool {
			return slices.ContainsFunc(siblings, func(s clusterv1alpha1.MachineSet) bool { return s.Name == name })
		})
	}
	found.spare = max(left, 0)
	return found, nil
}

// given is the set's size, and how many Machines its MachineDeployment may have; false if nobody
// can read that.
func given(set *clusterv1alpha1.MachineSet, shared *surge.Account) (surge.Size, bool) {
	if shared != nil {
		if size, ok := shared.UnseenSize(set.Name, set.ResourceVersion); ok {
			return size, true
		}
	}
	most, err := strconv.ParseInt(set.Annotations[clusterv1alpha1.MaxReplicasAnnotation], 10, 32)
	return surge.Size{Replicas: int(ptr.Deref(set.Spec.Replicas, 0)), Max: int(most)}, err == nil
}

// machinesOf returns the Machines that the set owns, from the cache. They are the cache's own: for
// reading only.
func (r *reconciler) machinesOf(ctx context.Context, set *clusterv1alpha1.MachineSet) ([]clusterv1alpha1.Machine, error) {
	machines := &clusterv1alpha1.MachineList{}
	err := r.client.List(ctx, machines, client.InNamespace(set.Namespace),
		client.MatchingFields{ownership.Index: string(set.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list Machines of %s: %w", set.Name, err)
	}
	return machines.Items, nil
}

func (r *reconciler) setsOfDeployment(ctx context.Context, namespace string, deployment types.UID) ([]clusterv1alpha1.MachineSet, error) {
	sets := &clusterv1alpha1.MachineSetList{}
	// The objects are the cache's own: they are only read.
	err := r.client.List(ctx, sets, client.InNamespace(namespace),
		client.MatchingFields{ownership.Index: string(deployment)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the MachineDeployment's sets: %w", err)
	}
	return sets.Items, nil
}

// deploymentOf returns the MachineDeployment that the set belongs to; false if it stands alone.
func deploymentOf(set client.Object) (metav1.OwnerReference, bool) {
	owner := ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind)
	return ptr.Deref(owner, metav1.OwnerReference{}), owner != nil
}

// isDeploymentLeaving says whether the MachineDeployment is gone or being deleted. Its sets go
// then, one before the other, and with a set nobody counts its Machines any more.
func (r *reconciler) isDeploymentLeaving(ctx context.Context, namespace string, deployment metav1.OwnerReference) (bool, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment.Name}, md)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up the MachineDeployment: %w", err)
	}
	return md.UID != deployment.UID || !md.DeletionTimestamp.IsZero(), nil
}

// requestsForSets returns the sets of a MachineDeployment.
func (r *reconciler) requestsForSets(ctx context.Context, md client.Object) []reconcile.Request {
	sets, err := r.setsOfDeployment(ctx, md.GetNamespace(), md.GetUID())
	if err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(sets))
	for i := range sets {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets[i])})
	}
	return requests
}

// siblingsOf returns the other sets of the set's MachineDeployment: what one no longer holds the
// others may spare.
func (r *reconciler) siblingsOf(ctx context.Context, set client.Object) []reconcile.Request {
	deployment, ok := deploymentOf(set)
	if !ok {
		return nil
	}
	sets, err := r.setsOfDeployment(ctx, set.GetNamespace(), deployment.UID)
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range sets {
		if sets[i].UID != set.GetUID() && ptr.Deref(sets[i].Spec.Replicas, 0) > 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets[i])})
		}
	}
	return requests
}

// siblingsOfOwner returns the siblings of the set that the Machine belongs to.
func (r *reconciler) siblingsOfOwner(ctx context.Context, machine client.Object) []reconcile.Request {
	owner := ownership.ControllerOf(machine, clusterv1alpha1.MachineSetKind)
	if owner == nil {
		return nil
	}
	set := &clusterv1alpha1.MachineSet{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}, set); err != nil {
		return nil
	}
	return r.siblingsOf(ctx, set)
}

// freesSurge lets through what leaves a set fewer Machines, or a smaller size, or takes it away.
func freesSurge() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, wasSet := e.ObjectOld.(*clusterv1alpha1.MachineSet)
			now, isSet := e.ObjectNew.(*clusterv1alpha1.MachineSet)
			smaller := wasSet && isSet && ptr.Deref(now.Spec.Replicas, 0) < ptr.Deref(before.Spec.Replicas, 0)
			return smaller || ownership.IndexKey(e.ObjectOld)[0] != ownership.IndexKey(e.ObjectNew)[0]
		},
	}
}
