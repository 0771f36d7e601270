package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster/stack"
)

// A leader is stopped for longer than its Lease lasts while there is work, another one takes over,
// and the first wakes up again: it sends nothing any more and exits, and every Machine has one VM.
func TestSAFE6_DeposedLeader(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.kill([]string{stack.Manager})
	// Nobody renews it any more, and a minute is long.
	u.deleteLease()
	first := u.startManager("first")
	u.awaitLeader("first")
	u.apply(deployment("handed-over", 2, nil))
	u.awaitRunning(2)

	first.signal(syscall.SIGSTOP)
	u.kubectl("scale", "machinedeployment", "handed-over", "--replicas=4")
	second := u.startManager("second")
	u.awaitLeader("second")
	u.awaitRunning(4)

	// There is work to do when it wakes up.
	u.kubectl("scale", "machinedeployment", "handed-over", "--replicas=6")
	woken := first.logged()
	first.signal(syscall.SIGCONT)
	if err := first.wait(); err == nil {
		t.Error("the deposed leader ended as if nothing had happened")
	}
	for line := range strings.Lines(first.logged()[len(woken):]) {
		if strings.Contains(line, `"called driver"`) && strings.Contains(line, `Machine"`) && !strings.Contains(line, "GetMachineStatus") {
			t.Errorf("after it was deposed it called the driver: %s", line)
		}
	}
	u.awaitRunning(6)
	u.checkOneVMEach()
	second.signal(syscall.SIGTERM)
	if err := second.wait(); err != nil {
		t.Errorf("the second manager ended with %v", err)
	}
}

// manager is one that a test runs itself.
type manager struct {
	t       *testing.T
	command *exec.Cmd
	log     string
	ended   chan error
}

// startManager starts one beside the stack's, with a Lease that is short enough for a test.
func (u *user) startManager(name string, more ...string) *manager {
	u.t.Helper()
	m := &manager{t: u.t, log: filepath.Join(u.dir, "logs", "manager-"+name+".log"), ended: make(chan error, 1)}
	log, err := os.Create(m.log)
	if err != nil {
		u.t.Fatal(err)
	}
	m.command = exec.Command(filepath.Join(commandDir, "millwright-manager"), append(more,
		"--kubeconfig="+u.ManagerKubeconfig(), "--driver=fake=unix://"+filepath.Join(u.dir, "driver.sock"),
		"--leader-election-namespace="+leaseNamespace, "--leader-election-identity="+name, "--leader-election-lease-duration=10s",
		"--leader-election-renew-deadline=6s", "--leader-election-retry-period=1s", "--health-bind-address=0", "-v=4")...)
	m.command.Stdout, m.command.Stderr = log, log
	if err := m.command.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() {
		m.ended <- m.command.Wait()
		_ = log.Close()
	}()
	u.t.Cleanup(func() {
		_ = m.command.Process.Kill()
	})
	return m
}

func (m *manager) signal(signal syscall.Signal) {
	m.t.Helper()
	if err := m.command.Process.Signal(signal); err != nil {
		m.t.Fatal(err)
	}
}

// wait returns how the manager ended.
func (m *manager) wait() error {
	m.t.Helper()
	select {
	case err := <-m.ended:
		return err
	case <-time.After(waitLimit):
		m.t.Fatalf("the manager does not end; its log is %s", m.log)
		return nil
	}
}

// logged is what the manager has logged so far, in whole lines.
func (m *manager) logged() string {
	m.t.Helper()
	text, err := os.ReadFile(m.log)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text[:bytes.LastIndexByte(text, '\n')+1])
}

// Where and how the leader's Lease is called.
const (
	leaseNamespace = "millwright-system"
	leaseName      = "millwright-manager"
)

func (u *user) deleteLease() {
	u.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName}}
	if err := client.IgnoreNotFound(u.client.Delete(u.t.Context(), lease)); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) awaitLeader(name string) {
	u.t.Helper()
	eventually(u.t, name+" to lead", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := u.client.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: leaseName}, &lease); err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder != name {
			return errors.New("it does not")
		}
		return nil
	})
}
