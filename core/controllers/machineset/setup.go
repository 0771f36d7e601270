package machineset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/remediation"
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
	// Settle is how long a Machine must be known to have failed before it is replaced. Others that
	// fail for the same reason have failed by then, too. Default 5 s.
	Settle time.Duration
	// Remediation has the Machines that health checks want replaced. Default: nobody's own; none is
	// replaced for a health check then.
	Remediation *remediation.Wanted
	// Surge are the accounts that the controller of MachineDeployments uses, too. Default: accounts
	// that nobody else uses.
	Surge *surge.Accounts
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

func (o Options) withDefaults() Options {
	limits := health.DefaultLimits()
	if o.MaxUnhealthy == (intstr.IntOrString{}) {
		o.MaxUnhealthy = limits.MaxUnhealthy
	}
	if o.Settle == 0 {
		o.Settle = limits.Settle
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Remediation == nil {
		o.Remediation = remediation.New()
	}
	if o.Surge == nil {
		o.Surge = surge.NewAccounts(o.Clock)
	}
	return o
}

// limits bound the replacement of a set's failed Machines.
func (o Options) limits() health.Limits {
	limits := health.DefaultLimits()
	limits.MaxUnhealthy, limits.Settle = o.MaxUnhealthy, o.Settle
	return limits
}

// Add adds the controller of MachineSets to mgr, whose cache has ownership's indexes.
func Add(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	counts, err := newCounters(metrics.Registry)
	if err != nil {
		return err
	}
	fleet, err := newGauges(metrics.Registry)
	if err != nil {
		return err
	}
	client := mgr.GetClient()
	tracker := newHealthTracker(o.Clock, o.MaxUnhealthy, fleet)
	r := &reconciler{
		client: client, machines: ownership.NewMachines(mgr.GetCache()), live: mgr.GetAPIReader(), clock: o.Clock, limits: o.limits(), accounts: o.Surge, health: tracker, wanted: o.Remediation,
		foreigners: coexistence.NewReader(client),
		recorder:   recorder{events: mgr.GetEventRecorder("machineset"), metrics: counts},
	}
	w := watches{cache: client}
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineset").
		For(&clusterv1alpha1.MachineSet{}).
		Watches(&clusterv1alpha1.Machine{}, tracker.before(ownership.EnqueueOwners(ownership.OwnersIn(client)))).
		Watches(&clusterv1alpha1.MachineSet{}, ownership.EnqueueOwners(w.siblings), builder.WithPredicates(freesSurge())).
		Watches(&clusterv1alpha1.Machine{}, ownership.EnqueueOwners(w.siblingsOfOwner), builder.WithPredicates(freesSurge())).
		Watches(&clusterv1alpha1.MachineClass{}, ownership.EnqueueOwners(w.setsThatInherit), generation).
		Watches(&clusterv1alpha1.Cluster{}, ownership.EnqueueOwners(w.setsThatInherit), generation).
		Watches(&clusterv1alpha1.MachineDeployment{}, ownership.EnqueueOwners(w.setsOfDeployment),
			builder.WithPredicates(coexistence.LeftAloneChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r)
}

// watches find the sets that an event concerns, in the cache.
type watches struct{ cache client.Reader }

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// setsThatInherit returns the sets whose template inherits from a MachineClass or a Cluster.
func (w watches) setsThatInherit(ctx context.Context, from client.Object) []reconcile.Request {
	sets := &clusterv1alpha1.MachineSetList{}
	if err := w.cache.List(ctx, sets, client.InNamespace(from.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	_, isClass := from.(*clusterv1alpha1.MachineClass)
	var requests []reconcile.Request
	for i := range sets.Items {
		spec := &sets.Items[i].Spec.Template.Spec
		class, cluster := spec.ProviderSpec.ValueFrom, spec.ClusterRef
		if isClass && class != nil && class.MachineClass.Name == from.GetName() || !isClass && cluster != nil && cluster.Name == from.GetName() {
			requests = append(requests, requestFor(&sets.Items[i]))
		}
	}
	return requests
}

// setsOfDeployment returns the sets of a MachineDeployment.
func (w watches) setsOfDeployment(ctx context.Context, md client.Object) []reconcile.Request {
	sets, err := setsOf(ctx, w.cache, md.GetNamespace(), md.GetUID())
	if err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(sets))
	for i := range sets {
		requests = append(requests, requestFor(&sets[i]))
	}
	return requests
}

// siblings returns the other sets of the set's MachineDeployment that should have Machines: they
// may create what this set does not hold any more.
func (w watches) siblings(ctx context.Context, set client.Object) []reconcile.Request {
	deployment := deploymentOf(set)
	if deployment == nil {
		return nil
	}
	sets, err := setsOf(ctx, w.cache, set.GetNamespace(), deployment.UID)
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range sets {
		if sets[i].UID != set.GetUID() && ptr.Deref(sets[i].Spec.Replicas, 0) > 0 {
			requests = append(requests, requestFor(&sets[i]))
		}
	}
	return requests
}

// siblingsOfOwner returns the siblings of the set that the Machine belongs to.
func (w watches) siblingsOfOwner(ctx context.Context, machine client.Object) []reconcile.Request {
	set, err := ownership.SetOf(ctx, w.cache, machine)
	if err != nil || set == nil {
		return nil
	}
	return w.siblings(ctx, set)
}

// freesSurge passes events after which a set has fewer Machines, a smaller size, or is gone.
func freesSurge() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, wasSet := e.ObjectOld.(*clusterv1alpha1.MachineSet)
			now, isSet := e.ObjectNew.(*clusterv1alpha1.MachineSet)
			isSmaller := wasSet && isSet && ptr.Deref(now.Spec.Replicas, 0) < ptr.Deref(before.Spec.Replicas, 0)
			return isSmaller || ownership.IndexKey(e.ObjectOld)[0] != ownership.IndexKey(e.ObjectNew)[0]
		},
	}
}
