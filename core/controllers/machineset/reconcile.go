package machineset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/remediation"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/scale"
	"github.com/millwright-dev/millwright/core/specresolver"
	"github.com/millwright-dev/millwright/core/surge"
)

type reconciler struct {
	client   client.Client
	machines ownership.Machines
	live     client.Reader
	clock    clock.PassiveClock
	limits   health.Limits
	accounts *surge.Accounts
	// foreigners knows which sets another system works on.
	foreigners coexistence.Reader
	debounce   requeue.Debounce
	memories   memories
	health     *healthTracker
	// wanted has the Machines that health checks want replaced.
	wanted   *remediation.Wanted
	recorder recorder
}

// Reconcile brings one set a step further. Before it plans, it sees to it that the set has a size
// and the Machines that it selects.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &clusterv1alpha1.MachineSet{}
	err := r.client.Get(ctx, req.NamespacedName, set)
	if apierrors.IsNotFound(err) || !set.DeletionTimestamp.IsZero() {
		// The garbage collector deletes its Machines, and nothing is to be created in their place.
		r.memories.forget(req.NamespacedName)
		r.debounce.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("look up the MachineSet: %w", err)
	}
	otherSystem, err := r.foreigners.WhySet(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	if otherSystem != "" {
		r.memories.forget(req.NamespacedName)
		return coexistence.LeaveAlone(ctx, r.client, set, otherSystem)
	}
	// A set that is paused before it was given a size keeps what it has.
	isPaused := annotations.IsPaused(set)
	lacksSize := set.Spec.Replicas == nil && !isPaused
	if rest := r.debounce.Wait(set, r.clock.Now()); rest > 0 && !lacksSize {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	// The version is read before the Machines, which are no older then.
	seen := r.health.latest()
	machines, changes, err := r.readMachines(ctx, set)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case lacksSize:
		return ctrl.Result{}, r.writeSize(ctx, set, initialSize(set, machines))
	case len(changes) > 0 && !isPaused:
		// The cache shows in a moment who is the set's. Who is created before may be one too many.
		return requeue.Result(requeue.Soon, ownership.WriteChanges(ctx, r.client, r.live, changes))
	}
	o, err := r.observe(ctx, set, machines, seen)
	if errors.Is(err, requeue.ErrStale) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.apply(ctx, o, newPlan(o))
}

// readMachines reads from the cache the Machines that are the set's, and which of all it has to
// adopt or to release. The Machines are the cache's own: for reading only.
func (r *reconciler) readMachines(
	ctx context.Context, set *clusterv1alpha1.MachineSet,
) (machines []*clusterv1alpha1.Machine, changes []ownership.Change, err error) {
	owner, err := ownership.OwnerOf(set)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range []string{string(set.UID), ownership.NoOwner} {
		listed, err := r.machines.Of(ctx, set.Namespace, key)
		if err != nil {
			return nil, nil, err
		}
		// There may be thousands, and all but a few are kept: where they are in the list.
		kept := listed[:0]
		for _, m := range listed {
			switch action := owner.ActionFor(m); action {
			case ownership.Keep:
				kept = append(kept, m)
			case ownership.Adopt, ownership.Release:
				changes = append(changes, ownership.Change{Owner: owner, Object: m.DeepCopy(), Action: action})
			case ownership.Ignore:
			}
		}
		if machines == nil {
			machines = kept
		}
	}
	return machines, changes, nil
}

// initialSize is the size of a set that has none. A set that was never looked at gets the initial
// one. Later somebody has dropped the field, and the set keeps as many as it has, without those
// that are replaced already.
func initialSize(set *clusterv1alpha1.MachineSet, machines []*clusterv1alpha1.Machine) int32 {
	if set.Status.ObservedGeneration == 0 {
		return annotations.InitialReplicas(set)
	}
	live := 0
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() {
			live++
		}
	}
	// No MachineDeployment leaves the size out, so the set stands alone.
	return int32(max(live, len(machines)-surge.AloneSpare))
}

// writeSize gives the set a size. A conflict is no error: an event follows.
func (r *reconciler) writeSize(ctx context.Context, set *clusterv1alpha1.MachineSet, replicas int32) error {
	patch := client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{})
	set.Spec.Replicas = &replicas
	if err := r.client.Patch(ctx, set, patch); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the default of spec.replicas: %w", err)
	}
	return nil
}

