package lifecycle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// classes are those that a call can end in, success first.
var classes = []instance.Class{
	"", instance.OutcomeUnknown, instance.Unavailable, instance.SpecInvalid, instance.Conflict, instance.Credentials,
	instance.Quota, instance.Capacity, instance.RateLimited, instance.Precondition, instance.AccountChanged,
	instance.StaleEpoch, instance.Pending, instance.Unimplemented, instance.Internal, instance.DataLoss, instance.NotFound,
}

// edges are the phases that may follow on another. Deleting may follow on each, and Unknown; a
// write for nothing none.
var edges = map[clusterv1alpha1.MachinePhase]string{
	"":                                       "Pending Provisioning Provisioned Running Failed",
	clusterv1alpha1.MachinePhasePending:      "Provisioning Provisioned Running Failed",
	clusterv1alpha1.MachinePhaseProvisioning: "Provisioned Running Failed",
	clusterv1alpha1.MachinePhaseProvisioned:  "Running Failed",
	clusterv1alpha1.MachinePhaseRunning:      "Updating Failed",
	clusterv1alpha1.MachinePhaseUpdating:     "Running Failed",
	clusterv1alpha1.MachinePhaseUnknown:      "Provisioning Provisioned Running Updating Failed",
	clusterv1alpha1.MachinePhaseFailed:       "",
	clusterv1alpha1.MachinePhaseDeleting:     "",
}

// inspectStatus judges a status that is about to be written over the recorded one.
func (w *world) inspectStatus(recorded *Machine, s Status) {
	if recorded == nil {
		return
	}
	w.inspectTokenless(s)
	from, to := recorded.Status.Phase, s.Phase
	if to == clusterv1alpha1.MachinePhaseRunning && w.token != nil {
		w.breaks("a machine that is Running has a token")
	}
	free := to == clusterv1alpha1.MachinePhaseDeleting || to == clusterv1alpha1.MachinePhaseUnknown && from != clusterv1alpha1.MachinePhaseFailed
	if from != to && !free && !slices.Contains(strings.Fields(edges[from]), string(to)) {
		w.breaks("phase went from %q to %q", from, to)
	}
	if s.FailureReason != nil && (to != clusterv1alpha1.MachinePhaseFailed || s.NodeRef != nil) {
		w.breaks("failure told in phase %s with node %q", to, s.nodeName())
	}
	for _, c := range s.Conditions {
		if c.Reason == "" || c.Status == "" {
			w.breaks("condition %s without reason or status", c.Type)
		}
	}
	becomes := to == clusterv1alpha1.MachinePhaseRunning && from != to && from != clusterv1alpha1.MachinePhaseUpdating
	if becomes && (!w.nodeReady || w.tainted || w.gateHolds()) {
		w.breaks("Running with a Node that is ready %t, tainted %t, uninitialised %t, starting %t, hidden %t",
			w.nodeReady, w.tainted, w.uninitialized, w.starting, w.hidden)
	}
	if ready := s.Condition(clusterv1alpha1.ConditionReady); ready.Status == metav1.ConditionTrue && to != clusterv1alpha1.MachinePhaseRunning {
		w.breaks("Ready in phase %s", to)
	}
}

// inspectEnd judges a status that gives a machine up, or a drain: both only by what this process
// could see, or what somebody asks for.
func (w *world) inspectEnd(s *State, to Status) {
	w.inspectSkips(s, to)
	from, node := s.Machine.Status, to.Condition(clusterv1alpha1.ConditionNodeReady)
	if to.Phase == clusterv1alpha1.MachinePhaseFailed && from.Phase != to.Phase {
		if node.Reason == clusterv1alpha1.ReasonJoinTimeout {
			w.inspectLate(s)
		}
		if node.Reason == clusterv1alpha1.ReasonTokenMissing {
			w.inspectShutOut()
		}
		if to.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceMissing && w.vm != nil {
			w.breaks("a VM is called missing that is there")
		}
	}
	for typ, end := range map[string]struct {
		reason  string
		timeout time.Duration
	}{
		clusterv1alpha1.ConditionDrained:         {clusterv1alpha1.ReasonDrainTimedOut, s.Machine.DrainTimeout},
		clusterv1alpha1.ConditionVolumesDetached: {clusterv1alpha1.ReasonVolumeDetachTimedOut, s.Machine.VolumeDetachTimeout},
	} {
		if to.Condition(typ).Reason != end.reason || from.Condition(typ).Reason == end.reason {
			continue
		}
		since := w.now.Sub(s.Machine.DeletionTimestamp)
		if end.timeout == 0 || since < end.timeout || w.clock.Cluster < min(end.timeout, leastWait) {
			w.breaks("%s %s after the deletion, of which %s were observed", end.reason, since, w.clock.Cluster)
		}
	}
}

