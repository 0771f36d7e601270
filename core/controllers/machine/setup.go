package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
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
	"github.com/millwright-dev/millwright/core/drain"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/requeue"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines/status,verbs=update
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinesets;machineclasses;clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are the choices of whoever wires the controllers together. Drivers is required.
type Options struct {
	// Drivers make and delete the VMs. Whoever adds the controller also starts them.
	Drivers *driver.Drivers
	// Workload is the cluster of the Nodes and pods. Default: the manager's own. Another one must
	// be added to the manager by the caller.
	Workload cluster.Cluster
	// DrainTimeout bounds a drain where the Machine sets no nodeDrainTimeout. Default 2 h.
	DrainTimeout time.Duration
	// StartupTimeout is how long a VM may be without a Ready Node where the Machine sets no
	// nodeStartupTimeout; 0 for ever.
	StartupTimeout time.Duration
	// Settle is for how long after this process began, or the API server came back, no timeout
	// runs: kubelets have to report again first. Default 2 min.
	Settle time.Duration
	// NodeUnreachableAfter is for how long a drained Node's kubelet must not report, while others
	// do, for its pods not to be waited for. Default 5 min.
	NodeUnreachableAfter time.Duration
	// EnforceSkew refuses kubelets that are further behind the API server than Kubernetes supports,
	// which else only get a warning. Newer ones are refused always.
	EnforceSkew bool
	// Specs reads what specs refer to. Default: only in the Machine's own namespace.
	Specs *specresolver.Resolver
	// OutdatedNodeDelay is how long a rollout has to go on until it marks the Nodes that are still
	// to be replaced. Default 1 min.
	OutdatedNodeDelay time.Duration
	// MaxConcurrentReconciles is how many Machines are reconciled at once. Default 1.
	MaxConcurrentReconciles int
	// Clock tells the time. Default: the real one. It must be the drivers' clock.
	Clock clock.WithTicker
	// Tracing makes a span of each reconcile; the drivers' calls that it starts are part of it.
	// Default: none.
	Tracing trace.TracerProvider
}

// Add adds the controller of Machines to mgr, whose cache has ownership.Index.
func Add(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults(mgr)
	if err := addIndexes(mgr.GetFieldIndexer(), o.Workload.GetFieldIndexer()); err != nil {
		return err
	}
	measures, err := newMeasures(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	drainer, err := drain.New(o.Workload)
	if err != nil {
		return err
	}
	serverVersion, err := discovery.NewDiscoveryClientForConfigAndClient(o.Workload.GetConfig(), o.Workload.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make the client of the API server's version: %w", err)
	}
	watch, err := newObservability(mgr, o, measures, serverVersion.RESTClient())
	if err != nil {
		return err
	}
	r := &reconciler{
		apiServer:   &apiServer{discovery: serverVersion, clock: o.Clock},
		enforceSkew: o.EnforceSkew,
		client:      mgr.GetClient(),
		machines:    mgr.GetAPIReader(),
		nodes:       o.Workload.GetClient(),
		live:        o.Workload.GetAPIReader(),
		drainer:     drainer,
		drivers:     o.Drivers,
		events:      mgr.GetEventRecorder("machine"),
		clock:       o.Clock,
		drains:      o.DrainTimeout,
		startups:    o.StartupTimeout,
		unreachable: o.NodeUnreachableAfter,

		outdatedDelay: o.OutdatedNodeDelay,
		observable:    watch,
		measures:      measures,
		specs:         o.Specs,
		foreigners:    coexistence.NewReader(mgr.GetClient()),
	}
	nodes := handler.TypedEnqueueRequestsFromMapFunc(r.machinesOf)
	return ctrl.NewControllerManagedBy(mgr).
		Named("machine").
		For(&clusterv1alpha1.Machine{}).
		Watches(&clusterv1alpha1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.machinesIn), builder.WithPredicates(rolloutChanged())).
		Watches(&clusterv1alpha1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.machinesIn), builder.WithPredicates(coexistence.LeftAloneChanged())).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesUnder), builder.WithPredicates(pauseChanged())).
		Watches(&clusterv1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(r.machinesThatInherit(machineClassIndex)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesThatInherit(machineClusterIndex)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(o.Workload.GetCache(), &corev1.Node{}, nodes, nodeChanged())).
		WatchesRawSource(source.Channel(o.Drivers.Events(), &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles, RateLimiter: requeue.RateLimiter(),
		}).
		Complete(&traced{next: r, tracer: o.Tracing.Tracer("github.com/millwright-dev/millwright/core/controllers/machine")})
}

// newObservability adds the clocks that timeouts run by to the manager. nodes is the API server of
// the Nodes.
func newObservability(mgr ctrl.Manager, o Options, m *measures, nodes rest.Interface) (*observability, error) {
	watch := &observability{
		clock: o.Clock, settle: o.Settle, drivers: o.Drivers, ask: []func(context.Context) error{pings(nodes)}, measures: m,
		log: mgr.GetLogger().WithName("machine"), cloud: map[string]*stopwatch{},
		heartbeats: newHeartbeats(o.Workload.GetClient(), o.Workload.GetAPIReader()),
	}
	if o.Workload != cluster.Cluster(mgr) {
		own, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("make a client for the manager's API server: %w", err)
		}
		watch.ask = append(watch.ask, pings(own.RESTClient()))
	}
	if err := mgr.Add(watch); err != nil {
		return nil, fmt.Errorf("add the clocks of timeouts: %w", err)
	}
	return watch, nil
}

