package e2e

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/tier"
)

// previousDir holds core and driver of the release before this one, and previousCommit says which
// that is.
const (
	previousDir    = "../../bin/previous"
	previousCommit = "../../tools/previous/COMMIT"
)

// Core and driver are upgraded one at a time, in either order, and rolled back, while Machines are
// created. The CRDs and the webhook's configuration are of this release all along, as in the middle
// of an upgrade. Each pair creates VMs, one for each Machine, and the one that is left in the end
// deletes them.
func TestDRV1_CoreAndDriverAreUpgradedInEitherOrder(t *testing.T) {
	tier.Long(t, "it takes the release before this one")
	t.Parallel()
	for _, tc := range []struct{ name, first, second string }{
		{"driver first", stack.Driver, stack.Manager},
		{"core first", stack.Manager, stack.Driver},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upgradeAndRollBack(t, tc.first, tc.second)
		})
	}
}

func upgradeAndRollBack(t *testing.T, first, second string) {
	// At each step so many more Machines are asked for, and so many of them have VMs when a process
	// ends.
	const batch, made = 8, 2
	// As a kubelet ends a container. What is rolled back is killed.
	const grace = 30 * time.Second
	u := newUserWithFastKubelets(t)
	u.beginAtPrevious()
	u.delayCalls(100*time.Millisecond, time.Second)
	before := u.vmsCreated()
	u.apply(deployment("skewed", 0, nil))
	var seen []string
	machines, underWay := int64(0), 0
	for _, step := range []struct {
		process, dir string
		grace        time.Duration
	}{
		{first, commandDir, grace}, {second, commandDir, grace}, {second, previousDir, 0}, {first, previousDir, 0}, {first, commandDir, grace},
	} {
		older := machines
		machines += batch
		u.kubectl("scale", "machinedeployment", "skewed", fmt.Sprintf("--replicas=%d", machines))
		// More than there were Machines when the last process ended: the pair that runs since then
		// has made them.
		vms := u.awaitVMs(before+older+made) - before
		if vms < machines {
			underWay++
		}
		seen = append(seen, u.uids()...)
		begin := time.Now()
		u.roll(step.process, step.dir, step.grace)
		t.Logf("%d of %d VMs were made; %s from %s after %s", vms, machines, step.process, filepath.Base(step.dir), time.Since(begin).Round(time.Millisecond))
	}
	if underWay == 0 {
		t.Error("no process ended while VMs were being made")
	}
	u.awaitRunning(int(machines))
	u.checkOneVMEach()
	u.checkKept(seen)
	if n := u.vmsCreated() - before; n != machines {
		t.Errorf("the cloud has made %d VMs, want %d", n, machines)
	}
	u.removeFaults()
	u.kubectl("delete", "machinedeployments", "--all", "--wait=false")
	u.awaitGone()
	if left := u.resources(t.Context()); len(left) > 0 {
		t.Errorf("the cloud holds %v, want nothing", left)
	}
	if first == stack.Driver {
		// Core is of the release before this one, which knows of no bootstrap tokens: those of
		// Machines that this release began with are left until they expire.
		u.deleteTokens()
	}
}

// deleteTokens deletes the bootstrap tokens of all machines.
func (u *user) deleteTokens() {
	u.t.Helper()
	err := u.client.DeleteAllOf(u.t.Context(), &corev1.Secret{},
		client.InNamespace(metav1.NamespaceSystem), client.HasLabels{"cluster.k8s.io/machine-uid"})
	if err != nil {
		u.t.Errorf("delete bootstrap tokens: %v", err)
	}
}

// beginAtPrevious has core and driver be of the release before this one. Core is given only what
// both releases understand: that one reaches drivers on unix sockets alone.
func (u *user) beginAtPrevious() {
	u.t.Helper()
	core := u.Process(stack.Manager)
	args := core.Args()
	u.t.Cleanup(func() {
		core.SetArgs(args)
		u.roll(stack.Driver, commandDir, 0)
		u.roll(stack.Manager, commandDir, 0)
	})
	core.SetArgs(slices.DeleteFunc(core.Args(), func(arg string) bool {
		return strings.HasPrefix(arg, "--driver=") && !strings.Contains(arg, "=unix://") ||
			strings.HasPrefix(arg, "--outdated-node-delay=") || strings.HasPrefix(arg, "--secret-recheck=")
	}))
	u.roll(stack.Driver, previousDir, 0)
	u.roll(stack.Manager, previousDir, 0)
}

// newUserWithFastKubelets returns a user of a stack of its own, whose kubelets need no bootstrap
// token: the VMs that the release before this one makes have none.
func newUserWithFastKubelets(t *testing.T) *user {
	t.Helper()
	takeTurn(t)
	// Sockets lie in it: its path has to be short.
	dir, err := os.MkdirTemp("", "mw-skew-")
	if err != nil {
		t.Fatal(err)
	}
	options := stackOptions(dir)
	options.FastKubelets, options.CloudArgs = true, nil
	f, err := newFixture(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.end(0) != 0 {
			t.Error("the stack did not end well")
		}
	})
	return newUserOf(t, f)
}

// roll ends a process, with SIGKILL if it is still there after grace, and starts its executable
// from dir.
func (u *user) roll(name, dir string, grace time.Duration) {
	u.t.Helper()
	process := u.Process(name)
	if err := process.Stop(grace); err != nil {
		u.t.Fatalf("stop %s: %v", name, err)
	}
	process.SetPath(filepath.Join(dir, filepath.Base(process.Path())))
	if err := process.Start(); err != nil {
		u.t.Fatalf("start %s: %v", name, err)
	}
	commit, err := os.ReadFile(previousCommit)
	if err != nil {
		u.t.Fatal(err)
	}
	// What really runs says whether it is built from that commit.
	info, err := buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", process.Pid()))
	if err != nil {
		u.t.Fatalf("ask the %s that runs what it is built from: %v", name, err)
	}
	isPrevious := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-ldflags" && strings.Contains(s.Value, strings.TrimSpace(string(commit)))
	})
	if isPrevious != (dir == previousDir) {
		u.t.Fatalf("%s is started from %s; that it is of the release before this one is %t", name, dir, isPrevious)
	}
}
