package machine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/daemonsets"
	"github.com/millwright-dev/millwright/core/drain"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/observedtime"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines/status,verbs=update
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinesets;machineclasses;clusters,verbs=get;list;watch
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=nodes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=pods,verbs=list
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:roleName=millwright-manager-workload,groups=policy,resources=poddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are the choices of whoever wires the controllers together. Drivers, Observed and
// Bootstrap are required.
type Options struct {
	// Drivers make and delete the VMs. Whoever adds the controller also starts them.
	Drivers *driver.Drivers
	// Observed are the clocks that timeouts run by, of the same drivers and cluster of Nodes.
	Observed *observedtime.Clocks
	// Bootstrap finds what user data needs besides the Machine.
	Bootstrap BootstrapConfigs
	// JoinProgress tells how far the VM of a Machine without a Node has got, from a cache. Default:
	// nobody can tell.
	JoinProgress func(context.Context, *clusterv1alpha1.Machine) (lifecycle.JoinProgress, error)
	// Workload is the cluster of the Nodes and pods; nil where machines have no Nodes. One that is
	// not the manager's own must be added to the manager by the caller.
	Workload cluster.Cluster
	// DrainTimeout bounds a drain where the Machine sets no nodeDrainTimeout. Default 2 h.
	DrainTimeout time.Duration
	// VolumeDetachTimeout is how long volumes of drained pods may be attached to the Node where the
	// Machine sets no nodeVolumeDetachTimeout; 0 for ever.
	VolumeDetachTimeout time.Duration
	// StartupTimeout is how long a VM may be without a Ready Node where the Machine sets no
	// nodeStartupTimeout; 0 for ever.
	StartupTimeout time.Duration
	// CriticalNamespaces are those of DaemonSets without which a Node does not work: their pods
	// have to run there before the Machine is Running. Default: none.
	CriticalNamespaces []string
	// NodeUnreachableAfter is for how long a drained Node's kubelet must not report, while others
	// do, for its pods not to be waited for. Default 5 min.
	NodeUnreachableAfter time.Duration
	// NodeDebounce is for how long a Node that has registered may be about to become Ready before
	// the status says what it waits for. Default 30 s.
	NodeDebounce time.Duration
	// EnforceSkew refuses kubelets that are further behind the API server than Kubernetes supports,
	// which else only get a warning. Newer ones are refused always.
	EnforceSkew bool
	// Specs reads what specs refer to. Default: only in the Machine's own namespace.
	Specs *specresolver.Resolver
	// OutdatedNodeDelay is how long a rollout has to go on until it marks the Nodes that are still
	// to be replaced. Default 1 min.
	OutdatedNodeDelay time.Duration
	// SecretRecheck is how long at most to wait for a Secret to be mended: nobody watches Secrets.
	// The bootstrap token of a VM that has yet to join is read half as often. Default 30 s.
	SecretRecheck time.Duration
	// MaxConcurrentReconciles is how many Machines are reconciled at once. Default 1.
	MaxConcurrentReconciles int
	// Clock tells the time. Default: the real one. It must be the drivers' clock.
	Clock clock.WithTicker
	// Tracing makes a span of each reconcile; the drivers' calls that it starts are part of it.
	// Default: none.
	Tracing trace.TracerProvider
}

// Add adds the controller of Machines to mgr, whose cache has ownership's indexes.
func Add(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults(mgr)
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	measures, err := newMeasures(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	find := machineFinder{cache: mgr.GetClient(), machines: ownership.NewMachines(mgr.GetCache())}
	r := &reconciler{
		Options:    o,
		client:     mgr.GetClient(),
		live:       mgr.GetAPIReader(),
		events:     mgr.GetEventRecorder("machine"),
		tracer:     o.Tracing.Tracer("github.com/millwright-dev/millwright/core/controllers/machine"),
		measures:   measures,
		userData:   userData{configs: o.Bootstrap, specs: o.Specs},
		foreigners: coexistence.NewReader(mgr.GetClient()),
	}
	machines := ctrl.NewControllerManagedBy(mgr).
		Named("machine").
		For(&clusterv1alpha1.Machine{}).
		Watches(&clusterv1alpha1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(find.machinesIn),
			builder.WithPredicates(predicate.Or(rolloutChanged(), coexistence.LeftAloneChanged()))).
		Watches(&clusterv1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(find.machinesThatInherit(machineClassIndex)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(find.machinesThatInherit(machineClusterIndex)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, pauseChanged()))).
		WatchesRawSource(source.Channel(o.Drivers.Events(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter(),
		})
	if o.Workload != nil {
		if err := addNodes(r, machines, find); err != nil {
			return err
		}
	}
	return machines.Complete(r)
}

// addNodes adds to the controller what has to do with Nodes.
func addNodes(r *reconciler, machines *ctrl.Builder, find machineFinder) error {
	workload := r.Workload
	if err := addNodeIndexes(workload.GetFieldIndexer()); err != nil {
		return err
	}
	drainer, err := drain.New(workload)
	if err != nil {
		return err
	}
	serverVersion, err := discovery.NewDiscoveryClientForConfigAndClient(workload.GetConfig(), workload.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make the client of the API server's version: %w", err)
	}
	r.drainer, r.apiServer = drainer, &apiServer{discovery: serverVersion, clock: r.Clock}
	r.nodes = nodeClient{Client: workload.GetClient(), live: workload.GetAPIReader(), machines: find}
	r.daemonSets = daemonsets.NewReader(workload.GetAPIReader(), r.CriticalNamespaces, r.Clock)
	r.userData.tokens = tokenClient{writer: workload.GetClient(), live: workload.GetAPIReader()}
	nodes := handler.TypedEnqueueRequestsFromMapFunc(find.machinesOf)
	attachments := handler.TypedEnqueueRequestsFromMapFunc(r.nodes.machinesOfAttachment)
	machines.
		WatchesRawSource(source.Kind(workload.GetCache(), &corev1.Node{}, nodes, nodeChanged())).
		WatchesRawSource(source.Kind(workload.GetCache(), &storagev1.VolumeAttachment{}, attachments, attachmentChanged()))
	return nil
}

func (o Options) withDefaults(mgr ctrl.Manager) Options {
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 2 * time.Hour
	}
	if o.NodeUnreachableAfter == 0 {
		o.NodeUnreachableAfter = 5 * time.Minute
	}
	if o.OutdatedNodeDelay == 0 {
		o.OutdatedNodeDelay = time.Minute
	}
	o.SecretRecheck = cmp.Or(o.SecretRecheck, 30*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Tracing == nil {
		o.Tracing = noop.NewTracerProvider()
	}
	if o.Specs == nil {
		o.Specs = specresolver.New(mgr.GetAPIReader(), specresolver.Options{Clock: o.Clock})
	}
	return o
}

// reconciler is safe for use by several workers, each with another Machine.
type reconciler struct {
	Options

	// client reads from the cache of Machines, live reads them from the API server.
	client client.Client
	live   client.Reader

	// nodes, drainer, daemonSets and apiServer are of the cluster of the Nodes; the zero value
	// where machines have none.
	nodes      nodeClient
	drainer    *drain.Drainer
	daemonSets *daemonsets.Reader
	apiServer  *apiServer

	events   events.EventRecorder
	tracer   trace.Tracer
	measures *measures
	memories machineMemories
	userData userData
	// foreigners knows which Machines are another system's.
	foreigners coexistence.Reader
}
