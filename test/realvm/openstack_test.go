//go:build linux

package realvm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// openStackDir is the folder for real services of OpenStack whose servers boot, as up.sh in
// test/openstack brings them up with OPENSTACK_COMPUTE=libvirt; empty: the tests run VMs with the
// QEMU driver.
func openStackDir() string { return os.Getenv("MILLWRIGHT_OPENSTACK_BOOT") }

// openStackGateway is this machine on the network metakube-mmxfcmgjkx, whose subnet and gateway
// test/openstack/world.json names.
const openStackGateway = "192.168.16.1"

// openStackNetwork makes the interface that Neutron puts on that network's bridge, and connects
// this machine with it. Neutron and libvirt read in /sys which interfaces there are: it has to be
// that of this network namespace.
var openStackNetwork = [][]string{
	{"mount", "--make-rprivate", "/"},
	{"mount", "-t", "sysfs", "sysfs", "/sys"},
	{"ip", "link", "set", "lo", "up"},
	{"ip", "link", "add", "phys0", "type", "veth", "peer", "name", "host0"},
	{"ip", "address", "add", openStackGateway + "/20", "dev", "host0"},
	{"ip", "link", "set", "phys0", "up"},
	{"ip", "link", "set", "host0", "up"},
}

// chooseProvider brings OpenStack up where the tests are about it: in this network namespace.
func chooseProvider() (stack.Provider, error) {
	dir := openStackDir()
	if dir == "" {
		return stack.QEMUOnBridge(bridge), nil
	}
	up := exec.Command("../openstack/up.sh")
	up.Stdout, up.Stderr = os.Stderr, os.Stderr
	if err := up.Run(); err != nil {
		return nil, fmt.Errorf("bring OpenStack up: %w", err)
	}
	return stack.OpenStackVMs(filepath.Join(dir, "environment.json"), openStackGateway), nil
}

// onMetaKube is the MachineDeployment of MetaKube's users of today, scaled to zero. Their subnet
// and server group have other ids here, and the image brings another kubelet. The label pool is
// what the tests choose their Machines and Nodes by.
func onMetaKube(t *testing.T) string {
	t.Helper()
	manifest, err := os.ReadFile("../apischema/testdata/seeds/metakube-2024.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(
		"        group: nodes\n    spec:\n", "        group: nodes\n        pool: vm\n    spec:\n      metadata: {labels: {pool: vm}}\n",
		"replicas: 2", "replicas: 0", "kubelet: 1.30.3", "kubelet: "+newKubelet,
		"2969ae04-a429-4c1b-83e3-2f76fc3a342a", openStack(t, "subnet", "show", "metakube-mmxfcmgjkx", "-c", "id"),
		"fe9dcd44-f08a-492a-9e64-4e38e1d51573", openStack(t, "server", "group", "list", "-c", "ID"),
	).Replace(string(manifest))
}

// openStack is the user's hand in his project: it returns what OpenStack's client prints.
func openStack(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "openstack", append(args, "-f", "value")...)
	command.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+filepath.Join(openStackDir(), "clouds.yaml"), "OS_CLOUD=demo")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("openstack %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// A MachineDeployment of MetaKube's users becomes a server of the real Nova, which boots, reads its
// configuration from the disk that Nova has made of its user data, and joins. Scaled to zero,
// nothing is left.
func TestOpenStackServerBecomesANodeAndGoes(t *testing.T) {
	tier.Long(t, "it takes real OpenStack services")
	if openStackDir() == "" {
		t.Skip("MILLWRIGHT_OPENSTACK_BOOT is not set: see make test-openstack-boot")
	}
	shared.showTrouble(t)
	shared.mustKubectl(t, onMetaKube(t), "apply", "-f", "-")
	shared.mustKubectl(t, application("hello", "vm", 1), "apply", "-f", "-")
	shared.mustKubectl(t, "", "--namespace=kube-system", "scale", "machinedeployment", "nodes", "--replicas=1")
	machine := shared.awaitRunning(t, "vm")
	checkNode(t, machine)
	checkJoin(t)
	checkPod(t, machine)
	checkConsole(t, machine)
	shared.mustKubectl(t, "", "--namespace=kube-system", "scale", "machinedeployment", "nodes", "--replicas=0")
	shared.awaitGone(t)
	checkProject(t)
	checkDrained(t)
}

// checkConsole looks for where cloud-init has found the user data.
func checkConsole(t *testing.T, m *clusterv1alpha1.Machine) {
	t.Helper()
	const source = "Datasource DataSourceConfigDrive"
	eventually(t, "the console to say "+source, func(context.Context) error {
		text, err := os.ReadFile(filepath.Join(shared.consoles, path.Base(*m.Spec.ProviderID), "console.log"))
		if err == nil && !strings.Contains(string(text), source) {
			err = fmt.Errorf("it has %d bytes without it", len(text))
		}
		return err
	})
}

// checkProject fails the test if the project has anything of a Machine's. Ports of routers stay.
func checkProject(t *testing.T) {
	t.Helper()
	if left := openStack(t, "server", "list", "-c", "Name"); left != "" {
		t.Errorf("servers are left: %s", left)
	}
	if left := openStack(t, "port", "list", "-c", "Name"); strings.Contains(left, "kube-system/") {
		t.Errorf("ports are left: %s", left)
	}
	if left := openStack(t, "floating", "ip", "list", "-c", "ID"); left != "" {
		t.Errorf("floating IPs are left: %s", left)
	}
}
