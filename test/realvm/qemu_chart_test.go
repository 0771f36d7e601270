//go:build linux

package realvm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/test/tier"
	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

const (
	// release is the namespace that the chart is installed in.
	release = "installed"
	// chartVersion is that of the images that the Makefile builds for these tests.
	chartVersion = "v0.0.0-test"
	// remoteDriver is a driver of QEMU outside of the cluster, with VMs of its own.
	remoteDriver   = "vms"
	remoteState    = "vms"
	remotePort     = "9443"
	driverIdentity = "driver.test"
	coreIdentity   = "core.test"
)

// chartValues are for a Node without kube-proxy, the only one that has the images: pods reach the
// API server by its address. A driver is a sidecar, and another one is called by mTLS.
const chartValues = `
images: {tag: ` + chartVersion + `, pullPolicy: Never}
nodeSelector: {pool: infra}
manager:
  args: [--settled-interval=15s, --settle-period=10s, --leader-election-lease-duration=20s, --leader-election-renew-deadline=12s]
  env: [{name: KUBERNETES_SERVICE_HOST, value: %q}, {name: KUBERNETES_SERVICE_PORT, value: %q}]
drivers:
  openstack: {enabled: false}
  extra:
  - {name: fake, image: "localhost/millwright-driver-fake:` + chartVersion + `"}
  - {name: ` + remoteDriver + `, address: %q, identity: ` + driverIdentity + `, tlsSecret: core-tls}
`

// The images run on a real Node, under the shipped RBAC and as nobody in particular; the chart is
// upgraded, its leader killed, and it is uninstalled and installed again. A VM goes through all of
// it, and only its Machine's deletion ends it.
func TestQEMUTheChartIsInstalledOnANode(t *testing.T) {
	tier.Long(t, "it takes real VMs")
	shared.showTrouble(t)
	shared.mustKubectl(t, strings.ReplaceAll(machineDeployment("infra", newKubelet, 1, ""), "memory: 1Gi", "memory: 2Gi"), "apply", "-f", "-")
	node := shared.awaitRunning(t, "infra").Status.NodeRef.Name
	shared.importImages(t, node)
	shared.serveRemoteDriver(t)
	if err := shared.Process(stack.Manager).Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	values := shared.chartValues(t)
	t.Cleanup(func() { shared.goBackToTheProcess(t) })

	shared.helm(t, values, "install", "millwright", deployDir+"/charts/millwright", "--values=-", "--take-ownership", "--force-conflicts", "--set=replicas=1")
	shared.awaitManager(t)
	shared.mustKubectl(t, strings.ReplaceAll(machineDeployment("made", newKubelet, 1, ""), "cloudProvider: qemu", "cloudProvider: "+remoteDriver), "apply", "-f", "-")
	var uid string
	eventually(t, "a VM", func(context.Context) error {
		vms, err := os.ReadDir(filepath.Join(shared.dir, remoteState, "machines"))
		if err != nil || len(vms) != 1 {
			return fmt.Errorf("the VMs are %v (%w)", vms, err)
		}
		uid = vms[0].Name()
		return nil
	})
	// The manager is upgraded, to two pods that start at once, and its leader killed, while the VM
	// boots.
	shared.helm(t, values, "upgrade", "millwright", deployDir+"/charts/millwright", "--values=-", "--set=manager.verbosity=4")
	shared.awaitManager(t)
	shared.killLeader(t)
	same := func(after string) {
		t.Helper()
		if m := shared.awaitRunning(t, "made"); *m.Spec.MachineUID != uid {
			t.Errorf("%s the Machine is another one", after)
		}
		if vms, err := os.ReadDir(filepath.Join(shared.dir, remoteState, "machines")); err != nil || len(vms) != 1 || vms[0].Name() != uid {
			t.Errorf("%s the VMs are %v (%v), want that of %s alone", after, vms, err, uid)
		}
	}
	same("after an upgrade, and after its leader was killed,")
	shared.helm(t, "", "uninstall", "millwright", "--wait")
	same("after the chart was uninstalled")
	// One pod goes on as well as two.
	shared.helm(t, values, "install", "millwright", deployDir+"/charts/millwright", "--values=-", "--set=replicas=1")
	shared.awaitManager(t)
	same("after it was installed again")
	shared.mustKubectl(t, "", "delete", "machinedeployment", "made", "--timeout="+waitLimit.String())
	shared.mustKubectl(t, "", "wait", "machines", "--selector=pool=made", "--for=delete", "--timeout="+waitLimit.String())
	if vms, err := os.ReadDir(filepath.Join(shared.dir, remoteState, "machines")); err != nil || len(vms) > 0 {
		t.Errorf("after its Machine was deleted, the VMs are %v (%v), want none", vms, err)
	}
}