// observation is a set and its Machines.
type observation struct {
	now time.Time
	set *clusterv1alpha1.MachineSet
	// paused: nobody wants the set's Machines to be touched.
	paused bool
	// machines are the set's, from the cache. They are the cache's own: for reading only.
	machines []*clusterv1alpha1.Machine
	// seen is the version of the latest Machine that the cache had shown before machines were read.
	seen   string
	memory *memory
	// cached is what counts of machines; state is what package scale decides on, with what the
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

// observe looks at the set's Machines as the cache shows them, and as this process knows
// better. Where that is not enough, it asks the API server.
func (r *reconciler) observe(
	ctx context.Context, set *clusterv1alpha1.MachineSet, machines []*clusterv1alpha1.Machine, seen string,
) (*observation, error) {
	o := &observation{
		now: r.clock.Now(), set: set, paused: annotations.IsPaused(set), machines: machines, seen: seen, memory: r.memories.of(set),
	}
	r.debounce.Record(set, len(machines), o.now)
	var err error
	if o.inherited, err = r.readInherited(ctx, o); err != nil {
		return nil, err
	}
	o.cached, o.nextAvailable = r.count(o, machines)
	o.state = scale.State{
		Desired:  int(ptr.Deref(set.Spec.Replicas, int32(len(machines)))),
		Machines: o.memory.view(o.cached),
		Frozen:   apimeta.IsStatusConditionTrue(set.Status.Conditions, clusterv1alpha1.ConditionFrozen),
		Order: scale.Order{
			UnavailableFirst: set.Annotations[clusterv1alpha1.ScalingReasonAnnotation] == clusterv1alpha1.ScalingReasonRolling,
			Policy:           set.Spec.DeletePolicy,
			Seed:             string(set.UID),
		},
		Repair: withMaxInFlight(r.limits, set), Fleet: r.health.fleetHealth(), Attempts: o.memory.attempts, Now: o.now,
	}
	if o.state, err = withRoom(ctx, siblingReader{r.client, r.machines}, set, o.state, nil); err != nil {
		return nil, err
	}
	if !o.paused {
		o.outdated = o.memory.outdated(set, machines)
	}
	return o, r.confirm(ctx, o)
}

// withMaxInFlight returns the limits with what the set says of them.
func withMaxInFlight(limits health.Limits, set *clusterv1alpha1.MachineSet) health.Limits {
	if set.Spec.Remediation == nil || set.Spec.Remediation.MaxInFlight == nil {
		return limits
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(set.Spec.Remediation.MaxInFlight, int(ptr.Deref(set.Spec.Replicas, 0)), true)
	if err == nil {
		limits.MaxInFlight = max(most, 1)
	}
	return limits
}

// count returns what counts of Machines, and in how long the next of them becomes available.
func (r *reconciler) count(o *observation, machines []*clusterv1alpha1.Machine) ([]scale.Machine, time.Duration) {
	minReady, next := time.Duration(o.set.Spec.MinReadySeconds)*time.Second, time.Duration(0)
	counted := make([]scale.Machine, 0, len(machines))
	for _, m := range machines {
		facts := health.MachineOf(m)
		facts.Failed = facts.Failed && (health.HasFailed(m) || r.wanted.Has(m.Namespace, m.UID))
		if facts.Failed {
			facts.FailedSince = r.health.failedSince(m.UID)
		}
		var left time.Duration
		facts.Available, left = health.IsAvailable(m, minReady, o.now)
		facts.Refused = health.IsSpecRefused(m) && machinetemplate.IsSameVM(m, &o.set.Spec.Template) && !o.isSpecMended(m)
		next = earliest.Delay(next, left)
		counted = append(counted, facts)
	}
	return counted, next
}

// readInherited returns what a Machine of the set's template would be made from now, if the
// template inherits anything and a Machine's spec was refused. It returns nil else, and while
// nothing can be made of the template at all.
func (r *reconciler) readInherited(ctx context.Context, o *observation) (*specresolver.Effective, error) {
	spec, refused := &o.set.Spec.Template.Spec, false
	for _, m := range o.machines {
		refused = refused || health.IsSpecRefused(m)
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

// refresh brings the observation up to what the memory knows by now.
func (o *observation) refresh() {
	o.state.Machines = o.memory.view(o.cached)
	o.state.Attempts = o.memory.attempts
}
