package localcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// starterDir, when set, makes the test binary the starter of a cluster in that directory: it waits
// to be killed.
const starterDir = "LOCALCLUSTER_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(starterDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	c, err := Start(context.Background(), Options{BinDir: binDir(), Dir: dir})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(c.Kubeconfig() + "\n")
	select {}
}

func binDir() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	return filepath.Join("..", "bin")
}

func startCluster(t *testing.T, options Options) *Cluster {
	t.Helper()
	options.BinDir = binDir()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	options.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// inDir returns the processes whose command line names dir, as every component's does.
func inDir(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), dir) {
			found = append(found, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

// eventually polls until done returns nil, and fails with what it returned last.
func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); <-ticker.C {
		if last = done(); last == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, last)
}

func TestKilledStarterLeavesNothing(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} { // The second run starts in what the first one left.
		starter := exec.Command(os.Args[0])
		starter.Env = append(os.Environ(), starterDir+"="+dir, "TMPDIR="+temp)
		starter.Stderr = t.Output()
		out, err := starter.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := starter.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if n := len(inDir(t, dir)); n != 5 {
			t.Errorf("%d processes of the cluster run, want 5: %v", n, inDir(t, dir))
		}
		if err := starter.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = starter.Wait() // It was killed, and says so.
		eventually(t, "all processes go with their starter", func() error {
			if left := inDir(t, dir); len(left) > 0 {
				return errors.New(strings.Join(left, "\n"))
			}
			return nil
		})
	}
}

func TestTwoSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long; the tests of two clusters start two as well")
	}
	first := startCluster(t, Options{})
	second := startCluster(t, Options{})
	if first.RESTConfig().Host == second.RESTConfig().Host {
		t.Fatalf("both at %s", first.RESTConfig().Host)
	}
	if _, err := Start(t.Context(), Options{BinDir: binDir(), Dir: first.layout.options.Dir}); err == nil {
		t.Error("a second cluster started in the directory of a running one")
	}
	for _, c := range []*Cluster{first, second} {
		if err := c.WaitReady(t.Context()); err != nil {
			t.Error(err)
		}
	}
	dir := first.layout.options.Dir
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := inDir(t, dir); len(left) > 0 {
		t.Errorf("left after Stop: %v", left)
	}
	if err := second.WaitReady(t.Context()); err != nil {
		t.Errorf("the other cluster suffered: %v", err)
	}
}

func TestClusterWithoutNodes(t *testing.T) {
	c := startCluster(t, Options{WithoutNodes: true})
	if n := len(inDir(t, c.layout.options.Dir)); n != 3 {
		t.Errorf("%d processes of the cluster run, want 3: %v", n, inDir(t, c.layout.options.Dir))
	}
	for _, name := range []string{Scheduler, Kwok} {
		if c.Process(name) != nil {
			t.Errorf("%s runs", name)
		}
	}
	namespaces := kubernetes.NewForConfigOrDie(c.RESTConfig()).CoreV1().Namespaces()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	if _, err := namespaces.Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace goes", func() error {
		if _, err := namespaces.Get(t.Context(), ns.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there still: %w", err)
		}
		return nil
	})
}

func TestSecrets(t *testing.T) {
	c := startCluster(t, Options{AuditLog: true})
	t.Run("files are for the owner only", func(t *testing.T) { filesAreForTheOwnerOnly(t, c) })
	t.Run("a ServiceAccount has its rights only", func(t *testing.T) { serviceAccountHasItsRightsOnly(t, c) })
}

func filesAreForTheOwnerOnly(t *testing.T, c *Cluster) {
	t.Helper()
	err := filepath.WalkDir(c.layout.options.Dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // etcd removes files while we look.
		}
		if err != nil || path == c.layout.options.Dir {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func serviceAccountHasItsRightsOnly(t *testing.T, c *Cluster) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.KubeconfigForServiceAccount(t.Context(), "default", "default", path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("an account without rights lists Nodes: %v", err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	if _, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
		t.Errorf("the account is not known: %v", err)
	}
	writers := auditedWriters(t, c.AuditLogPath())
	if writers["system:serviceaccount:default:default"] == 0 || writers["localcluster:admin"] == 0 {
		t.Errorf("the audit log does not say who writes: %v", writers)
	}
	if err := c.KubeconfigForServiceAccount(t.Context(), "default", "nobody", path); !apierrors.IsNotFound(err) {
		t.Errorf("kubeconfig of an account that does not exist: %v", err)
	}
}

// auditedWriters counts the writes in an audit log by user.
func auditedWriters(t *testing.T, path string) map[string]int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	counts := map[string]int{}
	for decoder := json.NewDecoder(f); decoder.More(); {
		var event struct {
			Verb string
			User struct{ Username string }
		}
		if err := decoder.Decode(&event); err != nil {
			t.Fatal(err)
		}
		switch event.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			counts[event.User.Username]++
		default:
			t.Fatalf("the audit log holds a %s", event.Verb)
		}
	}
	return counts
}

func TestComponentsStartAgainWithTheirData(t *testing.T) {
	c := startCluster(t, Options{})
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{APIServer, Etcd} {
		if err := c.Process(name).Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.WaitReady(t.Context()); err == nil {
		t.Error("ready without etcd and an API server")
	}
	for _, name := range []string{Etcd, APIServer} {
		if err := c.Process(name).Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestStartTellsWhatIsMissing(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    string
	}{
		"nothing built":            {options: Options{BinDir: t.TempDir(), Dir: t.TempDir()}, want: "make build"},
		"no directory":             {options: Options{BinDir: binDir()}, want: "required"},
		"a foreign bind address":   {options: Options{BinDir: binDir(), Dir: t.TempDir(), Endpoint: Endpoint{BindAddress: "192.0.2.1"}}, want: "BindAddress"},
		"an unknown controller":    {options: Options{BinDir: binDir(), Dir: t.TempDir(), Controllers: []string{"nonsense"}}, want: "nonsense"},
		"a directory that is none": {options: Options{BinDir: binDir(), Dir: os.Args[0]}, want: "not a directory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, err := Start(t.Context(), c.options)
			if err == nil {
				t.Error(errors.Join(errors.New("it started"), cluster.Stop()))
				return
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
			if c.options.Dir != "" && c.options.Dir != os.Args[0] && len(inDir(t, c.options.Dir)) > 0 {
				t.Errorf("left running: %v", inDir(t, c.options.Dir))
			}
		})
	}
}
