package machineset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/providerspec"
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
	// large is from how many Machines on a list of them is worth a moment's waiting.
	large = 100
)

type reconciler struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	limits health.Limits
	// foreigners knows which sets another system works on.
	foreigners   coexistence.Reader
	debounce     requeue.Debounce
	memories     memories
	health       *healthTracker
	reservations reservations
	creator      *creator
	recorder     *recorder
}

// Reconcile brings one set a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, req.NamespacedName)
	if errors.Is(err, requeue.ErrStale) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.apply(ctx, o, newPlan(o))
}

// observation is a set and its Machines. Fields that follow a reason to do nothing are not filled
// in where that reason is there.
type observation struct {
	key types.NamespacedName
	now time.Time
	set *clusterv1alpha1.MachineSet
	// isGone: the set does not exist, or is being deleted. Then the garbage collector deletes its
	// Machines, and nothing is to be created in their place.
	isGone bool
	// otherSystem says why another system works on the set; empty if none does.
	otherSystem string
	// paused: nobody wants the set's Machines to be touched.
	paused bool
	// rest is how long the set has to rest before its Machines are looked at again.
	rest time.Duration

	// machines are the set's, from the cache. They are the cache's own: for reading only.
	machines []clusterv1alpha1.Machine
	// ownerChanges are the Machines that the set has to adopt or to release.
	ownerChanges []ownership.Change
	// seen is the version of the latest Machine that the cache had shown before machines were read.
	seen machineVersion

	memory *memory
	// cached is what package scale counts of machines; state is what it decides on, with what the
	// memory knows better than the cache.
	cached []scale.Machine
	state  scale.State
	// nextAvailable is in how long the next Machine becomes available if nothing happens; 0 if none
	// does.
	nextAvailable time.Duration
	// inherited is what a Machine of the template would be made from now. It is nil where the
	// template inherits nothing, or no Machine's spec was refused.
	inherited *specresolver.Effective
	// outdated are the Machines that lack something of the template that can be changed in place.
	outdated []*clusterv1alpha1.Machine
	// confirmed is the state that deletions are decided on, where state asks for any; confirmErr is
	// why there is none.
	confirmed  scale.State
	confirmErr error
}

// lacksSize says whether the set has no size and needs one. A set that is paused before it was
// given a size keeps what it has.
func (o *observation) lacksSize() bool { return o.set.Spec.Replicas == nil && !o.paused }

// observe looks at the set's Machines, as the cache shows them and as this process knows better.
func (r *reconciler) observe(ctx context.Context, key client.ObjectKey) (*observation, error) {
	o := &observation{key: key, now: r.clock.Now(), set: &clusterv1alpha1.MachineSet{}}
	err := r.client.Get(ctx, key, o.set)
	if o.isGone = apierrors.IsNotFound(err) || !o.set.DeletionTimestamp.IsZero(); o.isGone {
		return o, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the MachineSet: %w", err)
	}
	if o.otherSystem, err = r.foreigners.WhySet(ctx, o.set); err != nil || o.otherSystem != "" {
		return o, err
	}
	o.paused = annotations.IsPaused(o.set)
	if o.rest = r.debounce.Wait(o.set, o.now); o.rest > 0 && !o.lacksSize() {
		return o, nil
	}
	o.seen = r.health.latest()
	if err := r.readMachines(ctx, o); err != nil || len(o.ownerChanges) > 0 || o.lacksSize() {
		return o, err
	}
	r.debounce.Record(o.set, len(o.machines), o.now)
	o.memory = r.memories.of(o.set)
	if err := r.readState(ctx, o); err != nil {
		return nil, err
	}
	if !o.paused {
		o.outdated = o.memory.inPlace.outdated(o.set, o.machines)
	}
	return o, r.askAPIServer(ctx, o)
}

// readMachines reads from the cache the Machines that are the set's, and those that have to become
// so or not to be so any more. Of a set that is paused none changes its owner.
func (r *reconciler) readMachines(ctx context.Context, o *observation) error {
	selector, err := o.set.Spec.Selector.AsSelector()
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("spec.selector: %w", err))
	}
	owner := ownership.Owner{Object: o.set, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind), Selector: selector}
	for _, key := range []string{string(o.set.UID), ownership.NoOwner} {
		machines, err := machinesOf(ctx, r.client, o.set.Namespace, key)
		if err != nil {
			return err
		}
		// There may be thousands, and all but a few are kept: where they are in the list.
		kept := machines[:0]
		for i := range machines {
			switch action := owner.ActionFor(&machines[i]); action {
			case ownership.Keep:
				kept = append(kept, machines[i])
			case ownership.Adopt, ownership.Release:
				if !o.paused {
					o.ownerChanges = append(o.ownerChanges, ownership.Change{Owner: owner, Object: machines[i].DeepCopy(), Action: action})
				}
			case ownership.Ignore:
			}
		}
		if len(o.machines) == 0 {
			o.machines = kept
			continue
		}
		o.machines = append(o.machines, kept...)
	}
	return nil
}

