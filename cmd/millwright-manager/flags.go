package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/cmd/nodeflags"
	"github.com/millwright-dev/millwright/core/controllers/orphangc"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/manager"
	"github.com/millwright-dev/millwright/core/specresolver"
	"github.com/millwright-dev/millwright/proto/contract"
)

type settings struct {
	kubeconfig string
	verbosity  int
	version    bool
	options    manager.Options
}

// maxVerbosity is the highest at which client-go logs no bodies of requests and answers, among
// which are Secrets.
const maxVerbosity = 7

func parse(args []string) (settings, error) {
	var s settings
	var drivers, endpoints []string
	var nodes nodeflags.Flags
	skew := choice{value: skewWarn, among: []string{skewWarn, skewEnforce}}
	orphans := choice{value: orphansDelete, among: []string{orphansOff, orphansReport, orphansDelete}}
	hostname, err := os.Hostname()
	if err != nil {
		return s, fmt.Errorf("read the host's name, the default of --leader-election-identity: %w", err)
	}
	o := &s.options
	flags := pflag.NewFlagSet("millwright-manager", pflag.ContinueOnError)
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "Kubeconfig of the cluster; empty: $KUBECONFIG, else the pod's ServiceAccount.")
	flags.StringVar(&o.WorkloadKubeconfig, "workload-kubeconfig", "", "Kubeconfig of the cluster of the Nodes, read again when it changes; empty: that of the Machines; none: machines have no Nodes.")
	flags.IntVarP(&s.verbosity, "verbosity", "v", 0, "How much to log: 0 events, 4 decisions, 6 calls. More than 7 is taken for 7: Kubernetes' client would log Secrets.")
	flags.BoolVar(&s.version, "version", false, "Print the version, and do nothing else.")
	flags.StringArrayVar(&drivers, "driver", nil, "A driver to call, as NAME=ADDRESS, e.g. mycloud=unix:///run/millwright/mycloud.sock; NAME is the cloudProvider it serves. Repeat for several.")
	flags.StringVar(&o.ClusterID, "cluster-id", "", "What marks VMs as this cluster's; must never change. Empty: the uid of namespace kube-system, in the cluster of the Nodes if there is one.")
	flags.DurationVar(&o.CredentialRetry, "credential-retry", instance.DefaultCredentialRetry, "How long calls with credentials that the cloud refuses are held back, unless these change.")
	flags.DurationVar(&o.CreateSettle, "create-settle", contract.DefaultCreateSettle, "How long after a create of unknown outcome its VM may still appear, where a driver does not declare that.")
	flags.BoolVar(&o.ReadOnly, "read-only", false, "Look on only: create, change and delete nothing, but show the condition Paused. Set it on all replicas.")
	flags.IntVar(&o.Workers, "workers", 16, "How many objects of each kind are reconciled at once.")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 2*time.Hour, "How long a drain may take where the Machine sets no nodeDrainTimeout.")
	flags.DurationVar(&o.NodeVolumeDetachTimeout, "node-volume-detach-timeout", 10*time.Minute, "How long volumes of drained pods may be attached to a Node where the Machine sets no nodeVolumeDetachTimeout; 0: for ever.")
	flags.StringVar(&o.MaxUnhealthy, "max-unhealthy", "33%", "With more of all Machines unhealthy, a number or a percentage, no failed one is replaced.")
	flags.DurationVar(&o.NodeStartupTimeout, "node-startup-timeout", 20*time.Minute, "How long a VM may take to become a Ready Node where the Machine sets no nodeStartupTimeout; 0: for ever.")
	flags.StringSliceVar(&o.CriticalNamespaces, "critical-daemonset-namespaces", []string{metav1.NamespaceSystem}, "Namespaces whose DaemonSets of priority class system-node-critical have to run on a Node before its Machine is Running; empty: none.")
	flags.DurationVar(&o.Settle, "settle-period", 2*time.Minute, "How long after this process began to lead, or the API server came back, no timeout of a Machine runs: kubelets have to report again first.")
	flags.DurationVar(&o.NodeUnreachableAfter, "node-unreachable-after", 5*time.Minute, "How long a drained Node's kubelet must not report, while the API server answers and other Nodes report, for its pods not to be waited for.")
	flags.DurationVar(&o.DefaultHealthCheckTimeout, "default-health-check-timeout", 10*time.Minute, "How long a Node may not be Ready while its VM runs until its Machine is replaced, where no MachineHealthCheck selects the Machine; 0: for ever.")
	flags.DurationVar(&o.OutdatedNodeDelay, "outdated-node-delay", time.Minute, "How long a rollout has to go on until the Nodes that are still to be replaced get a taint that new pods avoid. 0 is the default.")
	flags.DurationVar(&o.SecretRecheck, "secret-recheck", 30*time.Second, "How often a Secret is read that a Machine waits for. The bootstrap token of a VM that has yet to join is read half as often. 0 is the default.")
	flags.Var(&skew, "kubelet-skew", "What becomes of kubelets further behind the API server than Kubernetes supports: warn or enforce.")
	flags.Var(&orphans, "orphan-collection", "What becomes of VMs of this cluster that no Machine names: off, report or delete.")
	flags.DurationVar(&o.Orphans.Interval, "orphan-interval", orphangc.DefaultInterval, "How long lies between two scans for orphans; one is deleted after the second at the earliest.")
	flags.DurationVar(&o.Orphans.Age, "orphan-age", orphangc.DefaultAge, "How old an orphan must be to be deleted. Less than a create may take counts as that.")
	flags.DurationVar(&o.Deadlines.Identity, "deadline-identity", 0, "Deadline of handshake calls to drivers (default 5s).")
	flags.DurationVar(&o.Deadlines.Status, "deadline-status", 0, "Deadline of GetMachineStatus (default 30s).")
	flags.DurationVar(&o.Deadlines.Mutation, "deadline-mutation", 0, "Deadline of CreateMachine and DeleteMachine (default 30s).")
	flags.DurationVar(&o.Deadlines.ListPage, "deadline-list-page", 0, "Deadline of one page of ListMachines (default 60s).")
	flags.DurationVar(&o.SettledInterval, "settled-interval", 0, "How often VMs that run are looked at (default 1m).")
	leaderFlags(flags, &o.LeaderElection, hostname)
	flags.StringVar(&o.HealthAddress, "health-bind-address", "127.0.0.1:8081", "Where /healthz and /readyz are served; 0 switches them off.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "Where /metrics is served, by TLS and to whom RBAC allows it; 0 switches it off.")
	flags.StringVar(&o.ProfilingAddress, "profiling-bind-address", "", "Where Go's profiles are served (/debug/pprof), on a loopback address only; empty switches it off.")
	flags.StringVar(&o.TracingEndpoint, "tracing-endpoint", "", "Collector that gets OpenTelemetry traces by OTLP over gRPC, as https://host:port or unix:///PATH; empty switches them off.")
	specFlags(flags, o, &endpoints)
	nodes.Add(flags)
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: everything is a flag, see --help", flags.Arg(0))
	}
	if o.Nodes, err = nodes.Config(); err != nil {
		return s, err
	}
	s.verbosity = min(s.verbosity, maxVerbosity)
	o.EnforceSkew = skew.value == skewEnforce
	o.Orphans.Off, o.Orphans.ReportOnly = orphans.value == orphansOff, orphans.value == orphansReport
	return s, readAddresses(o, endpoints, drivers)
}

