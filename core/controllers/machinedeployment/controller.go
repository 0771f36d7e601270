package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/surge"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are the choices of whoever wires the controllers together. The zero value works.
type Options struct {
	// MaxConcurrentReconciles is how many deployments are reconciled at once. Default 1.
	MaxConcurrentReconciles int
	// Surge are the accounts that the controller of MachineSets uses, too. Default: accounts that
	// nobody else uses.
	Surge *surge.Accounts
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Add adds the controller of MachineDeployments to mgr, whose cache has ownership.Index.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Surge == nil {
		o.Surge = surge.NewAccounts(o.Clock)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &clusterv1alpha1.MachineSet{}, namesakeIndex, ownerName); err != nil {
		return fmt.Errorf("index %s: %w", namesakeIndex, err)
	}
	counts, err := newMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("machinedeployment"),
		clock: o.Clock, metrics: counts, rooms: o.Surge, foreigners: coexistence.NewReader(mgr.GetClient()),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("machinedeployment").
		For(&clusterv1alpha1.MachineDeployment{}).
		Watches(&clusterv1alpha1.MachineSet{}, ownership.EnqueueOwners(r.deploymentsOf)).
		Watches(&clusterv1alpha1.Machine{}, ownership.EnqueueOwners(r.deploymentOfMachine)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r)
}

type reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	clock   clock.PassiveClock
	metrics *counters
	reports reports
	// since is when this process began to look at deployments: the time before does not count
	// against their deadlines.
	since   time.Time
	started sync.Once
	pace    requeue.Debounce
	rooms   *surge.Accounts
	// foreigners knows what is another system's.
	foreigners coexistence.Reader
}

// Reconcile brings one deployment a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	md := &clusterv1alpha1.MachineDeployment{}
	if err := r.client.Get(ctx, req.NamespacedName, md); err != nil {
		r.reports.forget(req.NamespacedName)
		r.pace.Forget(req.NamespacedName)
		r.rooms.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !md.DeletionTimestamp.IsZero() {
		// The garbage collector deletes its sets and their Machines.
		return ctrl.Result{}, nil
	}
	r.started.Do(func() { r.since = r.clock.Now() })
	if why, err := r.foreigners.WhyDeployment(ctx, md); err != nil || why != "" {
		if err != nil {
			return ctrl.Result{}, err
		}
		return coexistence.LeaveAlone(ctx, r.client, md, why)
	}
	if annotations.IsPaused(md) {
		return r.leaveAlone(ctx, md)
	}
	sets, err := r.claim(ctx, md)
	if err == nil {
		err = r.dropLeftovers(ctx, md)
	}
	if errors.Is(err, requeue.ErrStale) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if md.Spec.Replicas == nil {
		return ctrl.Result{}, r.size(ctx, md, sets)
	}
	if wait := r.pace.Wait(md, r.clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	o, done, err := r.act(ctx, md, sets)
	if err != nil {
		return ctrl.Result{}, err
	}
	if errors.Is(done.err, requeue.ErrStale) || apierrors.IsConflict(done.err) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	return r.report(ctx, o, done)
}

// act looks at the deployment and does what is to be done next, alone in its room.
func (r *reconciler) act(
	ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet,
) (*observation, applied, error) {
	room := r.rooms.Lock(client.ObjectKeyFromObject(md), md.UID)
	defer room.Unlock()
	o, err := r.observe(ctx, md, sets, room)
	if err != nil {
		return nil, applied{}, err
	}
	r.pace.Record(md, int(o.counts.present), r.clock.Now())
	return o, r.apply(ctx, o), nil
}

// leaveAlone reports what there is, and does nothing.
func (r *reconciler) leaveAlone(ctx context.Context, md *clusterv1alpha1.MachineDeployment) (ctrl.Result, error) {
	sets := &clusterv1alpha1.MachineSetList{}
	err := r.client.List(ctx, sets, client.InNamespace(md.Namespace), client.MatchingFields{ownership.Index: string(md.UID)})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("list MachineSets: %w", err)
	}
	room := r.rooms.Lock(client.ObjectKeyFromObject(md), md.UID)
	defer room.Unlock()
	o, err := r.observe(ctx, md, sets.Items, room)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, o, applied{held: true})
}

