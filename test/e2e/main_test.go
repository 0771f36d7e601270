// Package e2e tests Millwright as its users meet it: whole processes on a real control plane, the
// manager under the shipped RBAC, kubectl as the user's hand. The id in a test's name is that of
// the behaviour it shows.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	services "github.com/millwright-dev/millwright/test/openstack/deployment"
	"github.com/millwright-dev/millwright/test/tier"
)

const (
	binDir    = "../../bin"
	deployDir = "../../deploy"
)

// controlPlaneDir holds the control plane's executables. The variable names a folder with those of
// another version of Kubernetes.
var controlPlaneDir = cmp.Or(os.Getenv("MILLWRIGHT_CONTROL_PLANE"), binDir)

// commandDir holds Millwright's own executables. What those with the race detector race is found in
// their logs at the end.
const commandDir = "../../" + tier.Commands

// onFake are the stacks of the tests that need no other.
var onFake = newLane(2, startFixture)

// fixture is a stack and the ways into it.
type fixture struct {
	*stack.Stack
	dir    string
	client client.WithWatch
	// workload is for the cluster of the Nodes and their pods: client, where there is only one.
	workload client.WithWatch
	// remote is the address of the driver on TCP.
	remote string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// controller-runtime complains, at length, of a client that is made late without a logger.
	log.SetLogger(logr.Discard())
	// Tests wait for their lanes: see lane.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, l := range []*lane{onFake, onOpenStack, onTwoClusters} {
		l.end()
	}
	if isBroken.Load() {
		return max(code, 1)
	}
	return code
}

// end stops the stack, and removes what it has written unless something is wrong. It returns the
// exit code.
func (f *fixture) end(code int) int {
	if err := f.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the cluster:", err)
		code = 1
	}
	if err := findRaces(f.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of all processes are in", f.dir)
		return code
	}
	_ = os.RemoveAll(f.dir)
	return 0
}

// endWith stops the stack of one test. What it has written is kept where the test has failed.
func (f *fixture) endWith(t *testing.T) {
	code := 0
	if t.Failed() {
		code = 1
	}
	if f.end(code) != code {
		t.Error("the stack did not end well")
	}
}

func startFixture() (*fixture, error) {
	// Sockets lie in it: its path has to be short.
	dir, err := os.MkdirTemp("", "mw-e2e-")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(otherKeyFile(dir), []byte(otherKey), 0o600); err != nil {
		return nil, err
	}
	options := stackOptions(dir)
	more, remoteAddress, err := moreDrivers(dir)
	if err != nil {
		return nil, err
	}
	options.ManagerArgs = append(options.ManagerArgs, more...)
	f, err := newFixture(options)
	if err != nil {
		return nil, err
	}
	f.remote = remoteAddress
	return f, nil
}

// newFixture starts a stack.
func newFixture(options stack.Options) (*fixture, error) {
	whole, err := stack.Start(context.Background(), options)
	if err != nil {
		return nil, err
	}
	f := &fixture{Stack: whole, dir: options.Dir}
	if f.client, err = newClient(whole.RESTConfig()); err != nil {
		return nil, err
	}
	f.workload = f.client
	if f.hasWorkload() {
		f.workload, err = newClient(whole.Workload().RESTConfig())
	}
	return f, err
}

// hasWorkload says whether the Nodes are in a cluster of their own.
func (f *fixture) hasWorkload() bool { return len(f.Clusters()) > 1 }

func stackOptions(dir string) stack.Options {
	return stack.Options{
		BinDir: controlPlaneDir, CommandDir: commandDir, DeployDir: deployDir, Dir: dir, AuditLog: true,
		Log:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		CloudArgs: []string{"--account=" + otherAccount + "=" + otherKeyFile(dir)},
		ManagerArgs: []string{
			"-v=4", "--settle-period=1s", "--settled-interval=3s", "--outdated-node-delay=5s", "--secret-recheck=3s",
			"--orphan-interval=" + scanInterval.String(),
			"--secret-namespaces=" + secretNamespace, "--allow-endpoint=" + allowedEndpoints,
		},
	}
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, certificatesv1.AddToScheme, storagev1.AddToScheme, clusterv1alpha1.AddToScheme,
		authenticationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// findRaces reads every process's log for what the race detector prints.
func findRaces(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := bytes.Index(text, []byte("WARNING: DATA RACE")); at >= 0 {
			return fmt.Errorf("a data race in %s:\n%s", filepath.Base(path), text[at:min(at+6000, len(text))])
		}
	}
	return nil
}

// waitLimit bounds each wait of a test; nothing takes as long unless it is broken.
var waitLimit = patience()

// patience is longer where real services are asked.
func patience() time.Duration {
	if os.Getenv(services.Variable) != "" {
		return 20 * time.Minute
	}
	return 2 * time.Minute
}

// lookInterval is how long a wait pauses before it looks again. A long wait looks less often, up to
// longestInterval: each look takes time from the processes under test.
const (
	lookInterval    = 100 * time.Millisecond
	longestInterval = 500 * time.Millisecond
)

// eventually asks until check returns nil; after waitLimit it ends the test with check's last
// error.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	began := time.Now()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		pause := min(max(lookInterval, time.Since(began)/10), longestInterval)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s: %v", what, err)
		}
	}
}
