package manager

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/specresolver"
	"github.com/millwright-dev/millwright/transport"
	"github.com/millwright-dev/millwright/transport/mtls"
)

// Options are the operator's choices. The zero value of a field means the default that stands
// beside it.
type Options struct {
	// Version is the manager's own, for people: traces and metrics show it.
	Version string
	// Drivers are the drivers to call, by the cloudProvider that they serve. None is allowed:
	// Machines then say in a condition that their driver is missing.
	Drivers []driver.Target
	// Deadlines of calls to drivers; a driver's own wishes win.
	Deadlines connection.Deadlines
	// SettledInterval lies between two looks at VMs of which nothing is expected. Default 60 s.
	SettledInterval time.Duration
	// ClusterID marks everything made in a cloud as this cluster's. Default: the uid of the
	// namespace kube-system, of the cluster of the Nodes where there is one. Changing it makes
	// every existing VM a stranger.
	ClusterID string
	// WorkloadKubeconfig is the file that says how to reach the cluster of the Nodes: see
	// workload.Config. Empty: it is the cluster of the Machines. NoNodes: machines have no Nodes.
	WorkloadKubeconfig string
	// Workers is how many objects of each kind are reconciled at once. Default 16.
	Workers int
	// DrainTimeout bounds a drain where the Machine sets no nodeDrainTimeout. Default 2 h.
	DrainTimeout time.Duration
	// NodeVolumeDetachTimeout is how long volumes of drained pods may be attached to the Node where
	// the Machine sets no nodeVolumeDetachTimeout; 0 for ever.
	NodeVolumeDetachTimeout time.Duration
	// MaxUnhealthy is how many of all Machines may be unhealthy, a number or a percentage: with
	// more no failed Machine is replaced. Default 33%.
	MaxUnhealthy string
	// NodeStartupTimeout is how long a VM may take to become a Ready Node where the Machine sets no
	// nodeStartupTimeout; 0 for ever.
	NodeStartupTimeout time.Duration
	// CriticalNamespaces are those of critical DaemonSets: see package daemonsets. A Machine is
	// Running once the pods of these run on its Node. Empty: nothing is waited for.
	CriticalNamespaces []string
	// Settle is for how long after this process began to lead, or the API server came back, no
	// timeout of a Machine runs. Default 2 min.
	Settle time.Duration
	// DefaultHealthCheckTimeout is for how long a Node may not be Ready until its Machine is
	// replaced, where no MachineHealthCheck selects the Machine and its VM runs. 0: for ever.
	DefaultHealthCheckTimeout time.Duration
	// NodeUnreachableAfter is for how long the kubelet of a Node that is drained must not
	// report for its pods not to be waited for. Time counts only while the API server answers
	// and other Nodes report. Default 5 min.
	NodeUnreachableAfter time.Duration
	// OutdatedNodeDelay is how long a rollout has to go on until it marks the Nodes that are still
	// to be replaced. Default 1 min.
	OutdatedNodeDelay time.Duration
	// SecretRecheck is how often a Secret is read that a Machine waits for. The bootstrap token of
	// a VM that has yet to join is read half as often. Default 30 s.
	SecretRecheck time.Duration
	// Nodes is what new machines are set up with where their Cluster does not say.
	Nodes bootstrap.Config
	// EnforceSkew refuses kubelets further behind the API server than Kubernetes supports, which
	// else only get a warning.
	EnforceSkew bool
	// SecretNamespaces are namespaces whose Secrets and ConfigMaps objects of every namespace may
	// refer to, besides their own.
	SecretNamespaces []string
	// Endpoints are the addresses that specs may name as a cloud's; see specresolver.Rules.
	// Required with SecretNamespaces.
	Endpoints []specresolver.EndpointPattern
	// WebhookAddress serves the webhook by TLS, with tls.crt and tls.key of WebhookCertDir. Empty
	// switches it off.
	WebhookAddress, WebhookCertDir string
	// Orphans says what becomes of VMs that belong to no Machine.
	Orphans Orphans
	// CredentialRetry is how long calls with credentials that the cloud refuses are held back,
	// unless these change. Default: 5 min.
	CredentialRetry time.Duration
	// CreateSettle is how long after a create of unknown outcome its VM may still appear, where a
	// driver does not declare that. Default: 5 min.
	CreateSettle time.Duration
	// ReadOnly makes the manager look on: it changes nothing, in the cluster or in a cloud, but the
	// condition Paused of the objects that people look at.
	ReadOnly bool
	// LeaderElection keeps all but one of several managers waiting.
	LeaderElection LeaderElection
	// HealthAddress serves /healthz and /readyz, MetricsAddress serves /metrics by TLS to whom RBAC
	// allows it. "0" switches either off.
	HealthAddress, MetricsAddress string
	// ProfilingAddress serves Go's profiles, to anybody who reaches it: it has to be a loopback
	// address. Default: none.
	ProfilingAddress string
	// TracingEndpoint is where spans of reconciles and of calls to drivers are sent: see
	// tracing.New. Empty: nowhere.
	TracingEndpoint string
}

