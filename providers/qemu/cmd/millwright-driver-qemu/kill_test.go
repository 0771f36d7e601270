package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// patience is how long a test waits for a process.
const patience = 30 * time.Second

// reconnect is how soon a test looks whether the next driver is there.
const reconnect = 5 * time.Millisecond

// host is one with QEMU, whose driver can be killed.
type host struct {
	*testing.T

	dir string
	// killed is closed when the driver has ended.
	process *os.Process
	killed  chan struct{}
	driverv1alpha1.MachineServiceClient
}

func newHost(t *testing.T) *host {
	t.Helper()
	needQEMU(t)
	dir, err := os.MkdirTemp("", "qemu") // not t.TempDir: a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	h := &host{T: t, dir: dir}
	t.Cleanup(func() {
		if h.process != nil {
			h.kill()
		}
		_ = os.RemoveAll(dir)
	})
	if err := os.WriteFile(h.path("empty.raw"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+h.path("d.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: reconnect, MaxDelay: reconnect, Multiplier: 1}, MinConnectTimeout: patience}),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h.MachineServiceClient = driverv1alpha1.NewMachineServiceClient(conn)
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

// start starts the driver.
func (h *host) start(flags ...string) {
	h.Helper()
	arguments := append([]string{
		"--endpoint", "unix://" + h.path("d.sock"), "--state-dir", h.path("state"), "--image-dir", h.dir, "--accelerator", "tcg", "--shutdown-grace", "0s",
	}, flags...)
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), asDriver+"=1")
	if err := command.Start(); err != nil {
		h.Fatal(err)
	}
	h.process, h.killed = command.Process, make(chan struct{})
	go func(ended chan struct{}) {
		_ = command.Wait() // it was killed
		close(ended)
	}(h.killed)
}

// kill ends the driver at once.
func (h *host) kill() {
	_ = h.process.Kill() // it may have been killed already
	<-h.killed
}

func meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{RequestId: "r", ClusterUid: "cluster"}
}

func ref(uid string) *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: "ns", Name: "machine", Uid: uid}
}

func provider() *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: []byte(`{"image": "empty.raw", "memory": "64Mi", "cpus": 1}`)}
}

func (h *host) create(ctx context.Context, uid string) (*driverv1alpha1.Machine, error) {
	answer, err := h.CreateMachine(ctx, &driverv1alpha1.CreateMachineRequest{Meta: meta(), Machine: ref(uid), Provider: provider(), UserData: []byte("#cloud-config\n")})
	return answer.GetMachine(), err
}

func (h *host) remove(ctx context.Context, uid string) (*driverv1alpha1.Machine, error) {
	answer, err := h.DeleteMachine(ctx, &driverv1alpha1.DeleteMachineRequest{Meta: meta(), Machine: ref(uid), Provider: provider()})
	return answer.GetMachine(), err
}

// until calls until that is enough.
func (h *host) until(what string, enough func(ctx context.Context) bool) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !enough(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.Fatalf("it did not come about that %s", what)
		}
	}
}

// runsOnce has a VM run, and holds that there is one process of it.
func (h *host) runsOnce(uid string) {
	h.Helper()
	h.until("the VM runs", func(ctx context.Context) bool {
		now, err := h.create(ctx, uid)
		h.atMostOne(uid)
		return err == nil && now.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_RUNNING
	})
	if n := len(vms(h.T, uid)); n != 1 {
		h.Errorf("the VM has %d processes", n)
	}
}

func (h *host) atMostOne(uid string) {
	h.Helper()
	if n := len(vms(h.T, uid)); n > 1 {
		h.Errorf("the VM has %d processes", n)
	}
}

// leavesNothing has a VM be gone, and holds that nothing is left of it.
func (h *host) leavesNothing(uid string) {
	h.Helper()
	h.until("the VM is gone", func(ctx context.Context) bool {
		now, err := h.remove(ctx, uid)
		return err == nil && now == nil
	})
	h.until("its process has ended", func(context.Context) bool { return len(vms(h.T, uid)) == 0 })
	if left, err := os.ReadDir(h.path("state/machines")); err != nil || len(left) > 0 {
		h.Errorf("left are %v (%v)", left, err)
	}
}

