package simkubelet

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/millwright-dev/millwright/localcluster"
)

// cluster is one for all tests of the package: each has VMs with names of its own. It declares a
// Node Unknown after 6 s.
var cluster *localcluster.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	// A fuzz target needs no cluster, least of all one for each process that it runs in.
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "simkubelet")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin := os.Getenv("KUBEBUILDER_ASSETS")
	if bin == "" {
		bin = filepath.Join("..", "..", "bin")
	}
	cluster, err = localcluster.Start(context.Background(), localcluster.Options{
		BinDir: bin, Dir: dir, NodeGracePeriod: 6 * time.Second, FastKubelets: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			panic(err)
		}
	}()
	if err := bindBootstrappers(context.Background(), kubernetes.NewForConfigOrDie(cluster.RESTConfig())); err != nil {
		panic(err)
	}
	return m.Run()
}

// admin returns a client that may do anything; the fleets may not.
func admin(t *testing.T) kubernetes.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(cluster.RESTConfig())
}

// logBuffer collects what a fleet says.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) says(parts ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.buf.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return nil
		}
	}
	return fmt.Errorf("no line of the log has %q", parts)
}

func (b *logBuffer) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

// runFleet plays c's kubelets as their own user until the test ends or the returned function is
// called.
func runFleet(t *testing.T, c *cloud, lease time.Duration) (log *logBuffer, stop func()) {
	t.Helper()
	return runFleetThrough(t, c, lease, func(way http.RoundTripper) http.RoundTripper { return way })
}

// runFleetThrough does so with its way to the API server wrapped.
func runFleetThrough(
	t *testing.T, c *cloud, lease time.Duration, wrap func(http.RoundTripper) http.RoundTripper,
) (log *logBuffer, stop func()) {
	t.Helper()
	return runFleetWith(t, c, Options{LeaseDuration: lease, Fast: true}, wrap)
}

func runFleetWith(t *testing.T, c *cloud, o Options, wrap func(http.RoundTripper) http.RoundTripper) (log *logBuffer, stop func()) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.SimKubeletKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Wrap(wrap)
	client := kubernetes.NewForConfigOrDie(config)
	backend, stopServing := c.serve(t)
	log = &logBuffer{}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	fleet := New(client, backend, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		fleet.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		stopServing()
	})
	t.Cleanup(func() {
		stop()
		deleteNodesOf(t, c)
		if t.Failed() {
			t.Log(log.buf.String())
		}
	})
	return log, stop
}

// deleteNodesOf leaves the cluster to other tests, and to another run of this one.
func deleteNodesOf(t *testing.T, c *cloud) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	nodes, err := admin(t).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if !c.knows(node.Spec.ProviderID) {
			continue
		}
		if err := admin(t).CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
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

// waitForNode waits until a Node's Ready condition has the status and kwok plays its pods or does
// not, and returns it.
func waitForNode(t *testing.T, name string, ready corev1.ConditionStatus, played bool) *corev1.Node {
	t.Helper()
	var node *corev1.Node
	eventually(t, "Node "+name, func() error {
		var err error
		if node, err = admin(t).CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		_, labelled := node.Labels[localcluster.KubeletLabel]
		if got := readyStatus(node); got != ready || labelled != played {
			return fmt.Errorf("ready is %q, played %v; want %q, %v", got, labelled, ready, played)
		}
		return nil
	})
	return node
}

func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

func deleteNode(t *testing.T, name string) {
	t.Helper()
	if err := admin(t).CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// notFound returns nil when the Node does not exist.
func notFound(t *testing.T, name string) error {
	t.Helper()
	_, err := admin(t).CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("the Node is there"))
}

// gate lets no request through while it is shut.
type gate struct {
	way  http.RoundTripper
	shut *atomic.Bool
}

func (g gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if g.shut.Load() {
		return nil, errors.New("the test lets nothing through")
	}
	return g.way.RoundTrip(request)
}

