package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// going is a machine on its way out whose Node is drained, as the status says.
var going = all(running, deleting, drained("True", "Drained"))

// attached has a look find volumes.
func attached(names string) func(*State) {
	return func(s *State) { s.Volumes = &Volumes{Attached: names} }
}

func notLooked(s *State) { s.Volumes = nil }

func detachWithin(d time.Duration) func(*State) {
	return func(s *State) { s.Machine.VolumeDetachTimeout = d }
}

// waitedFor has the machine wait for volumes for d. What happens is written down each second.
func waitedFor(d time.Duration) func(*State) {
	return func(s *State) {
		for range int(d / time.Second) {
			if step := Next(*s); step.Write {
				s.Machine.Status = step.Status
			}
			s.Memory = Next(*s).Memory
			later(time.Second)(s)
		}
	}
}

// deleteSent has a delete be under way for so long that the status says so.
func deleteSent(s *State) {
	s.Memory = Next(*s).Memory
	s.Driver.UnderWay = true
	waited(deleteDebounce)(s)
}

// restarted has another process go on.
func restarted(s *State) { s.Memory, s.Clock = Memory{}, Clock{Runs: true} }

// TestLIFE9_Volumes shows each decision on a machine whose Node is drained.
func TestLIFE9_Volumes(t *testing.T) {
	const deletingPhase = clusterv1alpha1.MachinePhaseDeleting
	looks := func(given func(*State)) wantStep {
		return wantStep{given: all(given, notLooked), do: CheckVolumes, phase: deletingPhase}
	}
	goes := func(given func(*State), condition string) wantStep {
		return wantStep{given: given, do: Delete, phase: deletingPhase, condition: condition}
	}
	waits := func(given func(*State), message string) wantStep {
		return wantStep{
			given: given, poll: instance.PollSettled, requeue: detachRecheck, phase: deletingPhase,
			condition: "VolumesDetached False WaitingForVolumes", message: message,
		}
	}
	quietly := func(w wantStep, requeue time.Duration) wantStep {
		w.silent, w.requeue, w.condition = true, requeue, "VolumesDetached  "
		return w
	}
	summed := waits(all(going, attached("pv-a"), waitedFor(drainDebounce)), "pv-a")
	summed.condition = "Ready False WaitingForVolumes"
	checkSteps(t, map[string]wantStep{
		"volumes are looked for once the Node is drained": looks(all(running, deleting, drainedNode)),
		"and by each process":                             looks(going),
		"not before":                                      {given: all(running, deleting, notLooked), do: DrainNode, phase: deletingPhase},
		"without any the VM goes, and nothing is said":    goes(going, "VolumesDetached  "),
		"volumes of a machine that was not said to go are shown at once": waits(
			all(running, deleting, drainedNode, attached("pv-a; pv-b")), "Waiting for volumes to be detached from Node node: pv-a; pv-b."),
		"others when they have been attached for a while": waits(all(going, attached("pv-a"), waitedFor(drainDebounce)), "pv-a."),
		"and the sum of all says so":                      summed,
		"but not before":                                  quietly(waits(all(going, attached("pv-a"), waitedFor(drainDebounce-time.Second)), ""), time.Second),
		"one that is detached soon costs no write": {
			given: all(going, attached("pv-a"), waitedFor(drainDebounce-time.Second), attached("")), do: Delete, phase: deletingPhase, silent: true,
			condition: "VolumesDetached  ",
		},
		"claims that cannot be read are waited for": waits(all(running, deleting, drainedNode, func(s *State) {
			s.Volumes = &Volumes{Attached: "pv-a", Error: "forbidden"}
		}), "pv-a. It cannot be told which of them belong to pods that stay on the Node: forbidden"),
		"so is a Node of which nothing can be read": waits(all(running, deleting, drainedNode, func(s *State) {
			s.Volumes = &Volumes{Error: "forbidden"}
		}), "from Node node. It cannot be told"),
		"a drain that took too long leaves volumes to wait for": looks(all(running, deleting, drained("False", "DrainTimedOut"))),
		"pre-terminate hooks come after them": waits(
			all(running, deleting, drainedNode, heldBeforeTerminate, attached("pv-a")), "pv-a"),
	})
}