// importImages has containerd of a Node take the images of `make images`.
func (f *fixture) importImages(t *testing.T, node string) {
	t.Helper()
	images, err := filepath.Abs(filepath.Join(binDir, "test-release"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(bridge.Gateway, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(images)), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	command := fmt.Sprintf("chroot /host sh -ec 'cd /var; curl -sSf -o images.tar http://%s/images.tar; /usr/local/bin/ctr -n k8s.io images import --platform linux/amd64 images.tar; rm images.tar'", listener.Addr())
	f.mustKubectl(t, hand("import", node, command), "apply", "-f", "-")
	eventually(t, "the images to be imported", func(ctx context.Context) error {
		phase, err := f.kubectl(ctx, "", "get", "pod", "import", "-o", "jsonpath={.status.phase}")
		if err != nil || phase != string(corev1.PodSucceeded) {
			logs, _ := f.kubectl(ctx, "", "logs", "import")
			return fmt.Errorf("the pod is %s (%w): %s", phase, err, logs)
		}
		return nil
	})
	f.mustKubectl(t, "", "delete", "pod", "import", "--wait=false")
}

// serveRemoteDriver starts a driver of QEMU behind mTLS on the bridge, with VMs of its own.
func (f *fixture) serveRemoteDriver(t *testing.T) {
	t.Helper()
	authority, err := mtlstest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for _, identity := range []string{driverIdentity, coreIdentity} {
		folder := filepath.Join(f.dir, identity)
		if err := errors.Join(os.MkdirAll(folder, 0o700), authority.Issue(folder, identity, time.Hour, authority)); err != nil {
			t.Fatal(err)
		}
	}
	images, err := filepath.Abs(filepath.Join(binDir, stack.NodeImageDir))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(f.dir, "logs", "remote-driver.log"))
	if err != nil {
		t.Fatal(err)
	}
	driver := exec.Command(filepath.Join(commandDir, "millwright-driver-qemu"), "--name="+remoteDriver, "--endpoint=tcp://"+net.JoinHostPort(bridge.Gateway, remotePort),
		"--state-dir="+filepath.Join(f.dir, remoteState), "--image-dir="+images, "--bridge="+bridge.Name,
		"--bridge-addresses=10.77.0.100-10.77.0.120/24", "--bridge-gateway="+bridge.Gateway)
	driver.Env = append(os.Environ(), sdk.TLSFolderVariable+"="+filepath.Join(f.dir, driverIdentity), sdk.TLSClientVariable+"="+coreIdentity)
	driver.Stdout, driver.Stderr = log, log
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = driver.Process.Signal(os.Interrupt)
		_ = errors.Join(driver.Wait(), log.Close()) // what it has to say is in its log
		left, _ := filepath.Glob(filepath.Join(f.dir, remoteState, "machines", "*", "pid"))
		for _, file := range left { // of a test that has failed: VMs outlive their driver
			if text, err := os.ReadFile(file); err == nil {
				pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
				t.Logf("%s is ended: %v", filepath.Dir(file), syscall.Kill(pid, syscall.SIGKILL))
			}
		}
	})
}

