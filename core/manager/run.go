package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-dev/millwright/core/bootstrap/discovery"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/controllers/credentials"
	"github.com/millwright-dev/millwright/core/controllers/csrapproval"
	"github.com/millwright-dev/millwright/core/controllers/inuse"
	"github.com/millwright-dev/millwright/core/controllers/machine"
	"github.com/millwright-dev/millwright/core/controllers/machinedeployment"
	"github.com/millwright-dev/millwright/core/controllers/machinehealthcheck"
	"github.com/millwright-dev/millwright/core/controllers/machineset"
	"github.com/millwright-dev/millwright/core/controllers/nodegroup"
	"github.com/millwright-dev/millwright/core/controllers/orphangc"
	"github.com/millwright-dev/millwright/core/controllers/readonly"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driverstatus"
	"github.com/millwright-dev/millwright/core/metrics"
	"github.com/millwright-dev/millwright/core/observedtime"
	"github.com/millwright-dev/millwright/core/ownership"
	"github.com/millwright-dev/millwright/core/remediation"
	"github.com/millwright-dev/millwright/core/specresolver"
	"github.com/millwright-dev/millwright/core/surge"
	"github.com/millwright-dev/millwright/transport/tracing"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=millwright-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=millwright-system,resources=leases,resourceNames=millwright-manager,verbs=get;update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// After SIGTERM calls under way get callGrace to end, and all of the process shutdownGrace; the
// Lease is kept, and given back after that. A process that has lost its Lease gets neither.
const (
	callGrace     = 30 * time.Second
	shutdownGrace = callGrace + 5*time.Second
	// tracesGrace is how long the last spans may take to be sent, after all else has ended.
	tracesGrace = 2 * time.Second
)

// errLeadershipLost ends a leader that a driver has told of a later one. Exiting cancels its calls.
var errLeadershipLost = errors.New("a driver has seen a later leader: this process must not go on")

// Run runs core until ctx ends or leadership is lost; then it returns, and the process has to exit.
// Errors about options name the flag.
func Run(ctx context.Context, config *rest.Config, o Options, log logr.Logger) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	config = clientConfig(config, o)

	var leader *lease
	if o.LeaderElection.Enabled {
		var err error
		if leader, err = newLease(config, o.LeaderElection, clock.RealClock{}); err != nil {
			return err
		}
	}
	mgr, err := newManager(config, o, leader, log)
	if err != nil {
		return err
	}
	traces, err := tracing.New(ctx, o.TracingEndpoint, "millwright-manager", o.Version, slog.New(logr.ToSlogHandler(log.WithName("tracing"))))
	if err != nil {
		return fmt.Errorf("--tracing-endpoint: %w", err)
	}
	defer shutDown(ctx, traces, log)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	settings := driverSettings(mgr, o, leader)
	settings.Tracing, settings.LeadershipLost = traces, func() { stop(errLeadershipLost) }
	workload, err := newWorkload(mgr, o)
	if err != nil {
		return err
	}
	if settings.ClusterUID, err = clusterID(ctx, cmp.Or[cluster.Cluster](workload, mgr).GetAPIReader(), o.ClusterID); err != nil {
		return err
	}
	if err := addParts(ctx, mgr, workload, o, settings); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errLeadershipLost) {
		return errLeadershipLost
	}
	return nil
}

// registerMetrics registers what the manager shows of itself.
func registerMetrics(o Options) error {
	return errors.Join(metrics.Build(crmetrics.Registry, o.Version), metrics.Certificates(crmetrics.Registry, o.certificates()))
}

