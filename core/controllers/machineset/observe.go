package machineset

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/specresolver"
)

const (
	// lookUpAfter is how long the cache may take to show what this process did before the API
	// server is asked.
	lookUpAfter = 10 * time.Second
	// settleAfter is when a request whose answer was lost can no longer be under way. API servers
	// give up after 60 s.
	settleAfter = 2 * time.Minute
)

// observation is a set and its Machines.
type observation struct {
	set      *clusterv1alpha1.MachineSet
	memory   *memory
	machines []clusterv1alpha1.Machine
	// paused: nobody wants the set's Machines to be touched.
	paused bool
	// size is how many Machines there should be.
	size int
	room room
	// state is what package scale decides on.
	state scale.State
	// seen is the version of the latest Machine that the cache had shown before these were read.
	seen machineVersion
	// drawn is what a Machine of the template would be made from now; nil where it inherits
	// nothing, or none was refused.
	drawn *specresolver.Effective
	// nextAvailable is in how long the next Machine becomes available if nothing happens; 0 if none
	// does.
	nextAvailable time.Duration
}

// observe looks at the set's Machines as the cache shows them and as this process knows better.
func (r *reconciler) observe(ctx context.Context, set *clusterv1alpha1.MachineSet, mem *memory, machines []clusterv1alpha1.Machine) (*observation, error) {
	o := &observation{
		set: set, memory: mem, machines: machines, paused: annotations.IsPaused(set),
		// A set that is paused before it was given a size keeps what it has.
		size: int(ptr.Deref(set.Spec.Replicas, int32(len(machines)))),
	}
	var err error
	if o.room, err = r.room(ctx, set, o.size, nil); err != nil {
		return nil, err
	}
	if o.drawn, err = r.resolveInherited(ctx, set, machines); err != nil {
		return nil, err
	}
	r.refresh(o)
	if mem.needsConfirmation && !o.paused && scale.Decide(o.state).Create > 0 || r.hasLostRequestsToLookUp(mem) {
		if err := r.confirmMachines(ctx, o); err != nil {
			return nil, err
		}
		r.refresh(o)
	}
	switch {
	case mem.pending.Settled():
		mem.unseenSince = time.Time{}
		r.forgetReservations(o)
	case mem.unseenSince.IsZero():
		mem.unseenSince = r.clock.Now()
	case r.clock.Since(mem.unseenSince) >= lookUpAfter:
		if err := r.lookUpUnseen(ctx, o); err != nil {
			return nil, err
		}
		mem.unseenSince = r.clock.Now()
		r.refresh(o)
	}
	return o, nil
}

// hasLostRequestsToLookUp says that a request whose answer was lost can no longer be under way, so
// that its outcome can be looked up.
func (r *reconciler) hasLostRequestsToLookUp(mem *memory) bool {
	for _, sent := range mem.lost {
		if r.clock.Since(sent) >= settleAfter {
			return true
		}
	}
	return false
}

// refresh brings the observation up to what the memory knows by now; it changes nothing else but
// what the memory thereby knows.
func (r *reconciler) refresh(o *observation) {
	mem := o.memory
	o.state, o.nextAvailable = r.state(o, o.machines)
	o.state.Machines = mem.pending.View(o.state.Machines)
	mem.attempts = mem.attempts.Seen(scale.Patients(o.state.Machines))
	o.state.Attempts = mem.attempts
	for _, m := range o.state.Machines {
		mem.names.Created(m.Name)
		delete(mem.lost, m.Name)
	}
}

// state is what package scale decides on if the set has these machines, and in how long the next of
// them becomes available.
func (r *reconciler) state(o *observation, machines []clusterv1alpha1.Machine) (scale.State, time.Duration) {
	set := o.set
	minReady, now := time.Duration(set.Spec.MinReadySeconds)*time.Second, r.clock.Now()
	next := time.Duration(0)
	s := scale.State{
		Desired:  o.size,
		Spare:    o.room.spare,
		Siblings: o.room.siblings,
		Bound:    o.room.bound,
		Frozen:   apimeta.IsStatusConditionTrue(set.Status.Conditions, clusterv1alpha1.ConditionFrozen),
		Order: scale.Order{
			UnavailableFirst: set.Annotations[clusterv1alpha1.ScalingReasonAnnotation] == clusterv1alpha1.ScalingReasonRolling,
			Policy:           set.Spec.DeletePolicy,
			Seed:             string(set.UID),
		},
		Repair:   r.limits,
		Fleet:    r.healthTracker.now(),
		Attempts: o.memory.attempts,
		Now:      now,
	}
	s.Machines = make([]scale.Machine, 0, len(machines))
	for i := range machines {
		m := &machines[i]
		facts := scale.MachineOf(m)
		if facts.Failed {
			facts.FailedSince = r.healthTracker.failedSince(m.UID)
		}
		var left time.Duration
		facts.Available, left = health.IsAvailable(m, minReady, now)
		facts.Refused = health.IsSpecRefused(m) && machinetemplate.IsSameVM(m, &set.Spec.Template) && !o.isSpecMended(m)
		if left > 0 && (next == 0 || left < next) {
			next = left
		}
		s.Machines = append(s.Machines, facts)
	}
	return s, next
}