// chartValues makes the chart's namespace with the manager's certificate, and returns the values.
func (f *fixture) chartValues(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(f.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var server *url.URL
	for _, c := range config.Clusters {
		if server, err = url.Parse(c.Server); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(f.dir, coreIdentity)
	f.mustKubectl(t, "", "create", "namespace", release)
	f.mustKubectl(t, "", "create", "secret", "generic", "core-tls", "--namespace="+release,
		"--from-file="+folder+"/ca.crt", "--from-file="+folder+"/tls.crt", "--from-file="+folder+"/tls.key")
	return fmt.Sprintf(chartValues, bridge.Gateway, server.Port(), "dns:///"+net.JoinHostPort(bridge.Gateway, remotePort))
}

// helm runs helm in the release's namespace.
func (f *fixture) helm(t *testing.T, values string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(binDir, "tools", "helm"), append(args, "--namespace="+release)...)
	command.Env = append(os.Environ(), "HOME="+f.dir, "KUBECONFIG="+f.Kubeconfig())
	command.Stdin = strings.NewReader(values)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("helm %s: %v: %s", args[0], err, out)
	}
}

// awaitManager waits until all replicas of the Deployment's template are Ready, and one leads.
func (f *fixture) awaitManager(t *testing.T) {
	t.Helper()
	eventually(t, "the manager's pods to be Ready", func(ctx context.Context) error {
		out, err := f.kubectl(ctx, "", "rollout", "status", "deployment/millwright-manager", "--namespace="+release, "--timeout=5s")
		if err != nil {
			pods, _ := f.kubectl(ctx, "", "get", "pods", "--namespace="+release, "-o", "wide")
			events, _ := f.kubectl(ctx, "", "get", "events", "--namespace="+release)
			return fmt.Errorf("%s: %w\n%s\n%s", out, err, pods, events)
		}
		return nil
	})
	f.awaitLeader(t, "")
}

// awaitLeader waits until a pod leads that is there, and is not this one. It returns its name.
func (f *fixture) awaitLeader(t *testing.T, not string) string {
	t.Helper()
	var leader string
	eventually(t, "a pod to lead", func(ctx context.Context) (err error) {
		if leader, err = f.kubectl(ctx, "", "get", "lease", "millwright-manager", "--namespace="+release, "-o", "jsonpath={.spec.holderIdentity}"); err != nil {
			return err
		}
		pod := &corev1.Pod{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: release, Name: leader}, pod); err != nil {
			return err
		}
		if leader == not || pod.DeletionTimestamp != nil {
			return fmt.Errorf("%s leads", leader)
		}
		return nil
	})
	return leader
}

// killLeader ends the leader's pod without notice, and waits for another one to lead.
func (f *fixture) killLeader(t *testing.T) {
	t.Helper()
	leader := f.awaitLeader(t, "")
	f.mustKubectl(t, "", "delete", "pod", leader, "--namespace="+release, "--force", "--grace-period=0")
	f.awaitLeader(t, leader)
}

// goBackToTheProcess has the stack's own manager go on, for the tests that follow: what the chart
// had taken over is as kustomize makes it again.
func (f *fixture) goBackToTheProcess(t *testing.T) {
	t.Helper()
	uninstall := exec.Command(filepath.Join(binDir, "tools", "helm"), "uninstall", "millwright", "--wait", "--ignore-not-found", "--namespace="+release)
	uninstall.Env = append(os.Environ(), "HOME="+f.dir, "KUBECONFIG="+f.Kubeconfig())
	if out, err := uninstall.CombinedOutput(); err != nil {
		t.Errorf("helm uninstall: %v: %s", err, out)
	}
	must := func(args ...string) {
		t.Helper()
		if _, err := f.kubectl(context.Background(), "", args...); err != nil { // the test's own context has ended
			t.Error(err)
		}
	}
	for _, folder := range []string{"crds", "rbac"} {
		must("apply", "--server-side", "--force-conflicts", "-k", filepath.Join(deployDir, folder))
	}
	if err := f.Process(stack.Manager).Start(); err != nil {
		t.Error(err)
	}
	must("delete", "machinedeployments", "--all", "--timeout="+waitLimit.String())
	must("wait", "machines", "--all", "--for=delete", "--timeout="+waitLimit.String())
}