// addParts adds to mgr all that it runs, from top to bottom. The webhook runs on every replica; all
// else begins, at once, when this process leads and its caches are full. workload is the cluster of
// the Nodes; nil where there are none.
func addParts(ctx context.Context, mgr ctrl.Manager, workload cluster.Cluster, o Options, settings driver.Config) error {
	drivers, err := driver.New(settings, o.Drivers)
	if err != nil {
		return err
	}
	specs := specresolver.New(mgr.GetAPIReader(), specresolver.Options{
		Namespaces: o.SecretNamespaces, Rules: specresolver.Rules{Endpoints: o.Endpoints}, Writer: mgr.GetClient(),
	})
	accounts, wanted := surge.NewAccounts(clock.RealClock{}), remediation.New()
	var clocks *observedtime.Clocks
	parts := []part{
		{"metrics of its own", func() error { return registerMetrics(o) }},
		{"the clients of the drivers", func() error { return mgr.Add(drivers) }},
		{"the publisher of the drivers' status", func() error { return addPublisher(mgr, o, drivers) }},
		{"the webhook", func() error { return addWebhook(mgr, o, settings, specs) }},
	}
	if o.ReadOnly {
		parts = append(parts, part{"the controllers that show --read-only", func() error { return readonly.Add(mgr) }})
		return addAll(parts)
	}
	return addAll(append(parts, []part{
		{"the protection of classes and clusters", func() error { return inuse.Add(mgr) }},
		{"the index of owners", func() error { return ownership.AddIndexes(ctx, mgr.GetCache()) }},
		{"the index of other systems' Machines", func() error { return coexistence.AddIndex(ctx, mgr.GetFieldIndexer()) }},
		{"the notice of other systems", func() error { return coexistence.AddNotice(mgr, regarding(o)) }},
		{"the controller of MachineDeployments", func() error {
			return machinedeployment.Add(mgr, machinedeployment.Options{MaxConcurrentReconciles: o.Workers, Surge: accounts})
		}},
		{"the controller of MachineSets", func() error {
			return machineset.Add(mgr, machineset.Options{
				MaxConcurrentReconciles: o.Workers, MaxUnhealthy: intstr.Parse(o.MaxUnhealthy), Surge: accounts, Remediation: wanted,
			})
		}},
		{"the controller that describes node groups", func() error { return nodegroup.Add(mgr, nodegroup.Options{Drivers: drivers, Specs: specs}) }},
		{"the clocks of timeouts", func() (err error) {
			clocks, err = observedtime.Add(mgr, observedtime.Options{Drivers: drivers, Workload: workload, Settle: o.Settle, Clock: clock.RealClock{}})
			return err
		}},
		{"the controller of Machines", func() error {
			options := machineOptions(mgr, workload, o)
			options.Drivers, options.Observed, options.Specs, options.Tracing = drivers, clocks, specs, settings.Tracing
			return machine.Add(mgr, options)
		}},
		{"the controller of MachineHealthChecks", func() error {
			options := machinehealthcheck.Options{Clocks: clocks, Remediation: wanted, DefaultTimeout: o.DefaultHealthCheckTimeout, Workload: workload}
			return machinehealthcheck.Add(mgr, options)
		}},
		{"the approver of kubelets' certificates", func() error { return addApprover(mgr, workload, o) }},
		{"the keeper of copies of credentials", func() error {
			return credentials.Add(mgr, credentials.Options{Schema: schemas(drivers), Specs: specs})
		}},
		{"the collector of orphans", func() error {
			if o.Orphans.Off {
				return nil
			}
			return orphangc.Add(mgr, orphangc.Options{
				Drivers: drivers, Specs: specs, ClusterUID: settings.ClusterUID, Delete: !o.Orphans.ReportOnly,
				Interval: o.Orphans.Interval, Age: o.Orphans.Age, Regarding: regarding(o),
			})
		}},
	}...))
}

// addApprover adds what approves kubelets' certificates, where there are Nodes.
func addApprover(mgr ctrl.Manager, workload cluster.Cluster, o Options) error {
	if workload == nil {
		return nil
	}
	return csrapproval.Add(mgr, csrapproval.Options{Workload: workload, MaxConcurrentReconciles: o.Workers, Regarding: regarding(o)})
}

