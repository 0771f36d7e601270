package stack

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/localcluster/supervisor"
)

// Options say what to run. BinDir, DeployDir and Dir are required.
type Options struct {
	// BinDir holds the control plane's executables.
	BinDir string
	// CommandDir holds Millwright's own executables; BinDir if empty.
	CommandDir string
	// DeployDir is the repository's deploy folder: CRDs and RBAC come from there.
	DeployDir string
	// Dir holds all that is written. Sockets lie in it, so its path has to be short.
	Dir string
	// Log gets a line per step.
	Log *slog.Logger
	// AuditLog makes the API server note each write and who made it.
	AuditLog bool
	// AuditBodies makes it note what was written, too.
	AuditBodies bool
	// Provider is the test cloud; nil: the first of [Providers].
	Provider Provider
	// Driver is the name of the driver's executable; empty: the cloud's own driver.
	Driver string
	// CloudArgs, KubeletArgs and ManagerArgs are added to the command lines of the test cloud, the
	// simulated kubelets and the manager. Without a test cloud its driver gets the first.
	CloudArgs, KubeletArgs, ManagerArgs []string
	// NodeGracePeriod is how long a Node may be silent before it counts as lost; 0: the control
	// plane's default.
	NodeGracePeriod time.Duration
	// KeepCloud has the cloud go on with what an earlier stack's had in the same Dir, as where a
	// cluster is restored from a backup.
	KeepCloud bool
	// FastKubelets has simulated kubelets register Nodes without a certificate: for benchmarks, and
	// where the cluster that made the VMs is gone.
	FastKubelets bool
	// Endpoint is for machines that do not share this machine's loopback, as VMs. Without a Host it
	// is the Provider's.
	Endpoint localcluster.Endpoint
	// Layout says where the Nodes are; empty: [OneCluster].
	Layout Layout
	// Fsync makes etcd write to the disk what it acknowledges.
	Fsync bool
	// Detour, if set, is told each address at which the manager would reach something else, and
	// returns the one that the manager is given instead: of localcluster.APIServer and, if Layout
	// is TwoClusters, WorkloadAPIServer, as host:port, and of Driver, as unix:///path.
	Detour func(to, address string) (string, error)
	// Ended, if set, is told of each process that ended by itself, before the stack does about it
	// what it does. The processes of a workload cluster have names of their own: see [InWorkload].
	Ended func(*supervisor.ExitError)
	// ReviveControlPlane has the control plane's processes, too, started again when they end by
	// themselves.
	ReviveControlPlane bool
}

// A socket's path has to fit into sockaddr_un (108 bytes on Linux).
const maxSocketPath = 100

func (o Options) withDefaults() (Options, error) {
	if o.CommandDir == "" {
		o.CommandDir = o.BinDir
	}
	if o.Provider == nil {
		o.Provider = Providers()[0]
	}
	if o.Layout == "" {
		o.Layout = OneCluster
	}
	if !slices.Contains(Layouts(), o.Layout) {
		return o, fmt.Errorf("layout %q: choose one of %q", o.Layout, Layouts())
	}
	if o.Endpoint.Host == "" {
		o.Endpoint = o.Provider.endpoint()
	}
	if o.Detour == nil {
		o.Detour = func(_, address string) (string, error) { return address, nil }
	}
	if o.Ended == nil {
		o.Ended = func(*supervisor.ExitError) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, dir := range []*string{&o.BinDir, &o.CommandDir, &o.DeployDir, &o.Dir} {
		if *dir == "" {
			return o, fmt.Errorf("BinDir, DeployDir and Dir are required")
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return o, fmt.Errorf("make path absolute: %w", err)
		}
		*dir = abs
	}
	if n := len(o.socket("backend")); n > maxSocketPath {
		return o, fmt.Errorf("directory %s: its path is too long for a unix socket in it (%d bytes, at most %d): choose a shorter one",
			o.Dir, n, maxSocketPath)
	}
	if _, err := os.Stat(filepath.Join(o.DeployDir, "crds")); err != nil {
		return o, fmt.Errorf("find the manifests to install: %w", err)
	}
	return o, nil
}

func (o Options) socket(name string) string { return filepath.Join(o.Dir, name+".sock") }

func (o Options) endpoint(name string) string { return "unix://" + o.socket(name) }
