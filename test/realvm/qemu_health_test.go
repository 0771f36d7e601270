//go:build linux

package realvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// threeAtOnce grows a set to three machines, and lets all of them be replaced at once.
const threeAtOnce = `{"spec":{"replicas":3,"strategy":{"remediation":{"maxInFlight":3}}}}`

const healthCheck = `
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineHealthCheck
metadata: {name: fleet, namespace: default}
spec:
  selector: {matchLabels: {pool: fleet}}
  unhealthyNodeConditions:
  - {type: Ready, status: Unknown, timeout: 20s}
  - {type: DiskPressure, status: "True", timeout: 10s}
`

// hand is a pod that does something to the Node it is on, as its root. systemd answers only those
// whose process it can see, hence hostPID.
func hand(name, node, command string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  nodeName: %s
  hostPID: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: hand
    image: localhost/busybox:1
    imagePullPolicy: Never
    securityContext: {privileged: true}
    command: [sh, -c, %q]
    volumeMounts: [{name: host, mountPath: /host}]
  volumes: [{name: host, hostPath: {path: /}}]
`, name, node, command)
}

// A kubelet that was stopped, a disk that is full and a kernel that has panicked: a health check
// finds each, and the set replaces the machine. A VM that works is shut down by its own system.
func testSickMachinesAreReplaced(t *testing.T) {
	shared.showTrouble(t)
	ails := []struct{ name, command, condition string }{
		{"kubelet-stopped", "chroot /host systemctl stop kubelet", "The condition Ready of the Node has been Unknown"},
		{"disk-full", "chroot /host fallocate -l 32G /var/fill; dd if=/dev/zero of=/host/var/rest bs=1M; sleep 600", "The condition DiskPressure of the Node has been True"},
		// A kernel that is not told to reboot hangs.
		{"kernel-panic", "echo 0 > /host/proc/sys/kernel/panic; echo c > /host/proc/sysrq-trigger", "The condition Ready of the Node has been Unknown"},
	}
	shared.mustKubectl(t, "", "patch", "machinedeployment", "fleet", "--type=merge", "--patch", threeAtOnce)
	shared.mustKubectl(t, healthCheck, "apply", "-f", "-")
	shared.awaitVersion(t, "fleet", newKubelet, len(ails))
	machines := &clusterv1alpha1.MachineList{}
	if err := shared.client.List(t.Context(), machines, client.MatchingLabels{"pool": "fleet"}); err != nil {
		t.Fatal(err)
	}
	sick := map[string]string{}
	for i, ail := range ails {
		m := &machines.Items[i]
		sick[m.Name] = ail.condition
		shared.mustKubectl(t, hand(ail.name, m.Status.NodeRef.Name, ail.command), "apply", "-f", "-")
		if ail.name == "kernel-panic" {
			shared.lowerPriority(t, m)
		}
	}
	found := map[string]bool{}
	eventually(t, "all of them to be replaced", func(ctx context.Context) error {
		machines := &clusterv1alpha1.MachineList{}
		if err := shared.client.List(ctx, machines, client.MatchingLabels{"pool": "fleet"}); err != nil {
			return err
		}
		left := ""
		for _, m := range machines.Items {
			if sick[m.Name] == "" {
				continue
			}
			left = describe(&m)
			verdict := meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionHealthCheckSucceeded)
			if verdict != nil && verdict.Reason == clusterv1alpha1.ReasonUnhealthyNode && strings.Contains(verdict.Message, sick[m.Name]) {
				found[m.Name] = true
			}
		}
		if left != "" {
			return errors.New(left)
		}
		return nil
	})
	for name, condition := range sick {
		if !found[name] {
			t.Errorf("the health check did not find of %s: %s", name, condition)
		}
	}
	// Three boots at once take two minutes more than one, and show the same.
	shared.mustKubectl(t, "", "patch", "machinedeployment", "fleet", "--type=merge", "--patch", `{"spec":{"replicas":1}}`)
	shared.awaitVersion(t, "fleet", newKubelet, 1)
	last := shared.awaitRunning(t, "fleet")
	// The console goes with the VM; who has it open can read it to its end.
	console, err := os.Open(filepath.Join(shared.VMs(), *last.Spec.MachineUID, "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	shared.mustKubectl(t, "", "delete", "machinehealthcheck/fleet", "machinedeployment/fleet", "--wait=false")
	shared.awaitGone(t)
	text, err := io.ReadAll(console)
	if err != nil || !bytes.Contains(text, []byte("reboot: Power down")) {
		t.Errorf("the VM was not shut down by its system (%v); its console ends with %q", err, text[max(0, len(text)-500):])
	}
}

// lowerPriority has a VM run only when nobody else wants to. A kernel that has panicked spins, and
// would take a core from those that boot.
func (f *fixture) lowerPriority(t *testing.T, m *clusterv1alpha1.Machine) {
	t.Helper()
	pid, err := f.processOf(*m.Spec.MachineUID)
	if err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	const leastUrgent = 19
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name()) // they are numbers
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, leastUrgent); err != nil {
			t.Logf("the VM keeps its priority: %v", err)
		}
	}
	// Where the kernel schedules sessions, the priority within one says nothing.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(leastUrgent)), 0)
}
