//go:build linux

package realvm

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/tier"
)

// One VM's life, all of it real: it boots, joins with a certificate that core has approved, runs a
// pod that the scheduler put there, shows its logs, and goes without leaving anything behind.
func TestLIFE3_ARealVMBecomesANodeAndGoes(t *testing.T) {
	tier.Long(t, "it takes a real VM")
	shared.showTrouble(t)
	shared.mustKubectl(t, machineDeployment("vm", newKubelet, 1, ""), "apply", "-f", "-")
	shared.mustKubectl(t, application("hello", "vm", 1), "apply", "-f", "-")
	machine := shared.awaitRunning(t, "vm")
	checkNode(t, machine)
	checkJoin(t)
	checkPod(t, machine)
	shared.mustKubectl(t, "", "delete", "machinedeployment", "vm", "--wait=false")
	shared.awaitGone(t)
	checkDrained(t)
}

// awaitRunning returns a MachineDeployment's only Machine once it is Running.
func (f *fixture) awaitRunning(t *testing.T, pool string) *clusterv1alpha1.Machine {
	t.Helper()
	var machine *clusterv1alpha1.Machine
	guests := f.watchGuests()
	eventually(t, "the Machine to be Running", func(ctx context.Context) (err error) {
		if err := guests.stuck(time.Now()); err != nil {
			return err
		}
		if machine, err = f.onlyMachine(ctx, pool); err != nil {
			return err
		}
		if machine.Status.Phase != clusterv1alpha1.MachinePhaseRunning || machine.Status.NodeRef == nil {
			return fmt.Errorf("%s", describe(machine))
		}
		return nil
	})
	return machine
}

func checkNode(t *testing.T, machine *clusterv1alpha1.Machine) {
	t.Helper()
	node := &corev1.Node{}
	if err := shared.client.Get(t.Context(), client.ObjectKey{Name: machine.Status.NodeRef.Name}, node); err != nil {
		t.Fatal(err)
	}
	if got := node.Status.NodeInfo.KubeletVersion; got != "v"+newKubelet {
		t.Errorf("the Node runs kubelet %s, want v%s", got, newKubelet)
	}
	if !isReady(node) {
		t.Errorf("the Machine is Running, and its Node is not Ready: %v", node.Status.Conditions)
	}
	if node.Labels["pool"] != "vm" {
		t.Errorf("the Node has the labels %v, want pool=vm among them", node.Labels)
	}
}

// checkJoin looks at what the VM joined with: two certificates that core has approved, and a token
// that is no more.
func checkJoin(t *testing.T) {
	t.Helper()
	eventually(t, "both certificates to be issued", func(ctx context.Context) error {
		requests, err := shared.requests(ctx)
		if err != nil {
			return err
		}
		for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
			if !slices.Contains(requests[signer], "issued") {
				return fmt.Errorf("none of %s: %v", signer, requests)
			}
		}
		return nil
	})
	writes, err := audit.NewLog(shared.AuditLogPath()).Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		if w.Resource == "certificatesigningrequests/approval" && w.User != stack.ManagerUser {
			t.Errorf("%s has approved a certificate, want the manager alone to", w.User)
		}
	}
	if left, err := shared.bootstrapSecrets(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("the Node has joined, and %d tokens are left (%v)", len(left), err)
	}
}

// checkPod looks at the pod through the API server, which asks the kubelet in the VM.
func checkPod(t *testing.T, machine *clusterv1alpha1.Machine) {
	t.Helper()
	shared.mustKubectl(t, "", "wait", "--for=condition=Available", "--timeout=3m", "deployment/hello")
	if node := shared.mustKubectl(t, "", "get", "pods", "-l", "app=hello", "-o", "jsonpath={.items[*].spec.nodeName}"); node != machine.Status.NodeRef.Name {
		t.Errorf("the pod is on the Node %q, want %q", node, machine.Status.NodeRef.Name)
	}
	// The kubelet serves as soon as its certificate is there.
	eventually(t, "kubectl logs", func(ctx context.Context) error {
		logs, err := shared.kubectl(ctx, "", "logs", "deployment/hello")
		if err == nil && !strings.HasPrefix(logs, "hello from hello-") {
			err = fmt.Errorf("the pod's logs are %q", logs)
		}
		return err
	})
	if out := shared.mustKubectl(t, "", "exec", "deployment/hello", "--", "sh", "-c", "echo $((6 * 7))"); out != "42\n" {
		t.Errorf("kubectl exec printed %q, want 42", out)
	}
}

// awaitGone returns when nothing is left of any Machine.
func (f *fixture) awaitGone(t *testing.T) {
	t.Helper()
	eventually(t, "Machine, VM, Node, token and requests to be gone", func(ctx context.Context) error {
		machines := &clusterv1alpha1.MachineList{}
		nodes := &corev1.NodeList{}
		for _, list := range []client.ObjectList{machines, nodes} {
			if err := f.client.List(ctx, list); err != nil {
				return err
			}
		}
		tokens, err := f.bootstrapSecrets(ctx)
		if err != nil {
			return err
		}
		requests, err := f.requests(ctx)
		if err != nil {
			return err
		}
		// A VM's folder is named by a UUID. Nova has others there.
		vms, err := filepath.Glob(filepath.Join(f.consoles, "*-*-*-*-*"))
		if err != nil {
			return err
		}
		pending := 0
		for _, states := range requests {
			pending += len(slices.DeleteFunc(states, func(s string) bool { return s != "pending" }))
		}
		if left := len(machines.Items) + len(nodes.Items) + len(tokens) + len(vms) + pending; left > 0 {
			return fmt.Errorf("%d Machines, %d Nodes, %d VMs, %d tokens, %d pending requests", len(machines.Items), len(nodes.Items), len(vms), len(tokens), pending)
		}
		return nil
	})
}

// checkDrained looks for the pod's eviction in the audit log.
func checkDrained(t *testing.T) {
	t.Helper()
	writes, err := audit.NewLog(shared.AuditLogPath()).Next()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(writes, func(w audit.Request) bool { return w.Resource == "pods/eviction" && w.User == stack.ManagerUser }) {
		t.Error("the Node was not drained: no pod was evicted")
	}
}