// NoNodes is the WorkloadKubeconfig with which machines have no Nodes: they are Running once their
// VMs run.
const NoNodes = "none"

// Orphans says what becomes of VMs of this cluster that no Machine names: they are deleted, unless
// they are only reported, or not even looked for.
type Orphans struct {
	Off, ReportOnly bool
	// Interval lies between two scans, Age is how old a VM must be to be deleted. Defaults: 10 min
	// and 30 min.
	Interval, Age time.Duration
}

// LeaderElection says how managers agree on which one works.
type LeaderElection struct {
	Enabled bool
	// Namespace holds the Lease, and what the leader publishes of its drivers.
	Namespace string
	// Identity names this manager. Two that run at once must differ. One that is started again
	// after the old process ended should keep it, as a pod keeps its name. It then takes over
	// without waiting for the Lease to run out.
	Identity string
	// LeaseDuration is how long another manager waits for the leader's next renewal.
	// RenewDeadline is how long the leader tries to renew before it gives up and exits.
	// RetryPeriod lies between two tries. Defaults: 60 s, 40 s and 5 s. No call to a driver is
	// given longer than the Lease lasts.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// validate returns an error that names each flag that is wrong.
func (l LeaderElection) validate() error {
	var errs []error
	if l.Namespace == "" {
		errs = append(errs, errors.New("--leader-election-namespace: is required with --leader-elect; it holds the Lease"))
	}
	if l.Identity == "" {
		errs = append(errs, errors.New("--leader-election-identity: is required with --leader-elect; give the pod's name"))
	}
	if l.LeaseDuration <= l.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-election-lease-duration=%s: must be longer than --leader-election-renew-deadline=%s: "+
			"a leader has to give up before another one takes over", l.LeaseDuration, l.RenewDeadline))
	}
	if l.RenewDeadline <= l.RetryPeriod*12/10 {
		errs = append(errs, fmt.Errorf("--leader-election-renew-deadline=%s: must be longer than 1.2 times --leader-election-retry-period=%s",
			l.RenewDeadline, l.RetryPeriod))
	}
	// Calls need some of the Lease to be left when the next renewal is due.
	if l.LeaseDuration-l.RetryPeriod < shortestLease {
		errs = append(errs, fmt.Errorf("--leader-election-lease-duration=%s: must be at least %s longer than --leader-election-retry-period=%s, "+
			"or no call to a driver can be made", l.LeaseDuration, shortestLease, l.RetryPeriod))
	}
	return errors.Join(errs...)
}

// shortestLease is how much of a Lease must be left when it is renewed in time: what core/driver
// gives a call at least, and some to spare.
const shortestLease = 8 * time.Second

// fieldOwner is the one field manager of everything that core writes.
const fieldOwner = "millwright"

// withDefaults fills in what the controllers do not.
func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, 16)
	o.Settle = cmp.Or(o.Settle, 2*time.Minute)
	limits := health.DefaultLimits()
	o.MaxUnhealthy = cmp.Or(o.MaxUnhealthy, limits.MaxUnhealthy.String())
	l := &o.LeaderElection
	l.LeaseDuration = cmp.Or(l.LeaseDuration, DefaultLeaseDuration)
	l.RenewDeadline = cmp.Or(l.RenewDeadline, DefaultRenewDeadline)
	l.RetryPeriod = cmp.Or(l.RetryPeriod, DefaultRetryPeriod)
	return o
}