// inspectUnreachable judges a drain that does not wait for pods.
func (w *world) inspectUnreachable(s State) {
	switch {
	case w.vm == nil:
	case !w.silent:
		w.breaks("a Node that reports is called unreachable")
	case w.quiet < s.Machine.UnreachableAfter:
		w.breaks("a Node is called unreachable that could have been heard of for %s only", w.quiet)
	}
}

// inspectLate judges a machine that is given up for want of a Node.
func (w *world) inspectLate(s *State) {
	waited := w.clock.Cloud - w.waitsFrom
	switch {
	case s.Machine.StartupTimeout == 0:
		w.breaks("late where there is no limit")
	case waited < s.Machine.StartupTimeout:
		w.breaks("late after %s of %s that could be observed", waited, s.Machine.StartupTimeout)
	case w.away || w.dark:
		w.breaks("late while nobody could see that")
	case w.look != nil && w.look.Failure != nil && (s.Memory.Last == nil || !w.look.At.Before(s.Memory.Last.Ended)):
		w.breaks("late though the VM cannot be looked at: %s", w.look.Failure.Class)
	case s.Node.Match == NodeFound && s.Node.Ready == metav1.ConditionTrue && (!w.gateHolds() || w.hidden && !w.uninitialized):
		w.breaks("late with a Node that is Ready, and is not known to wait for anything")
	}
}

// inspect judges a step.
func (w *world) inspect(s State, step Step) {
	if again := Next(s); !reflect.DeepEqual(step, again) {
		w.breaks("the same state gave another step: %s", cmp.Diff(step, again))
	}
	if !step.RequeueAt.IsZero() && !step.RequeueAt.After(s.Now) {
		w.breaks("a timer in the past")
	}
	w.inspectIdentity(s, step)
	w.inspectToken(s, step)
	if step.Do == DrainNode && s.Machine.SkipsDrain {
		w.breaks("a drain that is to be skipped")
	}
	// Without a confirmed id the machine has no Node to drain.
	drainHeld := s.Machine.PreDrainHooks != "" && s.Node.Match == NodeFound && s.Confirmed()
	if step.Do == DrainNode && drainHeld || step.Do == Delete && (drainHeld || s.Machine.PreTerminateHooks != "") {
		w.breaks("%s though a hook holds it", step.Do)
	}
	if step.Do == Delete {
		w.inspectVolumes(s, step)
	}
	if drained := step.Memory.Drained; drained.Reason == clusterv1alpha1.ReasonNodeUnreachable && s.Memory.Drained != drained {
		w.inspectUnreachable(s)
	}
	if paused := s.Machine.Paused != (Pause{}); paused && step.Do != Nothing && step.Do != RenewToken {
		w.breaks("%s for a machine that is paused", step.Do)
	}
	if !step.Write && step.Do == Nothing && !step.Status.Equal(s.Machine.Status) {
		w.breaks("a status that is neither recorded nor written")
	}
}

// inspectToken judges whether the token of a VM lasts that has yet to join: it is extended in time,
// or somebody looks again when it has to be.
func (w *world) inspectToken(s State, step Step) {
	awaited := s.Machine.DeletionTimestamp.IsZero() && s.Machine.DeleteNow == "" && s.Node.Match != NodeFound &&
		(step.Status.Phase == clusterv1alpha1.MachinePhaseProvisioning || step.Status.Phase == clusterv1alpha1.MachinePhaseProvisioned)
	if !awaited || w.vm == nil || w.vmToken == 0 || w.token == nil || w.token.serial != w.vmToken || step.Do != Nothing {
		return
	}
	if renewAt := w.token.expires.Add(-tokenMargin); s.Machine.ProviderID != "" && (step.RequeueAt.IsZero() || step.RequeueAt.After(renewAt)) {
		w.breaks("the token has to be extended at %s, the machine is looked at again at %s", renewAt, step.RequeueAt)
	}
}