// TestLIFE9_VolumesAreNotWaitedFor shows what volumes do not hold.
func TestLIFE9_VolumesAreNotWaitedFor(t *testing.T) {
	stuck := attached("pv-a")
	for name, c := range map[string]struct {
		given func(*State)
		do    Action
	}{
		"a machine that is not deleted":  {all(running, stuck), Nothing},
		"one without a Node":             {all(going, stuck, func(s *State) { s.Node = Node{} }), Delete},
		"one of several Nodes":           {all(going, stuck, func(s *State) { s.Node = Node{Match: NodeConflicting, Conflict: "several"} }), Delete},
		"an unreachable Node":            {all(running, deleting, stuck, silentFor(5*time.Minute, quiet())), Delete},
		"one that was before":            {all(running, deleting, drained("True", "NodeUnreachable"), stuck), Delete},
		"a VM that is gone":              {all(going, stuck, func(s *State) { s.Memory.Gone = true }), RemoveNode},
		"a VM that the driver misses":    {all(going, stuck, missing(missesUntilGone)), Delete},
		"a machine that is forgotten":    {all(going, toForget, told, stuck), RemoveNode},
		"one that they held till now":    {all(going, stuck, waitedFor(drainDebounce+time.Second), missing(missesUntilGone)), Delete},
		"one whose volumes are detached": {all(going, stuck, func(s *State) { s.Memory.Detached = true }), Delete},
		"as an earlier process has seen": {all(going, stuck, func(s *State) {
			s.Machine.Status = s.Machine.Status.set(condition("VolumesDetached", metav1.ConditionTrue, "Detached", ""), *s)
		}), Delete},
	} {
		t.Run(name, func(t *testing.T) {
			for _, look := range []func(*State){func(*State) {}, notLooked} {
				if step := Next(given(c.given, look)); step.Do != c.do {
					t.Errorf("does %q, want %q", step.Do, c.do)
				}
			}
		})
	}
	s := given(running, func(s *State) {
		s.Machine.Status = s.Machine.Status.set(condition("VolumesDetached", metav1.ConditionTrue, "Detached", ""), *s)
	})
	if isDetachRecorded(s.Machine.Status) {
		t.Error("what is written down of a machine that is not on its way out counts")
	}
}

// TestLIFE9_AVolumeThatStaysGoesWithTheVM: when the time is over, it is written down what is left.
// Then the VM goes.
func TestLIFE9_AVolumeThatStaysGoesWithTheVM(t *testing.T) {
	s := given(going, attached("pv-a"), detachWithin(time.Minute), waitedFor(time.Minute-time.Second))
	if step := Next(s); step.Do != Nothing || !step.RequeueAt.Equal(s.Now.Add(time.Second)) {
		t.Errorf("a second before the end: does %q, looks again at %s of %s", step.Do, step.RequeueAt, s.Now)
	}
	later(time.Second)(&s)
	step := Next(s)
	want := "Volumes were not detached from Node node within 1m0s; the VM goes with those that are left: pv-a."
	c := step.Status.Condition(clusterv1alpha1.ConditionVolumesDetached)
	if step.Do != Nothing || !step.Write || c.Status != metav1.ConditionFalse || c.Reason != "VolumeDetachTimedOut" || c.Message != want {
		t.Errorf("does %q, writes %t: %+v", step.Do, step.Write, c)
	}
	if len(step.Events) != 1 || !step.Events[0].Warning || step.Events[0].Message != want {
		t.Errorf("tells %+v", step.Events)
	}
	if !step.RequeueAt.Equal(s.Now.Add(recordedRecheck)) {
		t.Errorf("decides again at %s of %s", step.RequeueAt, s.Now)
	}
	s.Machine.Status, s.Memory = step.Status, step.Memory
	for _, process := range []func(*State){func(*State) {}, restarted} {
		process(&s)
		if step := Next(s); step.Do != Delete || len(step.Events) > 0 {
			t.Errorf("does %q, tells %+v", step.Do, step.Events)
		}
	}
}

// TestLIFE9_VolumesHaveTheirTime shows for how long volumes may be attached.
func TestLIFE9_VolumesHaveTheirTime(t *testing.T) {
	waiting := all(going, attached("pv-a"), detachWithin(10*time.Minute), waitedFor(drainDebounce+time.Second))
	for name, c := range map[string]struct {
		given func(*State)
		over  bool
	}{
		"all of it":             {all(waiting, later(10*time.Minute)), true},
		"a little less":         {all(waiting, later(10*time.Minute-drainDebounce-2*time.Second)), false},
		"not while nobody sees": {all(waiting, later(time.Hour), stopped(time.Hour)), false},
		"without a limit":       {all(waiting, detachWithin(0), later(1000*time.Hour)), false},
		"a process that starts late gives them some of its own time": {
			all(waiting, later(time.Hour), restarted, waited(leastWait-time.Second)), false,
		},
		"but no more than that": {all(waiting, later(time.Hour), restarted, waited(leastWait)), true},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(given(c.given))
			reason := step.Status.Condition(clusterv1alpha1.ConditionVolumesDetached).Reason
			if over := reason == clusterv1alpha1.ReasonVolumeDetachTimedOut; over != c.over || step.Do != Nothing {
				t.Errorf("does %q, and says %s", step.Do, reason)
			}
		})
	}
}

