package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// Who has installed the release before this one with kustomize takes the chart over it, and no
// machine is replaced. The manager then works under the chart's rights.
func TestOPS5_TheChartTakesOverWhatKustomizeInstalled(t *testing.T) {
	tier.Long(t, "it takes the release before this one")
	t.Parallel()
	u := newUserWithFastKubelets(t)
	u.beginAtPrevious()
	u.onManagement("apply", "--server-side", "--force-conflicts", "-k", filepath.Join(previousDeploy(t), "fake"))
	u.apply(deployment("kept", 5, nil))
	u.awaitRunning(5)
	before := u.uids()

	values := `
replicas: 1
drivers: {openstack: {enabled: false}, fake: {enabled: true}}`
	helm := exec.CommandContext(t.Context(), filepath.Join(binDir, "tools", "helm"), "upgrade", "--install", "millwright", filepath.Join(deployDir, "charts/millwright"),
		"--namespace=millwright-system", "--take-ownership", "--force-conflicts", "--set=images.tag=v0.1.0", "--values=-")
	helm.Env = append(os.Environ(), "KUBECONFIG="+u.Kubeconfig())
	helm.Stdin = strings.NewReader(values)
	if out, err := helm.CombinedOutput(); err != nil {
		t.Fatalf("helm upgrade --install: %v\n%s", err, out)
	}
	u.roll(stack.Driver, commandDir, 0)
	u.roll(stack.Manager, commandDir, 0)
	u.kubectl("patch", "machinedeployment", "kept", "--type=merge", "-p", `{"spec":{"replicas":6,"template":{"metadata":{"labels":{"example.com/after":"chart"}}}}}`)
	u.awaitRunning(6)
	u.eachNode("the label to arrive", func(_ *clusterv1alpha1.Machine, node *corev1.Node) error {
		if got := node.Labels["example.com/after"]; got != "chart" {
			return fmt.Errorf("the label is %q", got)
		}
		return nil
	})
	u.checkKept(before)
	u.checkOneVMEach()
	if sets := strings.Fields(u.kubectl("get", "machinesets", "--output=name")); len(sets) != 1 {
		t.Errorf("there are the sets %v", sets)
	}
	u.deleteTokens()
}

// onManagement runs kubectl outside of the user's namespace.
func (u *user) onManagement(args ...string) {
	u.t.Helper()
	there := *u
	there.namespace = ""
	there.kubectl(args...)
}

// previousDeploy returns the folder deploy of the release before this one.
func previousDeploy(t *testing.T) string {
	t.Helper()
	commit, err := os.ReadFile(previousCommit)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c",
		`git -C "$0" archive "$1" deploy | tar --extract --directory "$2"`, filepath.Dir(deployDir), strings.TrimSpace(string(commit)), dir)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack deploy of the release before this one: %v\n%s", err, out)
	}
	return filepath.Join(dir, "deploy")
}