// inspectIdentity judges what is done by a providerID that the driver has not given.
func (w *world) inspectIdentity(s State, step Step) {
	id, recorded := s.Machine.ProviderID, s.Machine.Status
	if id == "" || w.told[id] {
		return
	}
	switch {
	case step.Do == SyncNode || step.Do == DrainNode || step.Do == RemoveNode:
		w.breaks("%s by a providerID that the driver has not given", step.Do)
	case step.Do == Create:
		w.breaks("create for a machine that came with a providerID")
	case step.Status.NodeRef != nil:
		w.breaks("node %s by a providerID that the driver has not given", step.Status.nodeName())
	case step.Status.ProviderID != "":
		w.breaks("status.providerID %s, which the driver has not given", step.Status.ProviderID)
	case step.Status.Phase == clusterv1alpha1.MachinePhaseFailed && recorded.Phase != step.Status.Phase:
		w.breaks("a machine is given up that was never adopted")
	}
}

// disturb lets one thing happen that can happen.
func (w *world) disturb(t *rapid.T) {
	lose := func() fate {
		return rapid.SampledFrom([]fate{goes, goes, goes, goes, diesBefore, diesAfter, refused}).Draw(t, "fate")
	}
	switch rapid.IntRange(0, 39).Draw(t, "what") {
	case 0, 1, 2, 3, 4:
		w.reconcile(lose)
	case 5, 6, 7:
		w.answer(rapid.SampledFrom(classes).Draw(t, "class"), rapid.Bool().Draw(t, "reached"))
	case 8:
		w.answer("", true)
	case 9:
		w.crash()
	case 10, 11:
		w.pass(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	case 12:
		if w.api != nil && w.api.DeletionTimestamp.IsZero() && rapid.Bool().Draw(t, "really") {
			w.end()
		}
	case 13:
		w.sync()
	case 14, 15:
		w.observe()
	case 16:
		w.cloud(rapid.SampledFrom([]instance.State{
			instance.Running, instance.Running, instance.Stopped, instance.Updating, instance.Failed, "gone",
		}).Draw(t, "vm"))
	case 17:
		w.register(rapid.Bool().Draw(t, "uninitialized"))
		w.nodeReady = rapid.Bool().Draw(t, "ready")
		// The Machine or the Node is changed, so that they differ.
		w.synced = w.synced && rapid.Bool().Draw(t, "alike")
	case 18:
		w.pods, w.blocked = rapid.IntRange(0, 2).Draw(t, "pods"), rapid.Bool().Draw(t, "blocked")
	case 19:
		w.leave(rapid.Bool().Draw(t, "away"), rapid.IntRange(0, 3).Draw(t, "dark") == 0)
		w.full = rapid.Bool().Draw(t, "full")
		w.bare = rapid.IntRange(0, 3).Draw(t, "bare") == 0
	case 20, 21:
		w.pass(time.Duration(rapid.IntRange(1, 10).Draw(t, "minutes")) * time.Minute)
	case 22:
		w.blind = rapid.SampledFrom([]instance.Class{
			"", "", instance.AccountChanged, instance.Credentials, instance.DataLoss, instance.OutcomeUnknown, instance.Internal,
		}).Draw(t, "blind")
	case 23:
		w.node = w.node && rapid.Bool().Draw(t, "registered")
	case 24:
		w.annotate(rapid.Bool().Draw(t, "paused"), false)
	case 25:
		w.annotate(false, rapid.IntRange(0, 3).Draw(t, "deleteNow") == 0)
	case 26:
		w.forget(rapid.IntRange(0, 2).Draw(t, "forget") == 0)
	case 27:
		w.upgrade()
	case 28, 29:
		w.beat(rapid.Bool().Draw(t, "renews"), rapid.IntRange(0, 3).Draw(t, "silent") > 0, rapid.Bool().Draw(t, "alone"))
	case 30:
		w.readable = rapid.IntRange(0, 3).Draw(t, "readable") > 0
		if w.console != nil {
			w.console = &instance.Console{Lines: []string{"login:"}}
		}
	case 31:
		w.uninitialized = w.uninitialized && rapid.Bool().Draw(t, "awaitsCloudController")
	case 32:
		w.starting, w.hidden = rapid.Bool().Draw(t, "starting"), rapid.IntRange(0, 3).Draw(t, "hidden") == 0
	case 33:
		w.certify()
		w.vague = rapid.IntRange(0, 3).Draw(t, "vague") == 0
	case 34:
		if rapid.Bool().Draw(t, "certified") {
			w.certify()
		}
		w.token = nil // Somebody has deleted it.
		w.pass(tokenRecheck)
	case 35:
		w.tokenless, w.edited = !w.tokenless, true
	case 36:
		w.hook(rapid.Bool().Draw(t, "preDrain"), rapid.Bool().Draw(t, "preTerminate"))
	case 37, 38:
		w.attach(rapid.IntRange(0, 2).Draw(t, "volumes"), rapid.Bool().Draw(t, "claimsHidden"))
	case 39:
		w.oneByOne = rapid.Bool().Draw(t, "oneByOne")
		w.skip(rapid.IntRange(0, 2).Draw(t, "skipsDrain") == 0, rapid.IntRange(0, 2).Draw(t, "skipsVolumes") == 0)
	}
}

// annotate pauses the machine, or lets it go on; deleteNow asks for its end.
func (w *world) annotate(paused, deleteNow bool) {
	if w.api == nil {
		return
	}
	w.version++
	w.api.Paused = Pause{}
	if paused {
		w.api.Paused = Pause{Reason: "PausedByAnnotation", Message: "Paused."}
	}
	if deleteNow {
		w.api.DeleteNow = "the Machine"
	}
}

// settleDown lets only good things happen, for long enough.
func (w *world) settleDown() {
	w.full, w.bare, w.blocked, w.pods, w.blind, w.vague = false, false, false, 0, "", false
	w.uninitialized, w.starting, w.hidden = false, false, false
	w.leave(false, false)
	w.annotate(false, false)
	w.hook(false, false)
	w.skip(false, false)
	w.attach(0, false)
	always := func() fate { return goes }
	for range 40 {
		if w.api == nil || w.api.Status.Phase == clusterv1alpha1.MachinePhaseRunning && w.api.DeletionTimestamp.IsZero() && w.settled() {
			return
		}
		w.sync()
		w.reconcile(always)
		w.answer("", true)
		w.reconcile(always)
		if w.vm != nil && w.vm.State == instance.Deleting {
			w.vm = nil
		}
		if w.vm != nil && w.vm.State != instance.Failed {
			w.vm.State = instance.Running
			w.register(false)
			w.nodeReady = true
		}
		w.observe()
		w.pass(20 * time.Second)
	}
}

// settled: everything that the machine needs is there, and it says so.
func (w *world) settled() bool {
	ready := w.cache.Status.Condition(clusterv1alpha1.ConditionReady).Status == metav1.ConditionTrue &&
		w.cache.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceRunning
	return ready && w.call == nil && w.synced && !w.tainted && w.vm != nil && w.vm.State == instance.Running && w.nodeReady && w.cached == w.version &&
		w.look != nil && w.look.Instance != nil && w.look.Instance.State == instance.Running
}

// TestNothingIsLostOrDoubled: over any history of crashes, lost writes, stale caches, failures and
// changes from outside, no promise of the package is broken. In a fair world the machine gets
// where it should.
func TestNothingIsLostOrDoubled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Bool().Draw(t, "standalone"))
		switch rapid.IntRange(0, 5).Draw(t, "born") {
		case 0:
			w.comeWithID(false, false)
		case 1:
			// One without a finalizer can be gone before anybody sees it; its VM is an orphan then.
			w.comeWithID(true, w.api.Finalizer && rapid.Bool().Draw(t, "there"))
		}
		w.readable, w.tokenless = rapid.Bool().Draw(t, "readable"), rapid.IntRange(0, 2).Draw(t, "tokenless") == 0
		w.startup, w.api.AwaitsDaemonSets = rapid.Bool().Draw(t, "startup"), rapid.Bool().Draw(t, "awaitsDaemonSets")
		w.api.KubeletVersion = "1.36.1"
		w.api.StartupTimeout = time.Duration(rapid.IntRange(0, 4).Draw(t, "startup")) * 5 * time.Minute
		w.api.VolumeDetachTimeout = time.Duration(rapid.IntRange(0, 8).Draw(t, "volumes")) * time.Minute
		w.sync()
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			w.disturb(t)
			if len(w.broken) > 0 {
				t.Fatal(strings.Join(w.broken, "\n"))
			}
		}
		w.settleDown()
		w.arrived()
		if len(w.broken) > 0 {
			t.Fatalf("%s\nat the end: %+v\nmemory: %+v\nlook: %+v", strings.Join(w.broken, "\n"), w.api, w.memory, w.look)
		}
	})
}

