package machineset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/surge"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinesets/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machineclasses;clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are the choices of whoever wires the controllers together. The zero value works.
type Options struct {
	// MaxConcurrentReconciles is how many sets are reconciled at once. Default 1.
	MaxConcurrentReconciles int
	// MaxUnhealthy is how many of all Machines may be unhealthy, a number or a percentage: with
	// more no failed Machine is replaced. Default 33%.
	MaxUnhealthy intstr.IntOrString
	// Settle is for how long a Machine must be known to have failed before it is replaced, so that
	// those that share its fate have failed, too. Default 5 s.
	Settle time.Duration
	// Rooms are shared with the controller of MachineDeployments. Default: with nobody.
	Rooms *surge.Accounts
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// DefaultMaxUnhealthy is the default of Options.MaxUnhealthy.
var DefaultMaxUnhealthy = intstr.FromString("33%")

func (o Options) withDefaults() Options {
	if o.MaxUnhealthy == (intstr.IntOrString{}) {
		o.MaxUnhealthy = DefaultMaxUnhealthy
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Rooms == nil {
		o.Rooms = surge.NewAccounts(o.Clock)
	}
	return o
}

// limits are how failed Machines of a set are replaced.
func (o Options) limits() health.Limits {
	return health.Limits{
		MaxUnhealthy: o.MaxUnhealthy, MaxInFlight: 1, Startup: 10 * time.Minute,
		Settle: o.Settle, Pause: 10 * time.Second, LongestPause: 10 * time.Minute,
	}
}

// Add adds the controller of MachineSets to mgr, whose cache has ownership.Index.
func Add(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	counts, err := newMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	all, err := newGauges(metrics.Registry)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("machineset"),
		clock: o.Clock, metrics: counts, limits: o.limits(), rooms: o.Rooms, foreigners: coexistence.NewReader(mgr.GetClient()),
		healthTracker: newHealthTracker(o.Clock, o.MaxUnhealthy, all),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineset").
		For(&clusterv1alpha1.MachineSet{}).
		Watches(&clusterv1alpha1.Machine{}, r.healthTracker.before(ownership.EnqueueOwners(r.setsOf))).
		Watches(&clusterv1alpha1.MachineSet{}, ownership.EnqueueOwners(r.siblingsOf), builder.WithPredicates(freesSurge())).
		Watches(&clusterv1alpha1.Machine{}, ownership.EnqueueOwners(r.siblingsOfOwner), builder.WithPredicates(freesSurge())).
		Watches(&clusterv1alpha1.MachineClass{}, ownership.EnqueueOwners(r.setsThatInherit), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1alpha1.Cluster{}, ownership.EnqueueOwners(r.setsThatInherit), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1alpha1.MachineDeployment{}, ownership.EnqueueOwners(r.requestsForSets), builder.WithPredicates(coexistence.LeftAloneChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r)
}

type reconciler struct {
	client        client.Client
	live          client.Reader
	events        events.EventRecorder
	clock         clock.PassiveClock
	metrics       *counters
	setMemories   setMemories
	limits        health.Limits
	healthTracker *healthTracker
	pace          requeue.Debounce
	rooms         *surge.Accounts
	// foreigners knows which sets are another system's.
	foreigners coexistence.Reader
}

// Reconcile brings one set a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &clusterv1alpha1.MachineSet{}
	if err := r.client.Get(ctx, req.NamespacedName, set); err != nil {
		r.setMemories.forget(req.NamespacedName)
		r.pace.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !set.DeletionTimestamp.IsZero() {
		// The garbage collector deletes its Machines; nothing is to be created in their place.
		r.setMemories.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if why, err := r.foreigners.WhySet(ctx, set); err != nil || why != "" {
		return r.leaveAlone(ctx, set, why, err)
	}
	if set.Spec.Replicas == nil && !annotations.IsPaused(set) {
		return ctrl.Result{}, r.size(ctx, set)
	}
	if wait := r.pace.Wait(set, r.clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	seen := r.healthTracker.latest()
	machines, err := r.claim(ctx, set)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.pace.Record(set, len(machines), r.clock.Now())
	mem := r.setMemories.of(set)
	o, err := r.observe(ctx, set, mem, machines)
	if errors.Is(err, requeue.ErrStale) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	o.seen = seen
	done := r.apply(ctx, o)
	return r.report(ctx, o, done)
}

// leaveAlone shows on the set why another system works on it. What was remembered of it may not
// hold any more afterwards.
func (r *reconciler) leaveAlone(ctx context.Context, set *clusterv1alpha1.MachineSet, why string, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	r.setMemories.forget(client.ObjectKeyFromObject(set))
	return coexistence.LeaveAlone(ctx, r.client, set, why)
}

// size writes the size of a set that has none: at first the initial one; later, when the field was
// dropped, what it has.
func (r *reconciler) size(ctx context.Context, set *clusterv1alpha1.MachineSet) error {
	replicas := annotations.InitialReplicas(set)
	if set.Status.ObservedGeneration > 0 {
		var err error
		if replicas, err = r.present(ctx, set); err != nil {
			return err
		}
	}
	patch := client.MergeFromWithOptions(set.DeepCopy(), client.MergeFromWithOptimisticLock{})
	set.Spec.Replicas = &replicas
	if err := r.client.Patch(ctx, set, patch); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the default of spec.replicas: %w", err)
	}
	return nil
}

// present is how many Machines the set has, without those that have their replacement already.
func (r *reconciler) present(ctx context.Context, set *clusterv1alpha1.MachineSet) (int32, error) {
	machines, err := r.machinesOf(ctx, set)
	if err != nil {
		return 0, err
	}
	live := 0
	for i := range machines {
		if machines[i].DeletionTimestamp.IsZero() {
			live++
		}
	}
	// A set without a size is nobody's: no MachineDeployment leaves it out.
	return int32(max(live, len(machines)-aloneSpare)), nil
}

// claim returns the set's Machines from the cache, after it has adopted and released some where
// that was due, unless the set is paused. It returns no Machine that is not the set's yet: an event
// will follow.
func (r *reconciler) claim(ctx context.Context, set *clusterv1alpha1.MachineSet) ([]clusterv1alpha1.Machine, error) {
	selector, err := set.Spec.Selector.AsSelector()
	if err != nil {
		return nil, reconcile.TerminalError(fmt.Errorf("spec.selector: %w", err))
	}
	owner := ownership.Owner{Object: set, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind), Selector: selector}
	live := func(ctx context.Context) (client.Object, error) {
		now := &clusterv1alpha1.MachineSet{}
		return now, r.live.Get(ctx, client.ObjectKeyFromObject(set), now)
	}
	var ours []clusterv1alpha1.Machine
	for _, key := range []string{string(set.UID), ownership.NoOwner} {
		machines := &clusterv1alpha1.MachineList{}
		// The objects are the cache's own: they are only read.
		if err := r.client.List(ctx, machines, client.InNamespace(set.Namespace), client.MatchingFields{ownership.Index: key},
			client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Machines: %w", err)
		}
		// There are thousands, and all but a few are kept: where they stand.
		kept := machines.Items[:0]
		for i := range machines.Items {
			claim := owner.ActionFor(&machines.Items[i])
			if claim != ownership.Keep && annotations.IsPaused(set) {
				continue
			}
			if err := owner.Apply(ctx, r.client, live, &machines.Items[i], claim); err != nil {
				return nil, err
			}
			if claim == ownership.Keep {
				kept = append(kept, machines.Items[i])
			}
		}
		if ours == nil {
			ours = kept
			continue
		}
		ours = append(ours, kept...)
	}
	return ours, nil
}

// setsOf returns the set that a Machine belongs to, or, if it belongs to nobody, the sets that
// would adopt it.
func (r *reconciler) setsOf(ctx context.Context, machine client.Object) []reconcile.Request {
	return ownership.OwnersOf(machine, clusterv1alpha1.MachineSetKind, func() []ownership.Adopter {
		sets := &clusterv1alpha1.MachineSetList{}
		if err := r.client.List(ctx, sets, client.InNamespace(machine.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		adopters := make([]ownership.Adopter, 0, len(sets.Items))
		for i := range sets.Items {
			adopters = append(adopters, ownership.Adopter{Object: &sets.Items[i], Selector: sets.Items[i].Spec.Selector})
		}
		return adopters
	})
}
