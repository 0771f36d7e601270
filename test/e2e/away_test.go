package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/localcluster/supervisor"
	"github.com/millwright-dev/millwright/test/chaos/etcdlog"
	"github.com/millwright-dev/millwright/test/tier"
)

// The fleet of the outages: machines that stay, and a wave that comes while the one before it goes.
const (
	steady, staying = "steady", 100
	waveSize        = 20
)

// outage is what is away at once, and for how long.
type outage struct {
	name string
	long time.Duration
	// hung are processes that are stopped, so that connections to them hang; dead are killed.
	hung, dead []string
	// drain is the nodeDrainTimeout of what goes meanwhile; empty: as short as others.
	drain string
}

// What is away alone is so for longest, with another for longEnough. Both exceed each timeout of
// the fleet, and those leave a slow machine the time to begin before an outage and to end after it:
// a blocked drain looks again each 20 seconds.
const (
	longest, longEnough = 90 * time.Second, 70 * time.Second
	fleetTimeout        = "1m0s"
)

// bothAPIServers is the outage in which the manager can read and write nothing.
const bothAPIServers = "both API servers"

func outages() []outage {
	const workload, management, driver = stack.WorkloadAPIServer, localcluster.APIServer, stack.Driver
	return []outage{
		{name: "workload API server", long: longest, hung: []string{workload}},
		{name: "management API server", long: longest, hung: []string{management}},
		// A drain needs no driver: its time goes on.
		{name: "driver", long: longest, dead: []string{driver}, drain: "10m0s"},
		{name: bothAPIServers, long: longEnough, hung: []string{management}, dead: []string{workload}},
		{name: "workload API server and driver", long: longEnough, hung: []string{workload, driver}},
		{name: "management API server and driver", long: longEnough, hung: []string{driver}, dead: []string{management}},
	}
}

// checkedFleet is the MachineHealthCheck of all pools. Its timeouts are shorter than any outage. A
// Node may be called silent for some seconds after one.
const checkedFleet = `apiVersion: cluster.k8s.io/v1alpha1
kind: MachineHealthCheck
metadata: {name: fleet}
spec:
  selector:
    matchExpressions: [{key: pool, operator: Exists}]
  nodeStartupTimeout: ` + fleetTimeout + `
  unhealthyNodeConditions:
  - {type: Ready, status: "False", timeout: 5s}
  - {type: Ready, status: Unknown, timeout: 30s}
`

// pool renders a MachineDeployment of the fleet.
func pool(name string, size int) string {
	return deployment(name, size, map[string]string{"spec": "\n      nodeStartupTimeout: " + fleetTimeout + "\n      nodeDrainTimeout: " + fleetTimeout})
}

// Each API server and the driver are away, alone and together, for longer than each timeout, while
// 100 machines run, 20 are held in their drain and 20 are coming. Nothing is failed or replaced, no
// VM goes, and afterwards all goes on.
func TestSAFE3_TwoClustersWhatIsAwayFalsifiesNothing(t *testing.T) {
	tier.Long(t, "its outages take minutes")
	t.Parallel()
	u := newUserOf(t, startOutageStack(t))
	story := &fleetStory{namespace: u.namespace, going: map[string]bool{}, pools: map[string]string{}, wrong: map[string]bool{}}
	u.followEtcd(story.see)
	u.apply(pool(steady, staying))
	u.apply(pool(wave(0), waveSize))
	u.awaitRunning(staying + waveSize)
	u.apply(checkedFleet)
	u.awaitCheck("fleet", staying+waveSize, staying+waveSize, clusterv1alpha1.ReasonWithinLimits)
	waves := 0
	for _, o := range outages() {
		passed := t.Run(o.name, func(t *testing.T) {
			there := *u
			there.t = t
			o.strike(&there, story, waves)
			waves++
		})
		if !passed {
			t.Fatal("the world is not the same after: there is no other outage")
		}
	}
	u.keepsFleet(story, time.Now().Add(10*time.Second))
}