// vms returns the pids of QEMUs of a VM. What is about to become QEMU is one.
func vms(t *testing.T, uid string) []int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(bytes.Split(line, []byte{0}), func(word []byte) bool { return string(word) == "millwright-"+uid }) {
			continue // it ended while we looked, or is another
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// A driver that is killed before or after each process that it starts makes no second VM, and
// leaves nothing. Scripts in the place of QEMU's programs kill it.
func TestDriverIsKilledBetweenSteps(t *testing.T) {
	const killDriver = "kill -9 $PPID\n"
	for name, script := range map[string]struct{ flag, text string }{
		"before the disk is made":       {"--qemu-img", killDriver + "exit 1\n"},
		"while the disk is made":        {"--qemu-img", killDriver + "sleep 0.2\nexec qemu-img \"$@\"\n"},
		"once the disk is made":         {"--qemu-img", "qemu-img \"$@\"\n" + killDriver},
		"before QEMU begins":            {"--qemu", killDriver + "exit 1\n"},
		"while QEMU begins":             {"--qemu", killDriver + "sleep 0.2\nexec " + program() + " \"$@\"\n"},
		"once QEMU has begun":           {"--qemu", "(sleep 0.2; kill -9 $PPID) &\nexec " + program() + " \"$@\"\n"},
		"and QEMU ends before it spoke": {"--qemu", killDriver + "exec " + program() + " \"$@\" -device nonsense\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if err := os.WriteFile(h.path("program"), []byte("#!/bin/sh\n"+script.text), 0o700); err != nil {
				t.Fatal(err)
			}
			h.start(script.flag, h.path("program"))
			_, _ = h.create(t.Context(), "uid") // it is killed in the middle
			<-h.killed
			h.start()
			h.runsOnce("uid")
			h.leavesNothing("uid")
		})
	}
}

// The same at instants that nobody chose: of a create, and of a delete.
func TestDriverIsKilledAtAnyInstant(t *testing.T) {
	const rounds, longest = 50, 40 * time.Millisecond
	h := newHost(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		uid := fmt.Sprintf("round-%d", round)
		for _, call := range []func(context.Context, string) (*driverv1alpha1.Machine, error){h.create, h.remove} {
			h.start()
			h.until("the driver answers", func(ctx context.Context) bool {
				_, err := h.ListMachines(ctx, &driverv1alpha1.ListMachinesRequest{Meta: meta(), Provider: provider()})
				return err == nil
			})
			process := h.process
			ctx, giveUp := context.WithCancel(t.Context()) // a call that comes too late would wait for the next driver
			kill := time.AfterFunc(time.Duration(random.Int64N(int64(longest))), func() { _ = process.Kill(); giveUp() })
			_, _ = call(ctx, uid) // it may be killed in the middle
			<-h.killed
			kill.Stop()
			h.atMostOne(uid)
			if round%2 == 0 {
				h.start()
				h.runsOnceOrGoes(uid)
				h.kill()
			}
		}
		h.start()
		h.leavesNothing(uid)
		h.kill()
	}
}

// runsOnceOrGoes has a create be repeated until it is answered with a VM that runs, or with the
// fact that it is being deleted.
func (h *host) runsOnceOrGoes(uid string) {
	h.Helper()
	h.until("the create is answered", func(ctx context.Context) bool {
		now, err := h.create(ctx, uid)
		h.atMostOne(uid)
		return err != nil || now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_CREATING
	})
}

// A VM goes on when its driver is told to end, and the next one has it.
func TestVMOutlivesItsDriver(t *testing.T) {
	h := newHost(t)
	h.start()
	h.runsOnce("uid")
	before := vms(t, "uid")
	if err := h.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-h.killed
	h.start()
	h.runsOnce("uid")
	if after := vms(t, "uid"); !slices.Equal(before, after) {
		t.Errorf("its process was %v, and is %v", before, after)
	}
	h.leavesNothing("uid")
}
