package machineset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/surge"
)

// creator creates the Machines of sets.
type creator struct {
	client       client.Client
	live         client.Reader
	clock        clock.PassiveClock
	reservations reservations
	recorder     *recorder
}

// outcome is what became of a request to create a Machine.
type outcome struct {
	kind    outcomeKind
	machine scale.Machine
	err     error
}

type outcomeKind int

const (
	// notSent: there was no request.
	notSent outcomeKind = iota
	// exists: the Machine is there, made by this request or an earlier one.
	exists
	// taken: an object that is not the set's has the name.
	taken
	// refused: the API server has refused the request; nothing was created.
	refused
	// lost: nobody knows.
	lost
)

// create creates count Machines, a few at first and then many at once, until one fails. It returns
// how many are there. It creates fewer, and says so by isShort, where the others have no room: the
// set's MachineDeployment or a sibling has taken it since the plan was made.
func (c *creator) create(ctx context.Context, o *observation, count int) (created int, isShort bool, err error) {
	last := 0
	for created < count {
		last = scale.Batch(last, count-created, width)
		names, err := c.reservations.reserve(ctx, o, created, last)
		if err != nil || len(names) == 0 {
			return created, true, err
		}
		outcomes := make([]outcome, len(names))
		inParallel(len(names), func(i int) bool {
			outcomes[i] = c.post(ctx, o.set, names[i])
			return outcomes[i].kind == exists || outcomes[i].kind == taken
		})
		c.reservations.cancel(o.set, names, outcomes)
		n, err := c.remember(o, names, outcomes)
		created += n
		if err != nil {
			return created, false, err
		}
	}
	return created, false, nil
}

// post creates the Machine of that name. A Machine of the set that is there already is as good as
// created.
func (c *creator) post(ctx context.Context, set *clusterv1alpha1.MachineSet, name string) outcome {
	m := newMachine(set, name)
	err := c.client.Create(ctx, m)
	switch {
	case err == nil:
		c.recorder.metrics.created.Inc()
		return outcome{kind: exists, machine: scale.MachineOf(m)}
	case apierrors.IsAlreadyExists(err):
		return c.lookUpExisting(ctx, set, name)
	case surge.IsRefused(err):
		c.recorder.metrics.refused.Inc()
		return outcome{kind: refused, err: fmt.Errorf("create Machine %s: %w", name, err)}
	default:
		return outcome{kind: lost, err: fmt.Errorf("create Machine %s: %w", name, err)}
	}
}

// lookUpExisting tells whether the Machine that has the name already is the set's.
func (c *creator) lookUpExisting(ctx context.Context, set *clusterv1alpha1.MachineSet, name string) outcome {
	m := &clusterv1alpha1.Machine{}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, m); err != nil {
		return outcome{kind: lost, err: fmt.Errorf("look up Machine %s, which exists already: %w", name, err)}
	}
	if owner := metav1.GetControllerOfNoCopy(m); owner == nil || owner.UID != set.UID {
		return outcome{kind: taken}
	}
	return outcome{kind: exists, machine: scale.MachineOf(m)}
}

// remember records what came of requests. It returns how many Machines are there now, and the first
// error.
func (c *creator) remember(o *observation, names []string, outcomes []outcome) (int, error) {
	created, first := 0, error(nil)
	for i, out := range outcomes {
		name := names[i]
		_, wasLost := o.memory.lost[name]
		switch out.kind {
		case notSent, refused:
			// This request has created nothing. One that was lost before may yet be carried out.
			if !wasLost {
				o.memory.names.MarkRefused(name)
			}
		case exists:
			o.memory.names.MarkCreated(name)
			o.memory.pending.AddCreated(out.machine)
			delete(o.memory.lost, name)
			created++
		case taken:
			o.memory.names.MarkCreated(name)
			delete(o.memory.lost, name)
			c.recorder.recordNameTaken(o.set, name)
		case lost:
			o.memory.lost[name] = c.clock.Now()
			o.memory.needsConfirmation = true
		}
		if first == nil {
			first = out.err
		}
	}
	return created, first
}

// newMachine makes a Machine from the set's template. It has everything from the start that it
// needs later: with thousands of Machines each write less counts.
func newMachine(set *clusterv1alpha1.MachineSet, name string) *clusterv1alpha1.Machine {
	template := set.Spec.Template.DeepCopy()
	owner := ownership.Owner{Object: set, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind)}
	uid := string(uuid.NewUUID())
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Name:            name,
			Finalizers:      []string{clusterv1alpha1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{owner.Reference()},
		},
		Spec: template.Spec,
	}
	ownership.SyncMetadata(m, template.Labels, template.Annotations)
	// The uid of a VM is random, not made from the name. Of several Machines that are posted under
	// one name, the first is the one that counts.
	m.Spec.MachineUID = &uid
	m.Spec.ProviderID = nil
	return m
}

