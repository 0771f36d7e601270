package machineset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/apiserver"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/surge"
)

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
func (r *reconciler) create(ctx context.Context, o *observation, count int) (created int, isShort bool, err error) {
	last := 0
	for created < count {
		last = scale.Batch(last, count-created, width)
		names, err := r.reserve(ctx, o, created, last)
		if err != nil || len(names) == 0 {
			return created, true, err
		}
		outcomes := make([]outcome, len(names))
		inParallel(len(names), func(i int) bool {
			outcomes[i] = r.post(ctx, o.set, names[i])
			return outcomes[i].kind == exists || outcomes[i].kind == taken
		})
		n, err := r.remember(o, names, outcomes)
		created += n
		if err != nil {
			return created, false, err
		}
	}
	return created, false, nil
}

// reserve returns the names of n Machines to create next, after created of what was planned, or
// fewer. It records them in the account of the set's MachineDeployment, so that its other sets and
// its own controller count them.
//
// A Machine within the set's size needs no room: the size was given for it. One beyond that takes
// the place of another that is on its way out, and needs room in the account, looked at again now.
func (r *reconciler) reserve(ctx context.Context, o *observation, created, n int) ([]string, error) {
	account := r.lockAccount(o.set)
	defer account.Unlock()
	if given, isUnseen := account.UnseenSize(o.set.Name, o.set.ResourceVersion); isUnseen && given.Replicas != o.state.Desired {
		// The set has another size by now, of which an event will tell.
		return nil, nil
	}
	if account != nil && len(o.state.Machines)+created+n > o.state.Desired {
		// The sets of a deployment that is deleted go one after the other, and with a set nobody
		// counts its Machines any more.
		if isLeaving, err := r.isDeploymentLeaving(ctx, o.set); err != nil || isLeaving {
			return nil, err
		}
		state, err := withRoom(ctx, siblingReader{r.client, r.machines}, o.set, o.state, account)
		if err != nil {
			return nil, err
		}
		n = min(n, scale.Decide(state).Create-created)
	}
	names := o.memory.names.Take(max(n, 0))
	for _, name := range names {
		account.AddMachine(o.set.UID, name)
	}
	o.memory.hasReservations = true
	return names, nil
}

// releaseReservations takes back all reservations of a set whose Machines the cache shows. It takes
// back none while an answer is lost.
func (r *reconciler) releaseReservations(o *observation) {
	if !o.memory.hasReservations || !o.memory.pending.IsSettled() || !o.memory.names.LostSince().IsZero() {
		return
	}
	account := r.lockAccount(o.set)
	defer account.Unlock()
	account.RemoveMachines(o.set.UID)
	o.memory.hasReservations = false
}

// lockAccount waits until nobody else holds the account of the set's MachineDeployment. A set that
// stands alone has none, and gets nil.
func (r *reconciler) lockAccount(set *clusterv1alpha1.MachineSet) *surge.Account {
	deployment := deploymentOf(set)
	if deployment == nil {
		return nil
	}
	return r.accounts.Lock(client.ObjectKey{Namespace: set.Namespace, Name: deployment.Name}, deployment.UID)
}

// isDeploymentLeaving says whether the set's MachineDeployment is gone or being deleted.
func (r *reconciler) isDeploymentLeaving(ctx context.Context, set *clusterv1alpha1.MachineSet) (bool, error) {
	md, deployment := &clusterv1alpha1.MachineDeployment{}, deploymentOf(set)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: deployment.Name}, md)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up the MachineDeployment: %w", err)
	}
	return md.UID != deployment.UID || !md.DeletionTimestamp.IsZero(), nil
}