// validate names the flag that is wrong and how to mend it.
func (o Options) validate() error {
	var errs []error
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("--workers=%d: must be at least 1", o.Workers))
	}
	errs = append(errs, o.notNegative()...)
	if !allowance(o.MaxUnhealthy) {
		errs = append(errs, fmt.Errorf("--max-unhealthy=%s: must be a number of at least 1, or a percentage from 1%% to 100%%", o.MaxUnhealthy))
	}
	if o.WebhookAddress != "" && o.WebhookCertDir == "" {
		errs = append(errs, errors.New("--webhook-cert-dir: is required with --webhook-bind-address; it holds tls.crt and tls.key"))
	}
	errs = append(errs, o.validateSharing())
	if o.NodeStartupTimeout < 0 {
		errs = append(errs, fmt.Errorf("--node-startup-timeout=%s: must not be negative; 0 waits for ever", o.NodeStartupTimeout))
	}
	if o.LeaderElection.Enabled {
		errs = append(errs, o.LeaderElection.validate())
	}
	if o.ProfilingAddress != "" && !loopback(o.ProfilingAddress) {
		errs = append(errs, fmt.Errorf("--profiling-bind-address=%s: must be a loopback address such as 127.0.0.1:6060; profiles are "+
			"served to whoever asks", o.ProfilingAddress))
	}
	return errors.Join(errs...)
}

// validateSharing wants Secrets that everybody may refer to to be held to a list of addresses.
func (o Options) validateSharing() error {
	if slices.Contains(o.SecretNamespaces, specresolver.CopiesNamespace) {
		return fmt.Errorf("--secret-namespaces=%s: must not hold %s, where the manager keeps copies of all machines' credentials; name another namespace",
			strings.Join(o.SecretNamespaces, ","), specresolver.CopiesNamespace)
	}
	if len(o.SecretNamespaces) == 0 || len(o.Endpoints) > 0 {
		return nil
	}
	return fmt.Errorf("--secret-namespaces=%s: needs --allow-endpoint, the hosts that specs may name as a cloud's address; "+
		"else who may create a Machine anywhere can have Secrets of these namespaces sent to a host of his", strings.Join(o.SecretNamespaces, ","))
}

// certificates are the files of the certificates that the manager shows, by what for.
func (o Options) certificates() map[string]string {
	files := map[string]string{}
	if o.WebhookAddress != "" {
		files["webhook"] = mtls.CertificateFile(o.WebhookCertDir)
	}
	for _, d := range o.Drivers {
		if file := transport.CertificateFile(d.Address); file != "" {
			files["driver/"+d.Name] = file
		}
	}
	return files
}

// notNegative names each duration that is.
func (o Options) notNegative() []error {
	var errs []error
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"drain-timeout", o.DrainTimeout},
		{"node-volume-detach-timeout", o.NodeVolumeDetachTimeout},
		{"credential-retry", o.CredentialRetry},
		{"create-settle", o.CreateSettle},
		{"orphan-interval", o.Orphans.Interval},
		{"orphan-age", o.Orphans.Age},
		{"settled-interval", o.SettledInterval},
		{"settle-period", o.Settle},
		{"node-unreachable-after", o.NodeUnreachableAfter},
		{"default-health-check-timeout", o.DefaultHealthCheckTimeout},
		{"outdated-node-delay", o.OutdatedNodeDelay},
		{"secret-recheck", o.SecretRecheck},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("--%s=%s: must not be negative", d.flag, d.value))
		}
	}
	return errs
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// allowance says whether the text is a number of at least 1, or a percentage from 1% to 100%.
func allowance(text string) bool {
	most := intstr.Parse(text)
	of100, err := intstr.GetScaledValueFromIntOrPercent(&most, 100, false)
	return err == nil && of100 >= 1 && (most.Type == intstr.Int || of100 <= 100)
}