// reservations record Machines in the account of their MachineDeployment before they are created,
// so that its other sets and its own controller count them.
type reservations struct {
	cache    client.Reader
	live     client.Reader
	accounts *surge.Accounts
}

// reserve returns the names of n Machines to create next, after created of what was planned, or
// fewer. Those of a MachineDeployment's set it records.
//
// A Machine within the set's size needs no room: the size was given for it. One beyond that takes
// the place of another that is on its way out, and needs room in the account, looked at again now.
func (r reservations) reserve(ctx context.Context, o *observation, created, n int) ([]string, error) {
	deployment, ok := deploymentOf(o.set)
	if !ok {
		return o.memory.names.Take(n), nil
	}
	account := r.lock(o.set, deployment)
	defer account.Unlock()
	if given, isUnseen := account.UnseenSize(o.set.Name, o.set.ResourceVersion); isUnseen && given.Replicas != o.state.Desired {
		// The set has another size by now, of which an event will tell.
		return nil, nil
	}
	if len(o.state.Machines)+created+n > o.state.Desired {
		// The sets of a deployment that is deleted go one after the other, and with a set nobody
		// counts its Machines any more.
		if isLeaving, err := r.isLeaving(ctx, o.set.Namespace, deployment); err != nil || isLeaving {
			return nil, err
		}
		room, err := r.room(ctx, o.set, o.state.Desired, account)
		if err != nil {
			return nil, err
		}
		state := o.state
		state.Spare, state.Siblings, state.Bound = room.Spare, room.Siblings, room.Bound
		n = min(n, scale.Decide(state).Create-created)
	}
	names := o.memory.names.Take(max(n, 0))
	for _, name := range names {
		account.AddMachine(o.set.UID, name)
	}
	o.memory.hasReservations = true
	return names, nil
}

// cancel takes back the reservations of Machines that were certainly not created.
func (r reservations) cancel(set *clusterv1alpha1.MachineSet, names []string, outcomes []outcome) {
	deployment, ok := deploymentOf(set)
	if !ok {
		return
	}
	account := r.lock(set, deployment)
	defer account.Unlock()
	for i, out := range outcomes {
		if out.kind == notSent || out.kind == refused || out.kind == taken {
			account.RemoveMachine(set.UID, names[i])
		}
	}
}

// settle takes back all reservations of a set whose Machines the cache shows. It takes back none
// while an answer is lost.
func (r reservations) settle(o *observation) {
	deployment, ok := deploymentOf(o.set)
	if !ok || !o.memory.hasReservations || len(o.memory.lost) > 0 {
		return
	}
	account := r.lock(o.set, deployment)
	defer account.Unlock()
	account.RemoveMachines(o.set.UID)
	o.memory.hasReservations = false
}

// lock waits until nobody else holds the MachineDeployment's account.
func (r reservations) lock(set *clusterv1alpha1.MachineSet, deployment metav1.OwnerReference) *surge.Account {
	return r.accounts.Lock(client.ObjectKey{Namespace: set.Namespace, Name: deployment.Name}, deployment.UID)
}

// room returns how many Machines the set may have, by what the cache shows of it and its siblings
// and by the account, which knows what the cache does not show yet. The account may be nil.
func (r reservations) room(ctx context.Context, set *clusterv1alpha1.MachineSet, size int, account *surge.Account) (surge.Room, error) {
	deployment, ok := deploymentOf(set)
	if !ok {
		return surge.Alone(size), nil
	}
	sets, err := setsOf(ctx, r.cache, set.Namespace, deployment.UID)
	if err != nil {
		return surge.Room{}, err
	}
	var siblings []surge.Sibling
	for i := range sets {
		if sets[i].UID == set.UID {
			continue
		}
		machines, err := machinesOf(ctx, r.cache, set.Namespace, string(sets[i].UID))
		if err != nil {
			return surge.Room{}, err
		}
		siblings = append(siblings, surge.Sibling{Set: &sets[i], Machines: machines})
	}
	return account.Room(set, size, siblings), nil
}

// isLeaving says whether the MachineDeployment is gone or being deleted.
func (r reservations) isLeaving(ctx context.Context, namespace string, deployment metav1.OwnerReference) (bool, error) {
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

// deploymentOf returns the MachineDeployment that the set belongs to; false if it stands alone.
func deploymentOf(set client.Object) (metav1.OwnerReference, bool) {
	owner := ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind)
	return ptr.Deref(owner, metav1.OwnerReference{}), owner != nil
}

// setsOf returns the sets of a MachineDeployment, from the cache. They are the cache's own: for
// reading only.
func setsOf(ctx context.Context, cache client.Reader, namespace string, deployment types.UID) ([]clusterv1alpha1.MachineSet, error) {
	sets := &clusterv1alpha1.MachineSetList{}
	err := cache.List(ctx, sets, client.InNamespace(namespace),
		client.MatchingFields{ownership.Index: string(deployment)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the MachineDeployment's sets: %w", err)
	}
	return sets.Items, nil
}