// arrived judges where a machine is that had all the time in the world.
func (w *world) arrived() {
	if w.api == nil {
		if !w.forgot && (w.vm != nil || w.node && w.ours) {
			w.breaks("something is left: vm %v node %t", w.vm, w.node)
		}
		return
	}
	if w.unadopted() {
		return
	}
	phase := w.api.Status.Phase
	switch {
	case !w.api.DeletionTimestamp.IsZero() && w.isStateLost() && !w.api.Forgotten:
	case !w.api.DeletionTimestamp.IsZero():
		w.breaks("the machine does not go away")
	case phase == clusterv1alpha1.MachinePhaseFailed:
	case phase == clusterv1alpha1.MachinePhaseUnknown && w.isStateLost():
	case phase != clusterv1alpha1.MachinePhaseRunning:
		w.breaks("the machine does not become Running")
	default:
		w.still()
	}
}

// unadopted: the machine says that its providerID is not its VM's, which is so.
func (w *world) unadopted() bool {
	reason := w.api.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason
	if !w.api.DeletionTimestamp.IsZero() {
		return false
	}
	if reason == clusterv1alpha1.ReasonProviderIDConflict && w.vm != nil && w.vm.ProviderID != w.api.ProviderID {
		return true
	}
	return reason == clusterv1alpha1.ReasonNotAdopted && w.vm == nil && w.born != "" && w.made <= 1
}