// size writes the size of a deployment that has none: at first the initial one; later, when
// somebody dropped the field, for instance to leave it to an autoscaler, the one that its sets were
// last scaled for.
func (r *reconciler) size(ctx context.Context, md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet) error {
	replicas := annotations.InitialReplicas(md)
	newest := int64(-1)
	for i := range sets {
		plannedSize, ok := plannedSize(&sets[i])
		if revision := revisionOf(&sets[i]); ok && ptr.Deref(sets[i].Spec.Replicas, 0) > 0 && revision > newest {
			newest, replicas = revision, plannedSize.Replicas
		}
	}
	if newest < 0 && md.Status.ObservedGeneration > 0 {
		// It is known, and no set has a Machine.
		replicas = 0
	}
	patch := client.MergeFromWithOptions(md.DeepCopy(), client.MergeFromWithOptimisticLock{})
	md.Spec.Replicas = &replicas
	if err := r.client.Patch(ctx, md, patch); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the default of spec.replicas: %w", err)
	}
	return nil
}

// claim returns the deployment's sets from the cache, after it has adopted and released some where
// that was due. When it has adopted any, or somebody else's write kept it from that, it returns
// requeue.ErrStale: without that set another might be made in its place.
func (r *reconciler) claim(ctx context.Context, md *clusterv1alpha1.MachineDeployment) ([]clusterv1alpha1.MachineSet, error) {
	selector, err := md.Spec.Selector.AsSelector()
	if err != nil {
		return nil, reconcile.TerminalError(fmt.Errorf("spec.selector: %w", err))
	}
	owner := ownership.Owner{Object: md, Kind: clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind), Selector: selector}
	var ours []clusterv1alpha1.MachineSet
	adopted := false
	for _, key := range []string{string(md.UID), ownership.NoOwner} {
		sets := &clusterv1alpha1.MachineSetList{}
		if err := r.client.List(ctx, sets, client.InNamespace(md.Namespace), client.MatchingFields{ownership.Index: key}); err != nil {
			return nil, fmt.Errorf("list MachineSets: %w", err)
		}
		for i := range sets.Items {
			claim, err := r.claimOn(ctx, owner, &sets.Items[i])
			if err != nil {
				return nil, err
			}
			change := ownership.Change{Owner: owner, Object: &sets.Items[i], Action: claim}
			if err := change.Write(ctx, r.client, r.live); err != nil {
				return nil, err
			}
			switch claim {
			case ownership.Keep:
				ours = append(ours, sets.Items[i])
			case ownership.Adopt:
				adopted = true
			case ownership.Ignore, ownership.Release:
				// It is not the deployment's, or not any more.
			}
		}
	}
	if adopted {
		return nil, requeue.ErrStale
	}
	return ours, nil
}

// claimOn is owner's claim on the set. It adopts none that has another system's Machines.
func (r *reconciler) claimOn(ctx context.Context, owner ownership.Owner, set *clusterv1alpha1.MachineSet) (ownership.Action, error) {
	claim := owner.ActionFor(set)
	if claim != ownership.Adopt {
		return claim, nil
	}
	if why, err := r.foreigners.WhySet(ctx, set); err != nil || why != "" {
		return ownership.Ignore, err
	}
	return claim, nil
}

// deploymentsOf returns the deployment that a set belongs to, or, if it belongs to nobody, those
// that would adopt it.
func (r *reconciler) deploymentsOf(ctx context.Context, set client.Object) []reconcile.Request {
	return ownership.OwnersOf(set, clusterv1alpha1.MachineDeploymentKind, func() []ownership.Adopter {
		deployments := &clusterv1alpha1.MachineDeploymentList{}
		err := r.client.List(ctx, deployments, client.InNamespace(set.GetNamespace()), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil
		}
		adopters := make([]ownership.Adopter, 0, len(deployments.Items))
		for i := range deployments.Items {
			md := &deployments.Items[i]
			adopters = append(adopters, ownership.Adopter{Object: md, Selector: md.Spec.Selector})
		}
		return adopters
	})
}

// deploymentOfMachine returns the deployment whose set the Machine belongs to.
func (r *reconciler) deploymentOfMachine(ctx context.Context, machine client.Object) []reconcile.Request {
	owner := ownership.ControllerOf(machine, clusterv1alpha1.MachineSetKind)
	if owner == nil {
		return nil
	}
	set := &clusterv1alpha1.MachineSet{}
	key := client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}
	if err := r.client.Get(ctx, key, set); err != nil || metav1.GetControllerOf(set) == nil {
		return nil
	}
	return r.deploymentsOf(ctx, set)
}