// TestLIFE9_WhatIsSaidOfVolumesEnds: a condition that says that volumes are waited for does not
// outlive the wait.
func TestLIFE9_WhatIsSaidOfVolumesEnds(t *testing.T) {
	waiting := all(going, attached("pv-a"), waitedFor(drainDebounce+time.Second))
	for name, c := range map[string]struct {
		given func(*State)
		want  string
	}{
		"none was attached": {all(going, attached(""), deleteSent), " "},
		"they are detached": {all(waiting, attached(""), deleteSent), "True Detached"},
		"they were, before it was said": {
			all(going, attached("pv-a"), waitedFor(drainDebounce-time.Second), attached(""), deleteSent), "True Detached",
		},
		"another process sees that":      {all(waiting, restarted, attached(""), deleteSent), "True Detached"},
		"the VM is gone":                 {all(waiting, missing(missesUntilGone), deleteSent), " "},
		"it stays until there is a look": {all(waiting, notLooked), "False WaitingForVolumes"},
		"and while the machine is paused": {
			all(waiting, func(s *State) { s.Machine.Paused = Pause{Reason: "PausedByAnnotation", Message: "Paused."} }), "False WaitingForVolumes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Next(given(c.given)).Status.Condition(clusterv1alpha1.ConditionVolumesDetached)
			if said := fmt.Sprintf("%s %s", got.Status, got.Reason); said != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// TestLIFE9_NoVolumeGoesWithItsVMTooEarly: a machine that runs is deleted while volumes are
// attached to its Node. Processes come and go, and so do the API server, pods and the kubelet. The
// world breaks at a delete that comes too early, and where the machine does not go in the end.
func TestLIFE9_NoVolumeGoesWithItsVMTooEarly(t *testing.T) {
	const timedOut, detached = clusterv1alpha1.ReasonVolumeDetachTimedOut, clusterv1alpha1.ReasonDetached
	ends := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(false)
		w.api.VolumeDetachTimeout = time.Duration(rapid.IntRange(0, 4).Draw(t, "timeout")) * time.Minute
		w.settleDown()
		w.attach(2, false)
		w.end()
		w.sync()
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			w.disturbVolumes(t)
			if w.api != nil {
				ends[w.api.Status.Condition(clusterv1alpha1.ConditionVolumesDetached).Reason]++
			}
		}
		w.settleDown()
		w.arrived()
		if len(w.broken) > 0 {
			t.Fatal(strings.Join(w.broken, "\n"))
		}
	})
	if ends[timedOut] == 0 || ends[detached] == 0 {
		t.Errorf("histories that end too seldom in one way: %v", ends)
	}
}

// disturbVolumes lets one thing happen to a machine on its way out, or to the volumes of its Node.
func (w *world) disturbVolumes(t *rapid.T) {
	lose := func() fate {
		return rapid.SampledFrom([]fate{goes, goes, goes, goes, goes, diesBefore, diesAfter, refused}).Draw(t, "fate")
	}
	switch rapid.IntRange(0, 15).Draw(t, "what") {
	case 0, 1, 2, 3:
		w.sync()
		w.reconcile(lose)
	case 4, 5, 6:
		w.pass(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
	case 7:
		w.attach(rapid.IntRange(0, 2).Draw(t, "volumes"), rapid.Bool().Draw(t, "claimsHidden"))
	case 8:
		w.answer(rapid.SampledFrom(classes).Draw(t, "class"), rapid.Bool().Draw(t, "reached"))
	case 9:
		w.crash()
	case 10:
		w.leave(rapid.Bool().Draw(t, "away"), rapid.IntRange(0, 3).Draw(t, "dark") == 0)
	case 11:
		w.pods, w.blocked = rapid.IntRange(0, 1).Draw(t, "pods"), rapid.IntRange(0, 3).Draw(t, "blocked") == 0
	case 12:
		w.beat(rapid.Bool().Draw(t, "renews"), rapid.Bool().Draw(t, "silent"), false)
	case 13:
		w.observe()
	case 14:
		w.annotate(rapid.Bool().Draw(t, "paused"), false)
		w.forget(rapid.IntRange(0, 3).Draw(t, "forget") == 0)
	case 15:
		w.cloud(rapid.SampledFrom([]instance.State{instance.Running, instance.Stopped, "gone"}).Draw(t, "vm"))
	}
}