// isStateLost: the driver has lost what it knew of the machine, and there is no VM to learn from.
func (w *world) isStateLost() bool {
	return w.vm == nil && w.api.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonDataLoss
}

// still: nothing is done or written for a settled machine, ever.
func (w *world) still() {
	for range 10 {
		step := Next(w.state())
		if step.Do != Nothing || step.Write || !step.RequeueAt.IsZero() || len(step.Events) > 0 || step.Poll != instance.PollSettled {
			w.breaks("no rest for a settled machine: %+v", step)
		}
		w.memory = step.Memory
		w.pass(time.Hour)
	}
}

// TestTwoWhoDifferOnANode: two that want different things on a Node do not write to it without end,
// and the Node is judged meanwhile.
func TestTwoWhoDifferOnANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(false)
		w.settleDown()
		for range 60 {
			w.synced = false
			w.nodeReady = rapid.Bool().Draw(t, "ready")
			w.reconcile(func() fate { return goes })
			ready := w.api.Status.Condition(clusterv1alpha1.ConditionNodeReady).Status == metav1.ConditionTrue
			if ready != w.nodeReady {
				w.breaks("the Node is ready %t, the status says %t", w.nodeReady, ready)
			}
			w.pass(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
		}
		if len(w.broken) > 0 {
			t.Fatal(strings.Join(w.broken, "\n"))
		}
	})
}

// TestRefusedAfterAnother: a create that is refused for good says nothing of the one before it,
// whose answer was lost. A delete that meets the same refusal does not end the machine, in this
// process or a later one.
func TestRefusedAfterAnother(t *testing.T) {
	for name, lost := range map[string]func(*world){
		"a lost answer":        func(w *world) { w.answer(instance.OutcomeUnknown, true) },
		"a process that ended": (*world).crash,
	} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted by a later process %t", name, later), func(t *testing.T) {
				w := newWorld(false)
				refused := func() {
					w.sync()
					w.reconcile(func() fate { return goes })
					w.answer(instance.SpecInvalid, false)
					w.pass(settle)
				}
				w.reconcile(func() fate { return goes })
				lost(w)
				w.pass(settle)
				refused()
				refused()
				if w.api.Status.Phase != clusterv1alpha1.MachinePhaseFailed || w.made != 1 {
					t.Fatalf("%d VMs made, status %+v", w.made, w.api.Status)
				}
				if later {
					w.crash()
				}
				w.version++
				w.api.DeletionTimestamp = w.now
				for range 20 {
					refused()
				}
				if w.api == nil {
					t.Fatal(strings.Join(w.broken, "\n"))
				}
				w.settleDown()
				w.arrived()
				if len(w.broken) > 0 {
					t.Error(strings.Join(w.broken, "\n"))
				}
			})
		}
	}
}
