package controllertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/ownership"
)

var server *rest.Config

// Run runs the tests of a package with an API server that holds the project's kinds, and returns
// the exit code.
func Run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	_ = os.Getenv("MILLWRIGHT_INPUTS") // so that Go runs the test again when they change: tools/inputs.sh
	root, err := repository()
	if err != nil {
		fmt.Fprintln(os.Stderr, "find the repository:", err)
		return 1
	}
	bin := filepath.Join(root, "bin")
	if _, err := os.Stat(filepath.Join(bin, "kube-apiserver")); err != nil {
		fmt.Fprintln(os.Stderr, "there is no API server to test with: run `make build`:", err)
		return 1
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    bin,
		CRDDirectoryPaths:        []string{filepath.Join(root, "deploy", "crds")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
		// It ends open watches first, which takes a busy machine its time.
		ControlPlaneStopTimeout: 2 * time.Minute,
	}
	// They keep the API server from asking for a default route, which a build machine may lack.
	env.ControlPlane.GetAPIServer().Configure().
		Set("advertise-address", "127.0.0.1").
		Set("endpoint-reconciler-type", "none").
		Set("enable-bootstrap-token-auth", "true")
	started, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", errors.Join(err, env.Stop()))
		return 1
	}
	started.QPS = -1
	server = started
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return 1
	}
	return code
}

// repository returns the folder of go.work, which the working directory lies in: a test runs in its
// package's folder. The path of a source file would not do, since -trimpath shortens it.
func repository() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no go.work above %s", here)
		}
	}
}

// Cluster is a namespace of a test's own, seen by its user.
type Cluster struct {
	client.WithWatch
	Namespace string
	// Others are further namespaces that controllers see.
	Others []string
	scheme *apiruntime.Scheme
}

// New makes a namespace.
func New(t *testing.T) *Cluster {
	t.Helper()
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, authorizationv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme,
		rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(server, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &Cluster{WithWatch: c, Namespace: ns.Name, scheme: scheme}
}

// As returns a client with the credentials that change gives it, instead of the user's.
func (c *Cluster) As(t *testing.T, change func(*rest.Config)) client.Client {
	t.Helper()
	config := rest.CopyConfig(server)
	change(config)
	as, err := client.New(config, client.Options{Scheme: c.scheme})
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// Manage runs controllers on the namespace until the test ends or stop is called. Once they
// have stopped, stop returns. Manage puts funcs between them and the API server.
func (c *Cluster) Manage(t *testing.T, funcs interceptor.Funcs, add ...func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	namespaces := map[string]cache.Config{c.Namespace: {}}
	for _, other := range c.Others {
		namespaces[other] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme:     c.scheme,
		Logger:     logr.Discard(),
		Cache:      cache.Options{DefaultNamespaces: namespaces},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			o.FieldOwner = "millwright"
			inner, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(inner, funcs), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func() error{
		func() error { return ownership.AddIndexes(t.Context(), mgr.GetCache()) },
		func() error { return coexistence.AddIndex(t.Context(), mgr.GetFieldIndexer()) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range add {
		if err := a(mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// tick lies between two looks. patience is how long Eventually waits. It is long for the sake of
// slow machines: a test that passes does not wait.
const (
	tick     = 20 * time.Millisecond
	patience = 3 * time.Minute
)

// Eventually waits until check returns no problem.
func (c *Cluster) Eventually(t *testing.T, check func() (problem string)) {
	t.Helper()
	var problem string
	if err := wait.PollUntilContextTimeout(t.Context(), tick, patience, true, func(context.Context) (bool, error) {
		problem = check()
		return problem == "", nil
	}); err != nil {
		t.Fatalf("still, after %s: %s", patience, problem)
	}
}

// Stays fails the test if check returns a problem now, half-way or when the duration is over.
func (c *Cluster) Stays(t *testing.T, duration time.Duration, check func() (problem string)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), max(tick, duration/2), duration, true, func(context.Context) (bool, error) {
		if problem := check(); problem != "" {
			return false, errors.New(problem)
		}
		return false, nil
	})
	if err != nil && !wait.Interrupted(err) {
		t.Fatal(err)
	}
}

// Patch changes an object as its user does.
func Patch[T client.Object](t *testing.T, c *Cluster, obj T, change func(T)) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	change(obj)
	if err := c.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// Machines returns those of the namespace, in the order of their names.
func (c *Cluster) Machines(t *testing.T) []clusterv1alpha1.Machine {
	t.Helper()
	machines := &clusterv1alpha1.MachineList{}
	if err := c.List(t.Context(), machines, client.InNamespace(c.Namespace)); err != nil {
		t.Fatal(err)
	}
	return machines.Items
}
