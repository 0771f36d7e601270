//go:build linux

package realvm

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/realvm/guest"
	"github.com/millwright-dev/millwright/test/tier"
)

const (
	binDir     = "../../bin"
	commandDir = "../../" + tier.Commands // Millwright's own executables
	deployDir  = "../../deploy"
)

// bridge is in the network namespace of the tests: nobody else sees it.
var bridge = stack.Bridge{Name: "nodes", Addresses: "10.77.0.10-10.77.0.99/24", Gateway: "10.77.0.1"}

// shared is the stack of all tests, which run one after the other.
var shared *fixture

// fixture is a stack and the ways into it.
type fixture struct {
	*stack.Stack
	client client.WithWatch
	dir    string
	// consoles has a folder for each VM, with its console.log.
	consoles string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run()) // each test is left to `make test-long`
	}
	if err := enterNetwork(); err != nil {
		fmt.Fprintln(os.Stderr, "test/realvm:", err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

// inside is set in the network namespace.
const inside = "MILLWRIGHT_REALVM_INSIDE"

// enterNetwork has this process begin anew in a network namespace of its own, and makes a bridge
// there. All of it goes with the last process in the namespace.
func enterNetwork() error {
	if os.Getenv(inside) != "" {
		return makeNetwork()
	}
	if os.Geteuid() != 0 {
		return errors.New("VMs on a bridge need root, for a network namespace and taps: run the tests as root")
	}
	for _, program := range []string{"qemu-system-x86_64", "qemu-img", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: apt-get install qemu-system-x86 qemu-utils iproute2", err)
		}
	}
	runtime.LockOSThread() // the thread that is in the namespace executes what follows
	namespaces := syscall.CLONE_NEWNET
	if openStackDir() != "" {
		namespaces |= syscall.CLONE_NEWNS
	}
	if err := syscall.Unshare(namespaces); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	return syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), inside+"=1"))
}

func makeNetwork() error {
	steps := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", bridge.Name, "type", "bridge"},
		{"ip", "address", "add", bridge.Gateway + "/24", "dev", bridge.Name},
		{"ip", "link", "set", bridge.Name, "up"},
	}
	if openStackDir() != "" {
		steps = openStackNetwork
	}
	for _, args := range steps {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	return nil
}

func run(m *testing.M) int {
	// controller-runtime complains, at length, of a client that is made late without a logger.
	log.SetLogger(logr.Discard())
	started, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the cluster that the tests share:", err)
		return 1
	}
	shared = started
	code := m.Run()
	if err := errors.Join(shared.Stop(), shared.findRaces()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "logs of all processes, and consoles of VMs that were not deleted, are in", shared.dir)
		return code
	}
	_ = os.RemoveAll(shared.dir)
	return 0
}

func start() (*fixture, error) {
	// Sockets lie in it: its path has to be short.
	dir, err := os.MkdirTemp("", "mw-vm-")
	if err != nil {
		return nil, err
	}
	provider, err := chooseProvider()
	if err != nil {
		return nil, err
	}
	whole, err := stack.Start(context.Background(), stack.Options{
		BinDir: binDir, CommandDir: commandDir, DeployDir: deployDir, Dir: dir, AuditLog: true, Provider: provider,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		// A minute until a killed VM is noticed would be a minute for each test, and so on. The
		// machines of a test are the whole fleet.
		ManagerArgs: []string{"-v=4", "--settled-interval=15s", "--settle-period=10s", "--node-unreachable-after=30s", "--max-unhealthy=100%"},
	})
	if err != nil {
		return nil, err
	}
	f := &fixture{Stack: whole, dir: dir, consoles: whole.VMs()}
	if cloud := openStackDir(); cloud != "" {
		f.consoles = filepath.Join(cloud, "nova", "instances")
	}
	if f.client, err = newClient(whole.Kubeconfig()); err != nil {
		return nil, errors.Join(err, whole.Stop())
	}
	return f, nil
}

func newClient(kubeconfig string) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := clusterv1alpha1.AddToScheme(clientscheme.Scheme); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: clientscheme.Scheme})
}

// findRaces reads every process's log for what the race detector prints.
func (f *fixture) findRaces() error {
	logs, err := filepath.Glob(filepath.Join(f.dir, "logs", "*.log"))
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

// A VM without KVM on a busy machine takes a few minutes; nothing takes as long as waitLimit unless
// it is broken.
const (
	waitLimit    = 12 * time.Minute
	lookInterval = time.Second
)

// eventually asks until check returns nil. After waitLimit it ends the test with check's last
// error, and at once with one that wraps guest.ErrStuck.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			t.Logf("%s: after %s", what, time.Since(started).Round(time.Second))
			return
		}
		if errors.Is(err, guest.ErrStuck) {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s: %v", what, err)
		}
	}
}
