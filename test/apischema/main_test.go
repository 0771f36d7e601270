// Package apischema tests the CustomResourceDefinitions in deploy/crds as users
// meet them: a real kube-apiserver holds them, and the real kubectl talks to it.
package apischema

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	binDir  = "../../bin"
	crdsDir = "../../deploy/crds"
)

// shared is the API server of all tests of this package. Each test has a
// namespace of its own in it.
var shared *apiServer

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	server, err := startAPIServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared = server
	code := m.Run()
	if err := server.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return 1
	}
	return code
}

// apiServer is a running kube-apiserver that holds the CRDs.
type apiServer struct {
	env        *envtest.Environment
	client     client.Client
	kubectlBin string
	home       string
}

func startAPIServer() (*apiServer, error) {
	bin, err := filepath.Abs(binDir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w: run `make build` first", err)
		}
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    bin,
		CRDDirectoryPaths:        []string{crdsDir},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
		// It ends open watches first, which takes a busy machine its time.
		ControlPlaneStopTimeout: 2 * time.Minute,
	}
	// A machine without a default route has no address to advertise.
	env.ControlPlane.GetAPIServer().Configure().
		Set("advertise-address", "127.0.0.1").
		Set("endpoint-reconciler-type", "none")
	if _, err := env.Start(); err != nil {
		return nil, fmt.Errorf("start the API server: %w", errors.Join(err, env.Stop()))
	}
	server := &apiServer{env: env, kubectlBin: filepath.Join(bin, "kubectl")}
	if err := server.connect(); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", errors.Join(err, server.stop()))
	}
	return server, nil
}

func (s *apiServer) connect() error {
	home, err := os.MkdirTemp("", "apischema")
	if err != nil {
		return err
	}
	s.home = home
	if err := os.WriteFile(filepath.Join(home, "kubeconfig"), s.env.KubeConfig, 0o600); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	s.env.Config.QPS = -1
	s.client, err = client.New(s.env.Config, client.Options{Scheme: scheme})
	return err
}

func (s *apiServer) stop() error {
	if err := os.RemoveAll(s.home); err != nil {
		return err
	}
	return s.env.Stop()
}

// user is somebody with a namespace, a kubectl and nothing else.
type user struct {
	t         *testing.T
	server    *apiServer
	namespace string
}

var unfitForNames = regexp.MustCompile(`[^a-z0-9]+`)

// newUser gives the test a namespace of its own.
func newUser(t *testing.T) *user {
	t.Helper()
	prefix := strings.Trim(unfitForNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	if len(prefix) > 40 {
		prefix = strings.Trim(prefix[:40], "-")
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	if err := shared.client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return &user{t: t, server: shared, namespace: namespace.Name}
}

// in returns the same user for a test within the test.
func (u *user) in(t *testing.T) *user {
	t.Helper()
	return &user{t: t, server: u.server, namespace: u.namespace}
}

// try runs kubectl in the user's namespace with the manifest as its standard
// input, and returns both outputs and how it ended.
func (u *user) try(manifest string, args ...string) (stdout, stderr string, err error) {
	return u.run(u.server.kubectlBin, manifest, append([]string{"--namespace", u.namespace}, args...)...)
}

// run runs a program that reads the user's kubeconfig.
func (u *user) run(program, input string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{
		"HOME=" + u.server.home,
		"KUBECONFIG=" + filepath.Join(u.server.home, "kubeconfig"),
	}
	cmd.Stdin = strings.NewReader(input)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// do is try for what must succeed.
func (u *user) do(manifest string, args ...string) string {
	u.t.Helper()
	stdout, stderr, err := u.try(manifest, args...)
	if err != nil {
		u.t.Fatalf("kubectl %s: %v\n%s%s\nmanifest:\n%s", strings.Join(args, " "), err, stdout, stderr, manifest)
	}
	return stdout
}

// cleanUp deletes what the manifest names, for tests that share a namespace. It
// outlives the test's own context.
func (u *user) cleanUp(manifest string) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		u.t.Error(err)
		return
	}
	object.SetResourceVersion("")
	if err := u.server.client.Delete(context.Background(), object); err != nil {
		u.t.Errorf("clean up: %v", err)
	}
}