// startOutageStack starts two clusters in which timeouts are short.
func startOutageStack(t *testing.T) *fixture {
	t.Helper()
	takeTurn(t)
	dir, err := os.MkdirTemp("", "mw-out-")
	if err != nil {
		t.Fatal(err)
	}
	options := stackOptions(dir)
	options.Layout, options.FastKubelets, options.ReviveControlPlane = stack.TwoClusters, true, true
	options.NodeGracePeriod, options.KubeletArgs = 10*time.Second, []string{"--lease-duration=8s"}
	options.CloudArgs = []string{"--boot-latency=2s"}
	options.ManagerArgs = []string{
		"-v=4", "--settle-period=5s", "--orphan-interval=" + scanInterval.String(), "--orphan-age=1s", "--max-unhealthy=100%",
		"--node-unreachable-after=" + unreachableAfter.String(),
	}
	options.Ended = func(end *supervisor.ExitError) { t.Log("ended by itself:", end.Process, end.State) }
	f, err := newFixture(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.endWith(t) })
	return f
}

// wave names the pool that is drained in the nth outage of those that are tried. It has come in the
// one before it.
func wave(n int) string { return fmt.Sprintf("wave-%d", n) }

// strike begins drains and creates, has the outage, and waits until all is as it should be again.
func (o outage) strike(u *user, story *fleetStory, n int) {
	going, coming := wave(n), wave(n+1)
	u.holdDrains(going)
	u.setDrainTimeout(going, o.drain)
	story.letGo(going)
	u.kubectl("delete", "machinedeployment", going, "--wait=false")
	u.awaitBlocked(waveSize)
	u.apply(pool(coming, waveSize))
	eventually(u.t, "VMs that are being made", func(context.Context) error {
		if u.count(coming, clusterv1alpha1.MachinePhaseProvisioning) == 0 {
			return errors.New("no machine is Provisioning")
		}
		return nil
	})
	began := time.Now()
	for _, process := range o.hung {
		u.signal(process, syscall.SIGSTOP)
	}
	u.kill(o.dead)
	u.keepsFleet(story, began.Add(o.long))
	for _, process := range o.hung {
		u.signal(process, syscall.SIGCONT)
	}
	u.revive(o.dead)
	ended := time.Now()
	u.awaitAPIServers()
	u.keepsVMsOf(story, steady, going, coming)
	u.onNodes().kubectl("delete", "poddisruptionbudget", going)
	u.awaitRunning(staying + waveSize)
	u.keepsVMsOf(story, steady, coming)
	u.t.Logf("away for %s; all that was to come and go had done so %s later", ended.Sub(began).Round(time.Second), time.Since(ended).Round(time.Second))
	if n := story.count(coming); n != waveSize {
		u.t.Errorf("%d machines of %s were made, want %d", n, coming, waveSize)
	}
	if wrong := story.sayWrong(); len(wrong) > 0 {
		u.t.Errorf("falsified:\n%s", strings.Join(wrong, "\n"))
	}
}

// setDrainTimeout changes the nodeDrainTimeout of a pool's machines in place; empty: it stays.
func (u *user) setDrainTimeout(pool, timeout string) {
	u.t.Helper()
	if timeout == "" {
		return
	}
	u.kubectl("patch", "machinedeployment", pool, "--type=merge", "-p", `{"spec":{"template":{"spec":{"nodeDrainTimeout":"`+timeout+`"}}}}`)
	eventually(u.t, "the machines to have that time to be drained", func(context.Context) error {
		for _, m := range u.machines() {
			if long := m.Spec.NodeDrainTimeout; m.Labels["pool"] == pool && (long == nil || long.Duration.String() != timeout) {
				return fmt.Errorf("machine %s has %v", m.Name, long)
			}
		}
		return nil
	})
}

// keepsVMsOf fails the test when the cloud was asked to delete a VM of these pools.
func (u *user) keepsVMsOf(story *fleetStory, pools ...string) {
	u.t.Helper()
	for uid := range u.vmDeletes() {
		if pool := story.poolOf(uid); slices.Contains(pools, pool) {
			u.t.Errorf("the VM of machine uid %s of %s was deleted", uid, pool)
		}
	}
}