func TestReadyAgainAfterItWasUnknown(t *testing.T) {
	t.Parallel()
	c := newCloud()
	shut := &atomic.Bool{}
	runFleetThrough(t, c, 4*time.Second, func(way http.RoundTripper) http.RoundTripper { return gate{way: way, shut: shut} })
	c.set("late-1", running, userData("--hostname-override=late-1"))
	waitForNode(t, "late-1", corev1.ConditionTrue, true)
	shut.Store(true)
	waitForNode(t, "late-1", corev1.ConditionUnknown, true)
	shut.Store(false)
	waitForNode(t, "late-1", corev1.ConditionTrue, true)
	// node-lifecycle may go by an older Lease than there is: it says so of a Node whose Lease is
	// renewed in time.
	const unknown = `{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}`
	if _, err := admin(t).CoreV1().Nodes().Patch(t.Context(), "late-1", types.StrategicMergePatchType, []byte(unknown), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	waitForNode(t, "late-1", corev1.ConditionTrue, true)
}

func TestRunningVMBecomesANode(t *testing.T) {
	t.Parallel()
	c := newCloud()
	runFleet(t, c, 4*time.Second)
	c.set("reg-1", building, userData("--hostname-override=reg-1 --node-labels=team=a,node.kubernetes.io/x=y --register-with-taints=k=v:NoExecute"))
	c.set("reg-1", running, "")
	node := waitForNode(t, "reg-1", corev1.ConditionTrue, true)

	for key, want := range map[string]string{
		"team": "a", "node.kubernetes.io/x": "y", corev1.LabelHostname: "reg-1", corev1.LabelOSStable: "linux",
		corev1.LabelTopologyZone: "here-1", corev1.LabelTopologyRegion: "here", corev1.LabelInstanceTypeStable: "small",
	} {
		if got := node.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if node.Spec.ProviderID != "test:///reg-1" {
		t.Errorf("provider id %q", node.Spec.ProviderID)
	}
	want := []corev1.NodeAddress{{Type: "Hostname", Address: "reg-1"}, {Type: "InternalIP", Address: "192.0.2.1"}}
	if diff := cmp.Diff(want, node.Status.Addresses); diff != "" {
		t.Errorf("addresses, -want +got:\n%s", diff)
	}
	if node.Status.NodeInfo.KubeletVersion != defaultKubeletVersion || node.Status.Allocatable.Pods().Value() != 110 {
		t.Errorf("kubelet %s, pods %s", node.Status.NodeInfo.KubeletVersion, node.Status.Allocatable.Pods())
	}
	eventually(t, "only the VM's own taint is left", func() error {
		node, err := admin(t).CoreV1().Nodes().Get(t.Context(), "reg-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "k" {
			return fmt.Errorf("taints %v", node.Spec.Taints)
		}
		return nil
	})
	eventually(t, "a Lease that goes with the Node", func() error {
		lease, err := admin(t).CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "reg-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.OwnerReferences[0].UID != node.UID {
			return fmt.Errorf("owned by %v", lease.OwnerReferences)
		}
		return nil
	})
}

func TestVMWithoutAKubeletIsNoNode(t *testing.T) {
	t.Parallel()
	c := newCloud()
	log, _ := runFleet(t, c, time.Minute)
	c.set("refused", running, userData("--node-labels=kubernetes.io/role=worker"))
	c.set("foreign", running, "#!/bin/sh\n")
	c.set("unbuilt", building, userData(""))
	c.set("broken", failed, userData(""))
	c.set("good", running, userData("--hostname-override=good"))
	waitForNode(t, "good", corev1.ConditionTrue, true)
	eventually(t, "the refusal is logged", func() error { return log.says("refuses to start", "vm=refused", "kubernetes.io/role") })
	nodes, err := admin(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		switch node.Spec.ProviderID {
		case "test:///refused", "test:///foreign", "test:///unbuilt", "test:///broken":
			t.Errorf("there is a Node of %s", node.Spec.ProviderID)
		}
	}
}

func TestNodeFollowsItsVM(t *testing.T) {
	t.Parallel()
	c := newCloud()
	log, _ := runFleet(t, c, 2*time.Second)
	c.set("life", running, userData("--hostname-override=life"))
	first := waitForNode(t, "life", corev1.ConditionTrue, true)

	c.set("life", stopped, "")
	waitForNode(t, "life", corev1.ConditionFalse, false)
	c.set("life", running, "")
	if again := waitForNode(t, "life", corev1.ConditionTrue, true); again.UID != first.UID {
		t.Error("the VM came back as another Node")
	}

	deleteNode(t, "life")
	eventually(t, "the kubelet notices", func() error { return log.says("Node was deleted", "node=life") })
	if err := notFound(t, "life"); err != nil {
		t.Errorf("a kubelet registered without a start: %v", err)
	}
	log.clear()
	c.set("life", stopped, "")
	eventually(t, "the kubelet stops", func() error { return log.says("Kubelet stopped", "node=life") })
	c.set("life", running, "")
	if again := waitForNode(t, "life", corev1.ConditionTrue, true); again.UID == first.UID {
		t.Error("the Node did not go")
	}

	c.set("life", deleting, "")
	c.set("life", gone, "")
	waitForNode(t, "life", corev1.ConditionTrue, false) // Without power, nobody says that it is not ready.
	waitForNode(t, "life", corev1.ConditionUnknown, false)
}

func TestSilentVMBecomesUnknownAndComesBack(t *testing.T) {
	t.Parallel()
	c := newCloud()
	runFleet(t, c, 2*time.Second)
	c.set("silent", running, userData("--hostname-override=silent"))
	c.set("alive", running, userData("--hostname-override=alive"))
	waitForNode(t, "alive", corev1.ConditionTrue, true)
	waitForNode(t, "silent", corev1.ConditionTrue, true)
	c.set("silent", failed, "")
	waitForNode(t, "silent", corev1.ConditionUnknown, false)
	waitForNode(t, "alive", corev1.ConditionTrue, true) // It renews its Lease.
	c.set("silent", running, "")
	waitForNode(t, "silent", corev1.ConditionTrue, true)
}

func TestNameOfAnotherVMsNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCloud()
	log, _ := runFleet(t, c, time.Minute)
	c.set("first", running, userData("--hostname-override=shared"))
	first := waitForNode(t, "shared", corev1.ConditionTrue, true)
	c.set("second", running, userData("--hostname-override=shared"))
	eventually(t, "the second VM waits", func() error { return log.says("vm=second", "another VM's", "test:///first") })

	deleteNode(t, "shared")
	eventually(t, "the second VM registers", func() error {
		node, err := admin(t).CoreV1().Nodes().Get(t.Context(), "shared", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.UID == first.UID || node.Spec.ProviderID != "test:///second" {
			return errors.New("it is the first VM's")
		}
		return nil
	})
	c.set("first", gone, "") // Must not touch what is the second one's now.
	eventually(t, "the first kubelet stops", func() error { return log.says("Kubelet stopped", "vm=first") })
	waitForNode(t, "shared", corev1.ConditionTrue, true)
}

func TestNewProcessTakesOver(t *testing.T) {
	t.Parallel()
	c := newCloud()
	_, stop := runFleet(t, c, time.Minute)
	names := []string{"over-up", "over-stopped", "over-gone", "over-lost", "over-deleted"}
	for _, name := range names {
		c.set(name, running, userData("--hostname-override="+name))
	}
	before := map[string]*corev1.Node{}
	for _, name := range names {
		before[name] = waitForNode(t, name, corev1.ConditionTrue, true)
	}
	eventually(t, "the controllers are done with it", func() error {
		node, err := admin(t).CoreV1().Nodes().Get(t.Context(), "over-up", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if before["over-up"] = node; len(node.Spec.Taints) > 0 {
			return fmt.Errorf("taints %v", node.Spec.Taints)
		}
		return nil
	})
	stop()
	c.set("over-stopped", stopped, "")
	c.set("over-gone", gone, "")
	deleteNode(t, "over-deleted")

	log, _ := runFleet(t, c, time.Minute)
	eventually(t, "the running one is taken over", func() error { return log.says("Kubelet runs", "node=over-up") })
	waitForNode(t, "over-stopped", corev1.ConditionFalse, false)
	waitForNode(t, "over-gone", corev1.ConditionTrue, false)
	waitForNode(t, "over-deleted", corev1.ConditionTrue, true)
	after := waitForNode(t, "over-up", corev1.ConditionTrue, true)
	if after.ResourceVersion != before["over-up"].ResourceVersion {
		t.Error("taking over wrote the Node")
	}
	if log.says("Attempt failed") == nil || log.says("Kubelet failed") == nil {
		t.Error("something failed")
	}
}

func TestCloudThatComesBackAsAnother(t *testing.T) {
	t.Parallel()
	c := newCloud()
	log, _ := runFleet(t, c, time.Minute)
	c.set("reset-other", running, "")
	c.set("reset-kept", running, userData("--hostname-override=reset-kept"))
	c.set("reset-lost", running, userData("--hostname-override=reset-lost"))
	waitForNode(t, "reset-kept", corev1.ConditionTrue, true)
	waitForNode(t, "reset-lost", corev1.ConditionTrue, true)

	c.reset() // Its revisions begin anew, and it has never heard of the lost one.
	c.set("reset-kept", running, userData("--hostname-override=reset-kept"))
	c.failNext()
	eventually(t, "the cloud is lost sight of", func() error { return log.says("Lost sight of the cloud") })
	waitForNode(t, "reset-lost", corev1.ConditionTrue, false)
	waitForNode(t, "reset-kept", corev1.ConditionTrue, true)
}

func TestManyKubeletsRunAtOnce(t *testing.T) {
	t.Parallel()
	c := newCloud()
	const vms = 500
	runFleet(t, c, time.Minute)
	started := time.Now()
	for i := range vms {
		name := fmt.Sprintf("many-%d", i)
		c.set(name, running, userData("--hostname-override="+name+" --node-labels=many=true"))
	}
	eventually(t, "all are Nodes", func() error {
		nodes, err := admin(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "many=true"})
		if err != nil {
			return err
		}
		if len(nodes.Items) != vms {
			return fmt.Errorf("%d Nodes", len(nodes.Items))
		}
		return nil
	})
	t.Logf("%d Nodes took %s", vms, time.Since(started).Round(time.Millisecond))
}
