package machine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/discovery"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/observedtime"
	"github.com/millwright-dev/millwright/core/ownership"
)

const (
	binDir   = "../../../bin"
	crdsDir  = "../../../deploy/crds"
	provider = "sawmill"
	patience = 3 * time.Minute // more than lifecycle debounces anything, on a slow machine, too
)

// server is the API server of all tests; each has a namespace of its own. user is a test's hand.
var server struct {
	config *rest.Config
	scheme *runtime.Scheme
	user   client.Client
}

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	_ = os.Getenv("MILLWRIGHT_INPUTS") // so that Go runs the test again when they change: tools/inputs.sh
	env, err := startAPIServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return 1
	}
	return code
}

func startAPIServer() (*envtest.Environment, error) {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(binDir, name)); err != nil {
			return nil, fmt.Errorf("%w: run `make build` first", err)
		}
	}
	bin, err := filepath.Abs(binDir)
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    bin,
		CRDDirectoryPaths:        []string{crdsDir},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
		// It ends open watches first, which takes a busy machine its time.
		ControlPlaneStopTimeout: 2 * time.Minute,
	}
	// Without a default route the API server finds no address of its own.
	env.ControlPlane.GetAPIServer().Configure().
		Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	if server.config, err = env.Start(); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	server.config.QPS = -1
	server.scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, clusterv1alpha1.AddToScheme,
	} {
		if err := add(server.scheme); err != nil {
			return nil, err
		}
	}
	server.user, err = client.New(server.config, client.Options{Scheme: server.scheme})
	return env, err
}

// bench is a test's namespace, its cloud, and the processes around it.
type bench struct {
	*testing.T
	namespace string
	cloud     *cloud
	socket    string
	writes    *writes
	// outdatedDelay, nodeDebounce, startupTaints, critical and progress are those of Options.
	outdatedDelay time.Duration
	nodeDebounce  time.Duration
	startupTaints []corev1.Taint
	critical      []string
	progress      func(context.Context, *clusterv1alpha1.Machine) (lifecycle.JoinProgress, error)
	// secretsForbidden has the API server forbid core to read or write Secrets. The field refused
	// counts how often it did.
	secretsForbidden atomic.Bool
	refused          atomic.Int32
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "machine-"}}
	if err := server.user.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mw") // t.TempDir is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &bench{T: t, namespace: ns.Name, cloud: newCloud(), socket: filepath.Join(dir, "s"), writes: &writes{}}
}

// nodeCache is a client whose reads of Nodes come from an indexed cache, as the controller's do.
func (b *bench) nodeCache() client.Client {
	b.Helper()
	nodes, err := cluster.New(server.config, func(o *cluster.Options) { o.Scheme, o.Logger = server.scheme, logr.Discard() })
	b.check(err)
	b.check(errors.Join(addIndexes(nodes.GetFieldIndexer()), addNodeIndexes(nodes.GetFieldIndexer())))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = nodes.Start(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	if !nodes.GetCache().WaitForCacheSync(ctx) {
		b.Fatal("the cache does not come up")
	}
	return nodes.GetClient()
}

// startCore runs a manager with the controller until stop is called, at the latest at the test's
// end.
func (b *bench) startCore() (stop func()) {
	b.Helper()
	cfg := rest.CopyConfig(server.config)
	cfg.Wrap(b.writes.wrap)
	cfg.Wrap(b.forbidSecrets)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     server.scheme,
		Logger:     logr.Discard(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{FieldOwner: "millwright"},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         map[client.Object]cache.ByObject{&clusterv1alpha1.Machine{}: {Namespaces: map[string]cache.Config{b.namespace: {}}}},
		},
	})
	b.check(err)
	drivers, err := driver.New(driver.Config{
		ClusterUID: "cluster", Log: logr.Discard(), ReconnectDelay: 10 * time.Millisecond,
		Polling: poller.Polling{Interval: 50 * time.Millisecond, SettledInterval: 200 * time.Millisecond},
	}, []driver.Target{{Name: provider, Address: "unix://" + b.socket}})
	b.check(err)
	b.check(mgr.Add(drivers))
	b.check(ownership.AddIndexes(b.Context(), mgr.GetCache()))
	b.check(coexistence.AddIndex(b.Context(), mgr.GetFieldIndexer()))
	clocks, err := observedtime.Add(mgr, observedtime.Options{Drivers: drivers, Workload: mgr, Settle: time.Millisecond, Clock: clock.RealClock{}})
	b.check(err)
	b.check(Add(mgr, Options{
		Workload: mgr, Drivers: drivers, Observed: clocks, Bootstrap: configs(mgr.GetClient(), b.startupTaints), MaxConcurrentReconciles: 4,
		OutdatedNodeDelay: b.outdatedDelay, NodeDebounce: b.nodeDebounce,
		CriticalNamespaces: b.critical, JoinProgress: b.progress,
	}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			b.Errorf("manager: %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	b.Cleanup(stop)
	return stop
}

// forbidSecrets answers as an API server does whose authorizer has not read its roles yet.
func (b *bench) forbidSecrets(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !b.secretsForbidden.Load() || !strings.Contains(r.URL.Path, "/secrets") {
			return next.RoundTrip(r)
		}
		b.refused.Add(1)
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)),
		}, nil
	})
}

// configs need nothing of the API server: all is said by flags.
func configs(management client.Reader, startupTaints []corev1.Taint) BootstrapConfigs {
	return discovery.New(discovery.Options{
		Management: management, ConfigMaps: server.user, Workload: server.user, Clock: clock.RealClock{},
		Flags: bootstrap.Config{
			Server: "https://api.example.com:6443", CABundle: server.config.CAData, ClientCABundle: server.config.CAData,
			ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local",
			StartupTaints: startupTaints,
		},
	})
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// await asks until done, and says what it has at the deadline.
func (b *bench) await(what string, done func() (bool, any)) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, has := done()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s did not come about; there is %+v", what, has)
		case <-tick.C:
		}
	}
}

// writes counts what a client writes, by verb and resource.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
			w.mu.Lock()
			w.all = append(w.all, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// take returns what was counted since the last time.
func (w *writes) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