func (o Options) withDefaults(mgr ctrl.Manager) Options {
	if o.Workload == nil {
		o.Workload = mgr
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 2 * time.Hour
	}
	if o.Settle == 0 {
		o.Settle = 2 * time.Minute
	}
	if o.NodeUnreachableAfter == 0 {
		o.NodeUnreachableAfter = 5 * time.Minute
	}
	if o.OutdatedNodeDelay == 0 {
		o.OutdatedNodeDelay = time.Minute
	}
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
	client client.Client
	// machines reads Machines from the API server.
	machines client.Reader
	// nodes reads Nodes from a cache and writes them; live reads Nodes and pods from the API
	// server.
	nodes   client.Client
	live    client.Reader
	drainer *drain.Drainer
	drivers *driver.Drivers
	events  events.EventRecorder
	clock   clock.PassiveClock
	// drains and startups are the timeouts of Machines that set none.
	drains, startups time.Duration
	// unreachable is Options.NodeUnreachableAfter.
	unreachable time.Duration
	// outdatedDelay is Options.OutdatedNodeDelay.
	outdatedDelay   time.Duration
	observable      *observability
	measures        *measures
	machineMemories machineMemories
	// apiServer is the Nodes'; enforceSkew refuses kubelets that are too old for it, too.
	apiServer   *apiServer
	enforceSkew bool
	// specs reads what specs refer to.
	specs *specresolver.Resolver
	// foreigners knows which Machines are another system's.
	foreigners coexistence.Reader
}

// The indexes of the caches.
const (
	machineNodeIndex    = "machine.node"
	machineClassIndex   = "machine.class"
	machineClusterIndex = "machine.cluster"
	machineUIDIndex     = "machine.uid"
	nodeProviderIDIndex = "node.providerID"
	nodeAddressIndex    = "node.address"
)

func addIndexes(machines, nodes client.FieldIndexer) error {
	type index struct {
		of      client.FieldIndexer
		object  client.Object
		name    string
		extract client.IndexerFunc
	}
	machine, node := &clusterv1alpha1.Machine{}, &corev1.Node{}
	for _, i := range []index{
		{machines, machine, machineNodeIndex, func(o client.Object) []string { return signsOfNode(o.(*clusterv1alpha1.Machine)) }},
		{machines, machine, machineClassIndex, classOf},
		{machines, machine, machineClusterIndex, clusterOf},
		{machines, machine, machineUIDIndex, func(o client.Object) []string { return present(machineUID(o.(*clusterv1alpha1.Machine))) }},
		{nodes, node, nodeProviderIDIndex, func(o client.Object) []string {
			return present(o.(*corev1.Node).Spec.ProviderID)
		}},
		{nodes, node, nodeAddressIndex, addressesOfNodeWithoutID},
	} {
		if err := i.of.IndexField(context.Background(), i.object, i.name, i.extract); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.object, i.name, err)
		}
	}
	return nil
}

// signsOfNode are names, addresses and providerIDs by which a Node can be told to be the Machine's.
// A Machine that has a Node is named by that one's annotation: only its ids are indexed, by which
// another Node could claim to be its own. Index entries are a fifth of what a Machine costs in the
// cache.
func signsOfNode(m *clusterv1alpha1.Machine) []string {
	var signs []string
	if m.Status.NodeRef == nil {
		signs = append([]string{m.Name}, addresses(m.Status.Addresses)...)
	}
	for _, id := range append([]string{providerID(m), m.Status.ProviderID}, m.Status.ProviderIDAliases...) {
		if id != "" && !slices.Contains(signs, id) {
			signs = append(signs, id)
		}
	}
	return signs
}

// addressesOfNodeWithoutID are the addresses of a Node that has no providerID: findNode looks for
// no other Node by its addresses.
func addressesOfNodeWithoutID(o client.Object) []string {
	node := o.(*corev1.Node) //nolint:forcetypeassert // the index is of Nodes
	if node.Spec.ProviderID != "" {
		return nil
	}
	return addresses(node.Status.Addresses)
}

func present(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// addresses are those by which a Node and a Machine can be told to be one. Host names are none:
// they are the last resort, as names.
func addresses(all []corev1.NodeAddress) []string {
	var found []string
	for _, a := range all {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			found = append(found, a.Address)
		}
	}
	return found
}

func providerID(m *clusterv1alpha1.Machine) string {
	if m.Spec.ProviderID == nil {
		return ""
	}
	return *m.Spec.ProviderID
}

func machineUID(m *clusterv1alpha1.Machine) string {
	if m.Spec.MachineUID == nil {
		return ""
	}
	return *m.Spec.MachineUID
}