// readState fills in what package scale decides on, as far as the cache and the memory tell it.
func (r *reconciler) readState(ctx context.Context, o *observation) error {
	set := o.set
	var err error
	if o.inherited, err = r.readInherited(ctx, o); err != nil {
		return err
	}
	o.cached, o.nextAvailable = r.count(o, o.machines)
	o.state = scale.State{
		Desired:  int(ptr.Deref(set.Spec.Replicas, int32(len(o.machines)))),
		Machines: o.memory.view(o.cached),
		Frozen:   apimeta.IsStatusConditionTrue(set.Status.Conditions, clusterv1alpha1.ConditionFrozen),
		Order: scale.Order{
			UnavailableFirst: set.Annotations[clusterv1alpha1.ScalingReasonAnnotation] == clusterv1alpha1.ScalingReasonRolling,
			Policy:           set.Spec.DeletePolicy,
			Seed:             string(set.UID),
		},
		Repair: r.limits, Fleet: r.health.fleetHealth(), Attempts: o.memory.attempts, Now: o.now,
	}
	room, err := r.reservations.room(ctx, set, o.state.Desired, nil)
	if err != nil {
		return err
	}
	o.state.Spare, o.state.Siblings, o.state.Bound = room.Spare, room.Siblings, room.Bound
	return nil
}

// count returns what package scale counts of Machines, and in how long the next of them becomes
// available.
func (r *reconciler) count(o *observation, machines []clusterv1alpha1.Machine) ([]scale.Machine, time.Duration) {
	minReady, next := time.Duration(o.set.Spec.MinReadySeconds)*time.Second, time.Duration(0)
	counted := make([]scale.Machine, 0, len(machines))
	for i := range machines {
		m := &machines[i]
		facts := scale.MachineOf(m)
		if facts.Failed {
			facts.FailedSince = r.health.failedSince(m.UID)
		}
		var left time.Duration
		facts.Available, left = health.IsAvailable(m, minReady, o.now)
		facts.Refused = health.IsSpecRefused(m) && machinetemplate.IsSameVM(m, &o.set.Spec.Template) && !o.isSpecMended(m)
		next = requeue.Earlier(next, left)
		counted = append(counted, facts)
	}
	return counted, next
}

// readInherited returns what a Machine of the set's template would be made from now, if the
// template inherits anything and a Machine's spec was refused. It returns nil else, and while
// nothing can be made of the template at all.
func (r *reconciler) readInherited(ctx context.Context, o *observation) (*specresolver.Effective, error) {
	spec, refused := &o.set.Spec.Template.Spec, false
	for i := range o.machines {
		refused = refused || health.IsSpecRefused(&o.machines[i])
	}
	if !refused || !specresolver.Inherits(spec) {
		return nil, nil
	}
	inherited, err := specresolver.Inherit(ctx, r.client, o.set.Namespace, spec)
	if _, is := errors.AsType[*instance.Failure](err); is {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what the template inherits: %w", err)
	}
	return &inherited, nil
}

// isSpecMended says whether the next Machine would be made from something else than this one, whose
// spec was refused: the template's MachineClass or Cluster has changed. What was refused stands in
// the Machine's status.
func (o *observation) isSpecMended(m *clusterv1alpha1.Machine) bool {
	if o.inherited == nil {
		return false
	}
	was := m.Status.ProviderSpec
	return was == nil || was.CloudProvider != o.inherited.Provider || !providerspec.Equal(was.CloudProviderSpec.Raw, o.inherited.Spec)
}