// withRoom returns the state with how many Machines the set may have. It counts what the cache
// shows of the set and its siblings, and what the account knows and the cache does not show
// yet. The account may be nil.
func withRoom(
	ctx context.Context, read siblingReader, set *clusterv1alpha1.MachineSet, state scale.State, account *surge.Account,
) (scale.State, error) {
	room := surge.Alone(state.Desired)
	if deployment := deploymentOf(set); deployment != nil {
		siblings, err := read.siblings(ctx, set, deployment.UID)
		if err != nil {
			return state, err
		}
		room = account.Room(set, state.Desired, siblings)
	}
	state.Spare, state.Siblings, state.Bound = room.Spare, room.Siblings, room.Bound
	return state, nil
}

// siblingReader reads the other sets of a MachineDeployment, and their Machines, from the cache.
type siblingReader struct {
	sets     client.Reader
	machines ownership.Machines
}

func (r siblingReader) siblings(ctx context.Context, set *clusterv1alpha1.MachineSet, deployment types.UID) ([]surge.Sibling, error) {
	sets, err := setsOf(ctx, r.sets, set.Namespace, deployment)
	if err != nil {
		return nil, err
	}
	var siblings []surge.Sibling
	for i := range sets {
		if sets[i].UID == set.UID {
			continue
		}
		machines, err := r.machines.Of(ctx, set.Namespace, string(sets[i].UID))
		if err != nil {
			return nil, err
		}
		siblings = append(siblings, surge.Sibling{Set: &sets[i], Machines: machines})
	}
	return siblings, nil
}

// post creates the Machine of that name. A Machine of the set that is there already is as good as
// created.
func (r *reconciler) post(ctx context.Context, set *clusterv1alpha1.MachineSet, name string) outcome {
	m := newMachine(set, name)
	err := r.client.Create(ctx, m)
	switch {
	case err == nil:
		r.recorder.metrics.created.Inc()
		return outcome{kind: exists, machine: health.MachineOf(m)}
	case apierrors.IsAlreadyExists(err):
		return r.lookUpExisting(ctx, set, name)
	case apiserver.IsRefused(err):
		r.recorder.metrics.refused.Inc()
		return outcome{kind: refused, err: fmt.Errorf("create Machine %s: %w", name, err)}
	default:
		return outcome{kind: lost, err: fmt.Errorf("create Machine %s: %w", name, err)}
	}
}

// lookUpExisting tells whether the Machine that has the name already is the set's.
func (r *reconciler) lookUpExisting(ctx context.Context, set *clusterv1alpha1.MachineSet, name string) outcome {
	m := &clusterv1alpha1.Machine{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, m); err != nil {
		return outcome{kind: lost, err: fmt.Errorf("look up Machine %s, which exists already: %w", name, err)}
	}
	if !metav1.IsControlledBy(m, set) {
		return outcome{kind: taken}
	}
	return outcome{kind: exists, machine: health.MachineOf(m)}
}

// remember records what came of requests, and takes back the reservations of Machines that were not
// created. It returns how many Machines are there now, and the first error.
func (r *reconciler) remember(o *observation, names []string, outcomes []outcome) (created int, first error) {
	account := r.lockAccount(o.set)
	defer account.Unlock()
	for i, out := range outcomes {
		name := names[i]
		switch out.kind {
		case notSent, refused:
			if o.memory.names.MarkRefused(name) {
				account.RemoveMachine(o.set.UID, name)
			}
		case exists:
			o.memory.names.MarkCreated(name)
			o.memory.pending.AddCreated(out.machine)
			created++
		case taken:
			o.memory.names.MarkCreated(name)
			account.RemoveMachine(o.set.UID, name)
			r.recorder.recordNameTaken(o.set, name)
		case lost:
			o.memory.names.MarkLost(name, r.clock.Now())
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
	uid := string(uuid.NewUUID())
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Name:            name,
			Finalizers:      []string{clusterv1alpha1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(set)},
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

// deploymentOf is the reference to the MachineDeployment that the set belongs to; nil if it stands
// alone.
func deploymentOf(set client.Object) *metav1.OwnerReference {
	return ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind)
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
