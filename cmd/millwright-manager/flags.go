package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/manager"
)

type settings struct {
	kubeconfig string
	verbosity  int
	options    manager.Options
}

func parse(args []string) (settings, error) {
	var s settings
	var drivers []string
	skew := skewPolicy(skewWarn)
	hostname, err := os.Hostname()
	if err != nil {
		return s, fmt.Errorf("read the host's name, the default of --leader-election-identity: %w", err)
	}
	o := &s.options
	flags := pflag.NewFlagSet("millwright-manager", pflag.ContinueOnError)
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "Kubeconfig of the cluster; empty: $KUBECONFIG, else the pod's ServiceAccount.")
	flags.IntVarP(&s.verbosity, "verbosity", "v", 0, "How much to log: 0 events, 4 decisions, 6 calls.")
	flags.StringArrayVar(&drivers, "driver", nil, "A driver to call, as NAME=unix:///PATH; NAME is the cloudProvider it serves. Repeat for several.")
	flags.StringVar(&o.ClusterID, "cluster-id", "", "What marks VMs as this cluster's; must never change. Empty: the uid of namespace kube-system.")
	flags.IntVar(&o.Workers, "workers", 16, "How many objects of each kind are reconciled at once.")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 2*time.Hour, "How long a drain may take where the Machine sets no nodeDrainTimeout.")
	flags.Var(&skew, "kubelet-skew", "What becomes of kubelets further behind the API server than Kubernetes supports: warn or enforce.")
	flags.DurationVar(&o.Deadlines.Identity, "deadline-identity", 0, "Deadline of handshake calls to drivers (default 5s).")
	flags.DurationVar(&o.Deadlines.Status, "deadline-status", 0, "Deadline of GetMachineStatus (default 30s).")
	flags.DurationVar(&o.Deadlines.Mutation, "deadline-mutation", 0, "Deadline of CreateMachine and DeleteMachine (default 30s).")
	flags.DurationVar(&o.Deadlines.ListPage, "deadline-list-page", 0, "Deadline of one page of ListMachines (default 60s).")
	flags.BoolVar(&o.LeaderElection.Enabled, "leader-elect", true, "Let only one of several managers work.")
	flags.StringVar(&o.LeaderElection.Namespace, "leader-election-namespace", "millwright-system", "Namespace of the leader's Lease.")
	flags.StringVar(&o.LeaderElection.Identity, "leader-election-identity", hostname, "Name of this manager in the Lease. Two that run at once must differ.")
	flags.StringVar(&o.HealthAddress, "health-bind-address", "127.0.0.1:8081", "Where /healthz and /readyz are served; 0 switches them off.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "Where /metrics is served, by TLS and to whom RBAC allows it; 0 switches it off.")
	flags.StringVar(&o.ProfilingAddress, "profiling-bind-address", "", "Where Go's profiles are served (/debug/pprof), on a loopback address only; empty switches it off.")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: everything is a flag, see --help", flags.Arg(0))
	}
	o.EnforceSkew = skew == skewEnforce
	for _, text := range drivers {
		target, err := driver.ParseTarget(text)
		if err != nil {
			return s, fmt.Errorf("--driver=%s: %w", text, err)
		}
		o.Drivers = append(o.Drivers, target)
	}
	return s, nil
}

// skewPolicy is the value of --kubelet-skew.
type skewPolicy string

const (
	skewWarn    = "warn"
	skewEnforce = "enforce"
)

func (p *skewPolicy) String() string { return string(*p) }

// Type is what the help calls the value.
func (p *skewPolicy) Type() string { return skewWarn + "|" + skewEnforce }

// Set takes one of the two values.
func (p *skewPolicy) Set(value string) error {
	if value != skewWarn && value != skewEnforce {
		return fmt.Errorf("use %s or %s", skewWarn, skewEnforce)
	}
	*p = skewPolicy(value)
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