// holdDrains runs a pod on the Node of each machine of a pool. Their budget wants one pod more than
// there are: it allows no eviction, whatever becomes of their Nodes.
func (u *user) holdDrains(pool string) {
	u.t.Helper()
	var manifest strings.Builder
	for _, m := range u.machines() {
		if m.Labels["pool"] == pool {
			manifest.WriteString(strings.ReplaceAll(resident("on-"+m.Name, m.Status.NodeRef.Name), "app: resident", "app: "+pool))
		}
	}
	fmt.Fprintf(&manifest, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %[1]s}\n"+
		"spec: {minAvailable: %[2]d, selector: {matchLabels: {app: %[1]s}}}\n", pool, waveSize+1)
	there := u.onNodes()
	there.apply(manifest.String())
	there.kubectl("wait", "pods", "--selector=app="+pool, "--for=condition=Ready", "--timeout=60s")
}

// keepsFleet looks until then whether something is failed, replaced or deleted that is not to be.
// It asks no API server.
func (u *user) keepsFleet(story *fleetStory, until time.Time) {
	u.t.Helper()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for now := range tick.C {
		if vms := u.resources(u.t.Context())["vm"]; vms < staying+waveSize {
			u.t.Fatalf("there are %d VMs, want at least %d", vms, staying+waveSize)
		}
		if wrong := story.sayWrong(); len(wrong) > 0 {
			u.t.Fatalf("falsified:\n%s", strings.Join(wrong, "\n"))
		}
		if now.After(until) {
			return
		}
	}
}

// awaitAPIServers waits until each cluster is of use.
func (u *user) awaitAPIServers() {
	u.t.Helper()
	eventually(u.t, "both clusters to be ready", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return errors.Join(u.WaitReady(ctx), u.Workload().WaitReady(ctx))
	})
}

// fleetStory is what became of a namespace's Machines, as etcd tells it: nothing is missed while an
// API server is away.
type fleetStory struct {
	namespace string

	mu sync.Mutex
	// going are the pools that the test has deleted.
	going map[string]bool
	// pools has the pool of each machine that ever was, by its uid in the cloud.
	pools map[string]string
	// wrong is what must not have happened.
	wrong map[string]bool
}

func (s *fleetStory) see(c etcdlog.Change) {
	m, is := c.Object.(*clusterv1alpha1.Machine)
	if !is || m.Namespace != s.namespace {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pool := m.Labels["pool"]
	if m.Spec.MachineUID != nil {
		s.pools[*m.Spec.MachineUID] = pool
	}
	if what := falsified(m, s.going[pool]); what != "" {
		s.wrong[fmt.Sprintf("machine %s %s", m.Name, what)] = true
	}
}

// falsified says what is wrong with a machine for which nothing has happened but an outage; empty
// if nothing is.
func falsified(m *clusterv1alpha1.Machine, mayGo bool) string {
	drained := drainedReason(m)
	switch {
	case m.Status.Phase == clusterv1alpha1.MachinePhaseFailed || m.Status.FailureReason != nil || m.Status.ErrorReason != nil:
		return "has failed" + words(m.Status.Conditions)
	case !mayGo && !m.DeletionTimestamp.IsZero():
		return "is deleted" + words(m.Status.Conditions)
	case meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionOwnerRemediated) != nil:
		return "is to be replaced" + words(m.Status.Conditions)
	case drained == clusterv1alpha1.ReasonNodeUnreachable || drained == clusterv1alpha1.ReasonDrainTimedOut:
		return "is drained no more" + words(m.Status.Conditions)
	}
	return ""
}

// letGo says that a pool's machines may go from now on.
func (s *fleetStory) letGo(pool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.going[pool] = true
}

// sayWrong returns what must not have happened.
func (s *fleetStory) sayWrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.wrong))
}

// poolOf returns the pool of a machine by its uid in the cloud; empty for one that never was.
func (s *fleetStory) poolOf(uid string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pools[uid]
}

// count counts the machines that a pool ever had.
func (s *fleetStory) count(pool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, of := range s.pools {
		if of == pool {
			n++
		}
	}
	return n
}