// machinesOf returns the Machines of a namespace that have that key in ownership.Index, from the
// cache. They are the cache's own: for reading only.
func machinesOf(ctx context.Context, cache client.Reader, namespace, key string) ([]clusterv1alpha1.Machine, error) {
	machines := &clusterv1alpha1.MachineList{}
	err := cache.List(ctx, machines, client.InNamespace(namespace), client.MatchingFields{ownership.Index: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	return machines.Items, nil
}

// askAPIServer completes the observation where the cache may be behind, and a decision needs more
// than that:
//   - before this process creates its first Machine for the set;
//   - when a request whose answer was lost can no longer be under way;
//   - when the cache has not shown for long what this process did;
//   - before Machines are deleted.
func (r *reconciler) askAPIServer(ctx context.Context, o *observation) error {
	mem := o.memory
	if mem.needsConfirmation && !o.paused && scale.Decide(o.state).Create > 0 || mem.hasLostFor(settleAfter, o.now) {
		if err := r.confirmMachines(ctx, o); err != nil {
			return err
		}
		o.refresh()
	}
	if mem.hasWaitedForCache(lookUpAfter, o.now) {
		if err := r.lookUpUnseen(ctx, o); err != nil {
			return err
		}
		mem.unseenSince = o.now
		o.refresh()
	}
	if !o.paused && len(scale.Decide(o.state).Delete) > 0 {
		o.confirmed, o.confirmErr = r.confirmState(ctx, o)
	}
	return nil
}

// refresh brings the observation up to what the memory knows by now.
func (o *observation) refresh() {
	o.state.Machines = o.memory.view(o.cached)
	o.state.Attempts = o.memory.attempts
}

// confirmMachines asks the API server which Machines there are, and whether the set is still as the
// cache shows it.
func (r *reconciler) confirmMachines(ctx context.Context, o *observation) error {
	live, err := r.listLive(ctx, o)
	if err != nil {
		return err
	}
	cached, there := map[string]bool{}, map[string]bool{}
	for i := range o.machines {
		cached[string(o.machines[i].UID)] = true
	}
	for i := range live {
		m := scale.MachineOf(&live[i])
		there[m.Name] = true
		o.memory.names.MarkCreated(m.Name)
		if !cached[m.UID] {
			o.memory.pending.AddCreated(m)
		}
	}
	for name, sent := range o.memory.lost {
		if !there[name] && r.clock.Since(sent) >= settleAfter {
			o.memory.names.MarkRefused(name)
			delete(o.memory.lost, name)
		}
	}
	o.memory.needsConfirmation = false
	return nil
}

// confirmSet fails with requeue.ErrStale if the set is not the one in the cache any more.
func (r *reconciler) confirmSet(ctx context.Context, o *observation) error {
	set := &clusterv1alpha1.MachineSet{}
	if err := r.live.Get(ctx, o.key, set); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look up the MachineSet: %w", err)
	}
	if set.UID != o.set.UID || set.Generation != o.set.Generation || !set.DeletionTimestamp.IsZero() {
		return requeue.ErrStale
	}
	o.memory.names.Raise(set.Status.NextIndex)
	return nil
}

// confirmState returns what is known of the set's Machines no earlier than its last change: whoever
// lowered its size may have marked Machines just before.
//
// The cache knows enough if it has shown a Machine that was written after that change, since it
// shows writes in their order. In a rollout that takes a moment, and spares a list of all Machines
// for each few that go. A large set waits for that moment, once.
func (r *reconciler) confirmState(ctx context.Context, o *observation) (scale.State, error) {
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
	confirmed := o.state
	confirmed.Machines, _ = r.count(o, machines)
	return confirmed, nil
}

// listLive lists the set's Machines as the API server has them now. It fails with requeue.ErrStale
// if the set itself is not the one in the cache any more.
func (r *reconciler) listLive(ctx context.Context, o *observation) ([]clusterv1alpha1.Machine, error) {
	if err := r.confirmSet(ctx, o); err != nil {
		return nil, err
	}
	selector, err := o.set.Spec.Selector.AsSelector()
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	machines := &clusterv1alpha1.MachineList{}
	err = r.live.List(ctx, machines, client.InNamespace(o.set.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the Machines there are: %w", err)
	}
	o.memory.floor, o.memory.floorOf = machineVersion(machines.ResourceVersion), o.set.Generation
	var ours []clusterv1alpha1.Machine
	for i := range machines.Items {
		if owner := metav1.GetControllerOfNoCopy(&machines.Items[i]); owner != nil && owner.UID == o.set.UID {
			ours = append(ours, machines.Items[i])
		}
	}
	return ours, nil
}

// lookUpUnseen asks the API server about the Machines that the cache should have shown by now. The
// cache never shows one that was gone before it came so far.
func (r *reconciler) lookUpUnseen(ctx context.Context, o *observation) error {
	for _, unseen := range o.memory.pending.Unseen() {
		m := &clusterv1alpha1.Machine{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: o.set.Namespace, Name: unseen.Name}, m)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look up Machine %s: %w", unseen.Name, err)
		}
		owner := metav1.GetControllerOfNoCopy(m)
		if apierrors.IsNotFound(err) || string(m.UID) != unseen.UID || owner == nil || owner.UID != o.set.UID {
			o.memory.pending.Remove(unseen.UID)
		}
	}
	return nil
}