// confirmMachines asks the API server which Machines there are, and whether the set is still as the
// cache shows it.
func (r *reconciler) confirmMachines(ctx context.Context, o *observation) error {
	live, err := r.listLive(ctx, o)
	if err != nil {
		return err
	}
	cached, there := map[string]bool{}, map[string]bool{}
	for _, m := range o.machines {
		cached[string(m.UID)] = true
	}
	for i := range live {
		m := scale.MachineOf(&live[i])
		there[m.Name] = true
		o.memory.names.Created(m.Name)
		if !cached[m.UID] {
			o.memory.pending.Created(m)
		}
	}
	for name, sent := range o.memory.lost {
		if !there[name] && r.clock.Since(sent) >= settleAfter {
			o.memory.names.Refused(name)
			delete(o.memory.lost, name)
		}
	}
	o.memory.needsConfirmation = false
	return nil
}

// confirmSet fails with requeue.ErrStale if the set is not the one in the cache any more.
func (r *reconciler) confirmSet(ctx context.Context, o *observation) error {
	set := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(o.set), set); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look up the MachineSet: %w", err)
	}
	if set.UID != o.set.UID || set.Generation != o.set.Generation || !set.DeletionTimestamp.IsZero() {
		return requeue.ErrStale
	}
	o.memory.names.Raise(set.Status.NextIndex)
	return nil
}

// confirm returns what is known of the set's Machines no earlier than its last change: whoever
// lowered its size may have marked Machines just before. Where the cache has shown a Machine that
// was written after that change, it shows all that was written before. In a rollout that is so
// within a moment, and spares a list of all Machines for each few that go; a large set waits for
// that moment, once.
func (r *reconciler) confirm(ctx context.Context, o *observation) (scale.State, error) {
	mem, generation := o.memory, o.set.Generation
	if mem.shows(o.seen, generation) {
		return o.state, r.confirmSet(ctx, o)
	}
	if len(o.machines) >= large && mem.floorOf != generation {
		// The version of the whole list comes with any part of it.
		some := &clusterv1alpha1.MachineList{}
		if err := r.live.List(ctx, some, client.InNamespace(o.set.Namespace), client.Limit(1)); err != nil {
			return scale.State{}, fmt.Errorf("ask how far the Machines are: %w", err)
		}
		mem.floor, mem.floorOf = machineVersion(some.ResourceVersion), generation
		return scale.State{}, requeue.ErrStale
	}
	machines, err := r.listLive(ctx, o)
	if err != nil {
		return scale.State{}, err
	}
	state, _ := r.state(o, machines)
	return state, nil
}

// large is from how many Machines on a list of them is worth a moment's waiting.
const large = 100

// listLive lists the set's Machines as the API server has them now. It fails with requeue.ErrStale
// if the set itself is not the one in the cache any more.
func (r *reconciler) listLive(ctx context.Context, o *observation) ([]clusterv1alpha1.Machine, error) {
	set := o.set
	if err := r.confirmSet(ctx, o); err != nil {
		return nil, err
	}
	selector, err := set.Spec.Selector.AsSelector()
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	machines := &clusterv1alpha1.MachineList{}
	err = r.live.List(ctx, machines, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the Machines there are: %w", err)
	}
	o.memory.floor, o.memory.floorOf = machineVersion(machines.ResourceVersion), set.Generation
	var ours []clusterv1alpha1.Machine
	for i := range machines.Items {
		if owner := metav1.GetControllerOf(&machines.Items[i]); owner != nil && owner.UID == set.UID {
			ours = append(ours, machines.Items[i])
		}
	}
	return ours, nil
}

// lookUpUnseen asks the API server about the Machines that the cache should have shown by now. One
// that was gone before the cache got to see it would otherwise be waited for until the process
// ends.
func (r *reconciler) lookUpUnseen(ctx context.Context, o *observation) error {
	for _, unseen := range o.memory.pending.Unseen() {
		m := &clusterv1alpha1.Machine{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: o.set.Namespace, Name: unseen.Name}, m)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look up Machine %s: %w", unseen.Name, err)
		}
		owner := metav1.GetControllerOf(m)
		if apierrors.IsNotFound(err) || string(m.UID) != unseen.UID || owner == nil || owner.UID != o.set.UID {
			o.memory.pending.Gone(unseen.UID)
		}
	}
	return nil
}
