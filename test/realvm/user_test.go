//go:build linux

package realvm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// newKubelet is the one that the image brings.
const newKubelet = "1.37.2"

// machineSpec is what Machines of these tests have in common, and Cluster where one is named.
func machineSpec(pool, kubelet, cluster string) string {
	spec := fmt.Sprintf(`{metadata: {labels: {pool: %s}}, versions: {kubelet: %s}, providerSpec: {value: {
  operatingSystem: ubuntu, cloudProvider: qemu, cloudProviderSpec: {
    image: node.qcow2, kernel: vmlinuz, initrd: initrd.img, kernelArguments: "root=/dev/vda rw console=ttyS0 ds=nocloud",
    cpus: 2, memory: 1Gi, network: {type: bridge}}}}`, pool, kubelet)
	if cluster != "" {
		spec += ", nodeStartupTimeout: 15m, clusterRef: {name: " + cluster + "}"
	}
	return spec + "}"
}

// machineDeployment is the manifest of one. An empty cluster leaves its Machines without a Cluster.
func machineDeployment(name, kubelet string, replicas int, cluster string) string {
	return fmt.Sprintf(`
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {pool: %[1]s}}
  template: {metadata: {labels: {pool: %[1]s}}, spec: %[3]s}
`, name, replicas, machineSpec(name, kubelet, cluster))
}

// machine is the manifest of a Machine by itself, of the Cluster of its name: nobody replaces it
// when it fails.
func machine(name, kubelet string) string {
	return fmt.Sprintf(`
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: %s, namespace: default}
spec: %s
`, name, machineSpec(name, kubelet, name))
}

// application is a Deployment of pods that say hello, each on one of a MachineDeployment's Nodes.
func application(name, pool string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {pool: %[2]s}
      terminationGracePeriodSeconds: 2
      containers:
      - name: hello
        image: localhost/busybox:1
        imagePullPolicy: Never
        command: [sh, -c, "echo hello from $(hostname); exec sleep infinity"]
`, name, pool, replicas)
}

// kubectl is the user's hand: it returns what the command prints.
func (f *fixture) kubectl(ctx context.Context, manifest string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(binDir, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+f.Kubeconfig())
	command.Stdin = strings.NewReader(manifest)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func (f *fixture) mustKubectl(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	out, err := f.kubectl(t.Context(), manifest, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// onlyMachine returns the Machine of a MachineDeployment, which has one.
func (f *fixture) onlyMachine(ctx context.Context, pool string) (*clusterv1alpha1.Machine, error) {
	machines := &clusterv1alpha1.MachineList{}
	if err := f.client.List(ctx, machines, client.MatchingLabels{"pool": pool}); err != nil {
		return nil, err
	}
	if len(machines.Items) != 1 {
		return nil, fmt.Errorf("%d Machines", len(machines.Items))
	}
	return &machines.Items[0], nil
}

// describe tells what a Machine says of itself.
func describe(m *clusterv1alpha1.Machine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "machine %s: %s", m.Name, m.Status.Phase)
	for _, c := range m.Status.Conditions {
		fmt.Fprintf(&b, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// bootstrapSecrets returns the tokens that there are.
func (f *fixture) bootstrapSecrets(ctx context.Context) ([]corev1.Secret, error) {
	secrets := &corev1.SecretList{}
	if err := f.client.List(ctx, secrets, client.InNamespace("kube-system")); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(secrets.Items, func(s corev1.Secret) bool { return s.Type != corev1.SecretTypeBootstrapToken }), nil
}

// processOf returns the process of a machine's VM.
func (f *fixture) processOf(uid string) (int, error) {
	text, err := os.ReadFile(filepath.Join(f.VMs(), uid, "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// requests returns the certificate requests of a Node: how each stands, by its signer.
func (f *fixture) requests(ctx context.Context) (map[string][]string, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := f.client.List(ctx, list); err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for _, r := range list.Items {
		state := "pending"
		for _, c := range r.Status.Conditions {
			state = strings.ToLower(string(c.Type))
		}
		if len(r.Status.Certificate) > 0 {
			state = "issued"
		}
		all[r.Spec.SignerName] = append(all[r.Spec.SignerName], state)
	}
	return all, nil
}
