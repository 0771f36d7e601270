package machinedeployment

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
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

// Add adds the controller of MachineDeployments to mgr, whose cache has ownership's indexes.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Surge == nil {
		o.Surge = surge.NewAccounts(o.Clock)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &clusterv1alpha1.MachineSet{}, ownerNameIndex, ownerName); err != nil {
		return fmt.Errorf("index %s: %w", ownerNameIndex, err)
	}
	counts, err := newCounters(metrics.Registry)
	if err != nil {
		return err
	}
	client := mgr.GetClient()
	r := &reconciler{
		client: client, machines: ownership.NewMachines(mgr.GetCache()), live: mgr.GetAPIReader(), clock: o.Clock, accounts: o.Surge, foreigners: coexistence.NewReader(client),
		started: sync.OnceValue(o.Clock.Now), recorder: recorder{events: mgr.GetEventRecorder("machinedeployment"), metrics: counts},
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("machinedeployment").
		For(&clusterv1alpha1.MachineDeployment{}).
		Watches(&clusterv1alpha1.MachineSet{}, ownership.EnqueueOwners(ownership.OwnersIn(client))).
		Watches(&clusterv1alpha1.Machine{}, ownership.EnqueueOwners(deploymentsOfMachine(client))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter(),
		}).
		Complete(r)
}

// ownerNameIndex finds sets by the name of the MachineDeployment that controls them.
const ownerNameIndex = "machinedeployment.name-of-owner"

func ownerName(set client.Object) []string {
	if owner := ownership.ControllerOf(set, clusterv1alpha1.MachineDeploymentKind); owner != nil {
		return []string{owner.Name}
	}
	return nil
}

// deploymentsOfMachine returns the deployment whose set the Machine belongs to.
func deploymentsOfMachine(cache client.Reader) func(context.Context, client.Object) []reconcile.Request {
	deploymentsOf := ownership.OwnersIn(cache)
	return func(ctx context.Context, machine client.Object) []reconcile.Request {
		set, err := ownership.SetOf(ctx, cache, machine)
		if err != nil || set == nil || metav1.GetControllerOfNoCopy(set) == nil {
			return nil
		}
		return deploymentsOf(ctx, set)
	}
}
