package machinehealthcheck

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/healthcheck"
	"github.com/millwright-dev/millwright/core/metrics"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/remediation"
	"github.com/millwright-dev/millwright/core/requeue"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinehealthchecks,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinehealthchecks/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// eventDelay is how long changes of Machines and Nodes are collected before a namespace is looked
// at once for all of them. Health checks are about minutes.
const eventDelay = time.Second

// Clocks are the clocks that timeouts run by, as observedtime has them.
type Clocks interface {
	// Cluster says for how long Nodes could be observed, and whether they can be now.
	Cluster() (reading time.Duration, runs bool)
	// DriverRuns says whether the VMs of a driver can be observed now.
	DriverRuns(provider string) bool
}

// Options are the choices of whoever wires the controllers together. Clocks and Remediation are
// required.
type Options struct {
	Clocks Clocks
	// Remediation gets the Machines that sets are to replace.
	Remediation *remediation.Wanted
	// DefaultTimeout is for how long a Node may not be Ready, where no MachineHealthCheck selects
	// its Machine. 0: for ever.
	DefaultTimeout time.Duration
	// Workload is the cluster of the Nodes; nil where machines have none. One that is not the
	// manager's own must be added to the manager by the caller.
	Workload cluster.Cluster
}

// Add adds the controller of MachineHealthChecks to mgr.
func Add(mgr ctrl.Manager, o Options) error {
	c := metrics.NewSubsystem("machinehealthcheck", crmetrics.Registry)
	found := c.Counter("unhealthy_machines_total", "Machines that health checks found unhealthy.")
	if c.Err != nil {
		return c.Err
	}
	r := &reconciler{
		Options: o, client: mgr.GetClient(), machines: ownership.NewMachines(mgr.GetCache()), found: found,
		events: mgr.GetEventRecorder("machinehealthcheck"), memories: map[string]healthcheck.Memory{},
	}
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	namespaces := ctrl.NewControllerManagedBy(mgr).
		Named("machinehealthcheck").
		Watches(&clusterv1alpha1.MachineHealthCheck{}, enqueue(namespaceOf), generation).
		Watches(&clusterv1alpha1.Machine{}, enqueue(namespaceOf)).
		// One worker: what is remembered is not locked.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: requeue.RateLimiter()})
	if o.Workload != nil {
		r.nodes, r.liveNodes = o.Workload.GetClient(), o.Workload.GetAPIReader()
		namespaces.WatchesRawSource(source.Kind[client.Object](o.Workload.GetCache(), &corev1.Node{}, enqueue(namespaceOfMachine), nodeChanged()))
	}
	return namespaces.Complete(r)
}

// enqueue enqueues the namespace of each object that changes, eventDelay later.
func enqueue(of func(client.Object) string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(o client.Object, q queue) {
		if namespace := of(o); namespace != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}, eventDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

func namespaceOf(o client.Object) string { return o.GetNamespace() }

// namespaceOfMachine is that of the Machine whose Node it is; empty where it is nobody's.
func namespaceOfMachine(node client.Object) string {
	namespace, _, _ := strings.Cut(node.GetAnnotations()[clusterv1alpha1.NodeMachineAnnotation], "/")
	return namespace
}

// nodeChanged passes what a health check looks at: Nodes report far more often than that.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, isNode := e.ObjectOld.(*corev1.Node)
		is, stillNode := e.ObjectNew.(*corev1.Node)
		return isNode && stillNode && (namespaceOfMachine(was) != namespaceOfMachine(is) ||
			!slices.EqualFunc(was.Status.Conditions, is.Status.Conditions, isSameCondition))
	}}
}

func isSameCondition(a, b corev1.NodeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// reconciler has one worker.
type reconciler struct {
	Options

	client   client.Client
	machines ownership.Machines
	// nodes are from a cache, liveNodes from the API server; nil where machines have no Nodes.
	nodes, liveNodes client.Reader
	events           recorder
	found            prometheus.Counter
	// memories are those of package healthcheck, by namespace.
	memories map[string]healthcheck.Memory
}