// machineOptions are those of the controller of Machines that follow from the manager's.
func machineOptions(mgr ctrl.Manager, workload cluster.Cluster, o Options) machine.Options {
	options := machine.Options{
		Workload: workload, DrainTimeout: o.DrainTimeout, VolumeDetachTimeout: o.NodeVolumeDetachTimeout, StartupTimeout: o.NodeStartupTimeout,
		NodeUnreachableAfter: o.NodeUnreachableAfter,
		OutdatedNodeDelay:    o.OutdatedNodeDelay,
		SecretRecheck:        o.SecretRecheck,
		CriticalNamespaces:   o.CriticalNamespaces, EnforceSkew: o.EnforceSkew, MaxConcurrentReconciles: o.Workers,
	}
	bootstrap := discovery.Options{Flags: o.Nodes, Management: mgr.GetClient(), ConfigMaps: mgr.GetAPIReader(), Clock: clock.RealClock{}}
	if workload != nil {
		bootstrap.Workload, options.JoinProgress = workload.GetAPIReader(), csrapproval.Progress(workload.GetClient())
	}
	options.Bootstrap = discovery.New(bootstrap)
	return options
}

// part is something that the manager runs or needs.
type part struct {
	name string
	add  func() error
}

func addAll(parts []part) error {
	for _, p := range parts {
		if err := p.add(); err != nil {
			return fmt.Errorf("add %s: %w", p.name, err)
		}
	}
	return nil
}

// shutDown sends the last spans.
func shutDown(ctx context.Context, traces *tracing.Provider, log logr.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesGrace)
	defer cancel()
	if err := traces.Shutdown(ctx); err != nil {
		log.Error(err, "the last traces are lost")
	}
}

func newManager(config *rest.Config, o Options, leader *lease, log logr.Logger) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	options := ctrl.Options{
		Scheme: scheme,
		Logger: log,
		Cache:  cacheOptions(),
		Client: client.Options{FieldOwner: fieldOwner},
		Metrics: metricsserver.Options{
			BindAddress: o.MetricsAddress, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress:  o.HealthAddress,
		PprofBindAddress:        o.ProfilingAddress,
		GracefulShutdownTimeout: new(shutdownGrace),
		LeaseDuration:           &o.LeaderElection.LeaseDuration,
		RenewDeadline:           &o.LeaderElection.RenewDeadline,
		RetryPeriod:             &o.LeaderElection.RetryPeriod,
	}
	if o.WebhookAddress != "" {
		server, err := newWebhookServer(o)
		if err != nil {
			return nil, err
		}
		options.WebhookServer = server
	}
	if leader != nil {
		options.LeaderElection = true
		options.LeaderElectionResourceLockInterface = leader
		options.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr.GetCache().WaitForCacheSync)); err != nil {
		return nil, err
	}
	return mgr, nil
}

// driverSettings is what the clients of the drivers have in common, but for the cluster's uid.
func driverSettings(mgr ctrl.Manager, o Options, leader *lease) driver.Config {
	settings := driver.Config{
		Version:         o.Version,
		CreateSettle:    o.CreateSettle,
		Deadlines:       o.Deadlines,
		CredentialRetry: o.CredentialRetry,
		Polling:         poller.Polling{SettledInterval: o.SettledInterval},
		ShutdownGrace:   callGrace,
		Log:             mgr.GetLogger().WithName("driver"),
		Clock:           clock.RealClock{},
		Registry:        crmetrics.Registry,
	}
	if leader != nil {
		settings.LeaderEpoch, settings.MutationBudget = leader.Epoch, leader.Budget
	}
	if o.ReadOnly {
		settings.MutationBudget = func() (latest time.Time, leading bool) { return time.Time{}, false }
	}
	return settings
}

// regarding is what Events are about that have no object of their own. The Lease is the one object
// that is the manager's own; without one the cluster is what remains.
func regarding(o Options) *corev1.ObjectReference {
	if !o.LeaderElection.Enabled {
		return &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem}
	}
	return &corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: o.LeaderElection.Namespace, Name: driverstatus.LeaseName,
	}
}

// clusterID is the operator's choice, else the uid of kube-system, which lives as long as the
// cluster does.
func clusterID(ctx context.Context, reader client.Reader, chosen string) (string, error) {
	if chosen != "" {
		return chosen, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("read the uid of namespace %s, which is the default of --cluster-id: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
