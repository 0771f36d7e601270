package localcluster

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Options say how to run a cluster. BinDir and Dir are required.
type Options struct {
	// BinDir holds the executables etcd, kube-apiserver, kube-controller-manager, kube-scheduler
	// and kwok.
	BinDir string
	// Dir is made if need be, and holds all that the cluster writes. It belongs to one cluster at a
	// time.
	Dir string
	// Log gets a line per step, and one for each component that ends by itself. Nil discards them.
	Log *slog.Logger
	// AuditLog makes the API server write a line for each write request to [Cluster.AuditLogPath],
	// with who made it.
	AuditLog bool
	// AuditBodies puts into each of those lines what was written, too: enough to write it once
	// more.
	AuditBodies bool
	// Fsync makes etcd survive the machine's crash, and slower. A crash of etcd alone loses nothing
	// either way.
	Fsync bool
	// Controllers are those that kube-controller-manager runs; nil means [DefaultControllers].
	Controllers []string
	// NodeGracePeriod is how long a Node may be silent before its Ready condition becomes Unknown;
	// 0 means [DefaultNodeGracePeriod]. It has to exceed the simulated kubelets' lease duration.
	NodeGracePeriod time.Duration
	// FastKubelets lets the user of the simulated kubelets register Nodes, as their fast mode
	// needs.
	FastKubelets bool
	// Endpoint is for machines that do not share this machine's loopback.
	Endpoint Endpoint
	// WithoutNodes leaves out what only Nodes and their pods need: the scheduler, kwok, and all but
	// [ManagementControllers].
	WithoutNodes bool
}

// DefaultNodeGracePeriod is what kube-controller-manager has by default, for leases of 40 s.
const DefaultNodeGracePeriod = 50 * time.Second

// DefaultControllers returns the controllers that kube-controller-manager runs when nothing else is
// asked for: those that machines, Nodes, the pods on them and TLS bootstrap depend on.
//
// The certificatesigningrequest-approving-controller is not among them. It approves for whom the
// right nodeclient, selfnodeclient or selfnodeserver is bound, and Millwright binds none of them:
// each approval here is Millwright's own.
func DefaultControllers() []string {
	return []string{
		"bootstrap-signer-controller",
		"certificatesigningrequest-cleaner-controller",
		"certificatesigningrequest-signing-controller",
		"daemonset-controller",
		"deployment-controller",
		"disruption-controller",            // Without it, every eviction under a PodDisruptionBudget is refused.
		"garbage-collector-controller",     // Without it, nothing owned ever goes.
		"namespace-controller",             // Without it, no namespace ever goes.
		"node-lifecycle-controller",        // Takes the taint off that each new Node is born with.
		"pod-garbage-collector-controller", // Removes the pods of Nodes that are gone.
		"replicaset-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller", // Without it, no pod is admitted.
		"serviceaccount-token-controller",
		"statefulset-controller",
		"taint-eviction-controller",
		"token-cleaner-controller",
	}
}

// ManagementControllers returns the controllers of a cluster without Nodes: those that namespaces,
// ServiceAccounts and owned objects depend on.
func ManagementControllers() []string {
	return []string{
		"garbage-collector-controller",
		"namespace-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
	}
}

// The names of the cluster's processes, for [Cluster.Process], in the order of their start.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// withDefaults fills in what is unset, and refuses what cannot work.
func (o Options) withDefaults() (Options, error) {
	if o.BinDir == "" || o.Dir == "" {
		return o, errors.New("BinDir and Dir are required")
	}
	for _, dir := range []*string{&o.BinDir, &o.Dir} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return o, fmt.Errorf("make path absolute: %w", err)
		}
		*dir = abs
	}
	for _, name := range o.components() {
		if _, err := os.Stat(filepath.Join(o.BinDir, name)); err != nil {
			return o, fmt.Errorf("find the control plane (`make build` builds it): %w", err)
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Controllers == nil && o.WithoutNodes {
		o.Controllers = ManagementControllers()
	}
	if o.Controllers == nil {
		o.Controllers = DefaultControllers()
	}
	if o.NodeGracePeriod == 0 {
		o.NodeGracePeriod = DefaultNodeGracePeriod
	}
	var err error
	o.Endpoint, err = o.Endpoint.withDefaults()
	return o, err
}

// components are the names of the processes that run, in the order of their start.
func (o Options) components() []string {
	names := []string{Etcd, APIServer, ControllerManager}
	if o.WithoutNodes {
		return names
	}
	return append(names, Scheduler, Kwok)
}
