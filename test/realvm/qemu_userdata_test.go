//go:build linux

package realvm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// What operators and users bring of their own: a template, an address, and whole user data. QEMU's
// own network hands out 10.0.2.15 by DHCP.
const brought = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: millwright-credentials, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: millwright-credentials}
subjects: [{kind: ServiceAccount, name: millwright-manager, namespace: millwright-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: templates, namespace: default}
data:
  ubuntu: |
    files:
    - path: /opt/bin/show-template
      permissions: "0755"
      format: sh
      content: |
        #!/bin/sh
        echo template: machine {{ .machine.name }} of {{ .machine.labels.pool }}
        grep nameserver /run/systemd/resolve/resolv.conf
    units:
    - name: show-template.service
      enabled: true
      content: |
        [Unit]
        After=millwright-bootstrap.service
        [Service]
        Type=oneshot
        ExecStart=/opt/bin/show-template
        StandardOutput=journal+console
        [Install]
        WantedBy=multi-user.target
---
apiVersion: v1
kind: Secret
metadata: {name: own, namespace: default}
stringData:
  value: |
    #cloud-config
    runcmd:
    - [sh, -c, "echo own data: <<MACHINE_NAME>> $(printf %s <<BOOTSTRAP_TOKEN>> | sha256sum) >/dev/ttyS0"]
---
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: fixed, namespace: default, labels: {pool: brought}, annotations: {cluster.k8s.io/bootstrap-templates: templates}}
spec:
  versions: {kubelet: ` + newKubelet + `}
  providerSpec:
    value:
      operatingSystem: ubuntu
      network: {cidr: 10.0.2.77/24, gateway: 10.0.2.2, dns: {servers: [10.0.2.3, 192.0.2.53]}, ipFamily: IPv4}
      cloudProvider: qemu
      cloudProviderSpec:
        {image: node.qcow2, kernel: vmlinuz, initrd: initrd.img, kernelArguments: "root=/dev/vda rw console=ttyS0 ds=nocloud", cpus: 2, memory: 1Gi}
---
apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata: {name: own, namespace: default}
spec:
  versions: {kubelet: ` + newKubelet + `}
  bootstrap: {dataSecretName: own}
  providerSpec:
    value:
      operatingSystem: ubuntu
      cloudProvider: qemu
      cloudProviderSpec:
        {image: node.qcow2, kernel: vmlinuz, initrd: initrd.img, kernelArguments: "root=/dev/vda rw console=ttyS0 ds=nocloud", cpus: 1, memory: 512Mi}
`

// A machine with a fixed address and an operator's template becomes a Node of that address; one
// with user data of its own boots with just that, its name and its token filled in.
func TestQEMUMachinesBootWithWhatTheirUsersBring(t *testing.T) {
	tier.Long(t, "it takes real VMs")
	shared.showTrouble(t)
	shared.mustKubectl(t, brought, "apply", "-f", "-")
	shared.awaitOwnData(t, "own")
	shared.mustKubectl(t, "", "delete", "machine", "own", "--wait=false")
	shared.awaitAddress(t, "fixed", "10.0.2.77")
	shared.awaitConsole(t, "fixed", "template: machine fixed of brought", "nameserver 10.0.2.3", "nameserver 192.0.2.53")
	shared.mustKubectl(t, "", "delete", "machine", "fixed", "--wait=false")
	shared.awaitGone(t)
}

// awaitOwnData returns once the machine's console shows its name and the digest of its token.
func (f *fixture) awaitOwnData(t *testing.T, name string) {
	t.Helper()
	var digest string
	meddleWithToken(t, name, func(_ context.Context, secret *corev1.Secret) error {
		digest = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s.%s", secret.Data["token-id"], secret.Data["token-secret"])))
		return nil
	})
	f.awaitConsole(t, name, "own data: "+name+" "+digest)
}

// awaitConsole returns once the machine's console has shown all of these.
func (f *fixture) awaitConsole(t *testing.T, name string, wants ...string) {
	t.Helper()
	eventually(t, "the console to show "+wants[0], func(ctx context.Context) error {
		m := &clusterv1alpha1.Machine{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, m); err != nil {
			return err
		}
		console := f.console(m)
		for _, want := range wants {
			if !strings.Contains(console, want) {
				return fmt.Errorf("%q is not on it: %s", want, describe(m))
			}
		}
		return nil
	})
}

// awaitAddress returns once the machine is Running and its Node has that address alone.
func (f *fixture) awaitAddress(t *testing.T, name, address string) {
	t.Helper()
	eventually(t, "a Node with the address "+address, func(ctx context.Context) error {
		m := &clusterv1alpha1.Machine{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, m); err != nil {
			return err
		}
		if m.Status.Phase != clusterv1alpha1.MachinePhaseRunning {
			return errors.New(describe(m))
		}
		node := &corev1.Node{}
		if err := f.client.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
			return err
		}
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP && a.Address != address {
				return fmt.Errorf("the Node's addresses are %v", node.Status.Addresses)
			}
		}
		return nil
	})
}