// readAddresses takes over the values of --allow-endpoint and --driver.
func readAddresses(o *manager.Options, endpoints, drivers []string) error {
	for _, text := range endpoints {
		pattern, err := specresolver.ParseEndpointPattern(text)
		if err != nil {
			return fmt.Errorf("--allow-endpoint=%w", err)
		}
		o.Endpoints = append(o.Endpoints, pattern)
	}
	for _, text := range drivers {
		target, err := driver.ParseTarget(text)
		if err != nil {
			return fmt.Errorf("--driver=%s: %w", text, err)
		}
		o.Drivers = append(o.Drivers, target)
	}
	return nil
}

// leaderFlags say how several managers agree on which one works.
func leaderFlags(flags *pflag.FlagSet, o *manager.LeaderElection, hostname string) {
	flags.BoolVar(&o.Enabled, "leader-elect", true, "Let only one of several managers work.")
	flags.StringVar(&o.Namespace, "leader-election-namespace", "millwright-system", "Namespace of the leader's Lease, and of the ConfigMap that tells of the drivers.")
	flags.StringVar(&o.Identity, "leader-election-identity", hostname, "Name of this manager in the Lease. Two that run at once must differ.")
	flags.DurationVar(&o.LeaseDuration, "leader-election-lease-duration", manager.DefaultLeaseDuration, "How long another manager waits for the leader's next renewal. Calls to drivers end before it.")
	flags.DurationVar(&o.RenewDeadline, "leader-election-renew-deadline", manager.DefaultRenewDeadline, "How long the leader tries to renew its Lease before it exits.")
	flags.DurationVar(&o.RetryPeriod, "leader-election-retry-period", manager.DefaultRetryPeriod, "How long lies between two renewals.")
}

// specFlags say what specs may refer to, and whether they are judged when they are applied.
func specFlags(flags *pflag.FlagSet, o *manager.Options, endpoints *[]string) {
	flags.StringSliceVar(&o.SecretNamespaces, "secret-namespaces", nil, "Namespaces whose Secrets and ConfigMaps machines of every namespace may be made with, besides those of their own. Needs --allow-endpoint.")
	flags.StringSliceVar(endpoints, "allow-endpoint", nil, "A host, or pattern of hosts, that a cloudProviderSpec may name as its cloud's address, by https; http:// before it allows plain http, :PORT behind it that port only. Repeat for several; empty: any.")
	flags.StringVar(&o.WebhookAddress, "webhook-bind-address", "", "Where the webhook is served that refuses wrong specs when they are applied; empty switches it off.")
	flags.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "", "Folder of the webhook's tls.crt and tls.key; they are read again when they change.")
}

// Values of --kubelet-skew and --orphan-collection.
const (
	skewWarn      = "warn"
	skewEnforce   = "enforce"
	orphansOff    = "off"
	orphansReport = "report"
	orphansDelete = "delete"
)

// choice is a flag that takes one of a few values.
type choice struct {
	value string
	among []string
}

func (c *choice) String() string { return c.value }

// Type is what the help calls the value.
func (c *choice) Type() string { return strings.Join(c.among, "|") }

// Set takes one of the values.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.among, value) {
		return fmt.Errorf("use one of %s", strings.Join(c.among, ", "))
	}
	c.value = value
	return nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, nil
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (--kubeconfig, $KUBECONFIG, or a pod's ServiceAccount): %w", err)
	}
	return config, nil
}
