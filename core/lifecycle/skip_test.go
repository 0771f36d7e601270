package lifecycle

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

func skipsDrain(s *State) { s.Machine.SkipsDrain = true }

func skipsVolumes(s *State) { s.Machine.SkipsVolumes = true }

// TestLIFE10_SkippedDrain shows each decision on a machine whose drain an annotation skips.
func TestLIFE10_SkippedDrain(t *testing.T) {
	const deletingPhase = clusterv1alpha1.MachinePhaseDeleting
	const message = "The annotation machine.cluster.x-k8s.io/exclude-node-draining skips the drain of Node node; the VM goes with the pods that are on it."
	shown := func(given func(*State)) wantStep {
		return wantStep{given: given, requeue: recordedRecheck, phase: deletingPhase, condition: "Drained False DrainSkipped", message: message}
	}
	checkSteps(t, map[string]wantStep{
		"it means nothing before the machine is deleted": {
			given: all(running, skipsDrain, skipsVolumes), silent: true, poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"that it is skipped is written down first":      shown(all(running, deleting, skipsDrain)),
		"also in the middle of a drain":                 shown(all(running, deleting, func(s *State) { s.Drain = &Drain{Remaining: "a/b"} }, told, skipsDrain)),
		"and of one that a budget blocks":               shown(all(running, deleting, func(s *State) { s.Drain = &Drain{Blocked: "budget"} }, told, skipsDrain)),
		"then the VM goes":                              {given: all(running, deleting, skipsDrain, told), do: Delete, silent: true, phase: deletingPhase},
		"also where the annotation is taken away again": {given: all(running, deleting, drained("False", "DrainSkipped")), do: Delete, silent: true, phase: deletingPhase},
		"the sum of all speaks of the VM": {
			given: all(running, deleting, skipsDrain, told), do: Delete, silent: true, phase: deletingPhase, condition: "Ready False Deleting",
		},
		"pre-drain hooks hold it": {
			given: all(running, deleting, heldBeforeDrain, skipsDrain), poll: instance.PollSettled, phase: deletingPhase,
			condition: "Drained Unknown WaitingForPreDrainHooks",
		},
		"pre-terminate hooks hold what comes after it": {
			given: all(running, deleting, heldBeforeTerminate, skipsDrain, told), poll: instance.PollSettled, phase: deletingPhase,
			condition: "InstanceReady False WaitingForPreTerminateHooks",
		},
		"a machine without a Node has none to skip": {
			given: all(intended, deleting, skipsDrain), do: Delete, phase: deletingPhase, condition: "Drained True NoNode",
		},
		"one that was over before stays so": {
			given: all(running, deleting, drained("True", "Drained"), skipsDrain), do: Delete, silent: true, phase: deletingPhase,
		},
		"volumes are looked for": {
			given: all(running, deleting, skipsDrain, told, notLooked), do: CheckVolumes, phase: deletingPhase,
		},
		"and those that are found are waited for": {
			given: all(running, deleting, skipsDrain, told, attached("pv-a"), waitedFor(drainDebounce)), poll: instance.PollSettled, requeue: detachRecheck,
			phase: deletingPhase, condition: "VolumesDetached False WaitingForVolumes", message: "pv-a",
		},
	})
	step := Next(given(running, deleting, skipsDrain))
	if len(step.Events) != 1 || !step.Events[0].Warning || step.Events[0].Reason != "DrainSkipped" || step.Events[0].Message != message {
		t.Errorf("tells %+v", step.Events)
	}
	for _, c := range []struct {
		given func(*State)
		want  bool
	}{
		{all(running, deleting, skipsDrain, told), true},
		{all(running, deleting, drained("True", "Drained")), false},
		{running, false},
	} {
		if s := given(c.given).Machine.Status; s.IsDrainSkipped() != c.want {
			t.Errorf("of %+v it is said that the drain was skipped: %t", s.Conditions, !c.want)
		}
	}
}

// TestLIFE10_SkippedWaitForVolumes shows each decision on a machine with an annotation that no
// volume is to be waited for.
func TestLIFE10_SkippedWaitForVolumes(t *testing.T) {
	const deletingPhase = clusterv1alpha1.MachinePhaseDeleting
	const names = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
	shown := func(given func(*State), message string) wantStep {
		return wantStep{
			given: given, poll: instance.PollSettled, requeue: recordedRecheck, phase: deletingPhase,
			condition: "VolumesDetached False VolumeWaitSkipped", message: message,
		}
	}
	const message = "The annotation " + names + " lets the VM go with the volumes that are attached to Node node: pv-a."
	checkSteps(t, map[string]wantStep{
		"volumes are looked for":                {given: all(going, skipsVolumes, notLooked), do: CheckVolumes, phase: deletingPhase},
		"without any nothing is said":           {given: all(going, skipsVolumes), do: Delete, phase: deletingPhase, condition: "VolumesDetached  "},
		"what the VM goes with is written down": shown(all(going, skipsVolumes, attached("pv-a")), message),
		"also in the middle of the wait":        shown(all(going, attached("pv-a"), waitedFor(drainDebounce+time.Second), skipsVolumes), message),
		"and of one without end":                shown(all(going, attached("pv-a"), detachWithin(0), waitedFor(drainDebounce+time.Second), skipsVolumes), message),
		"also where nobody can tell": shown(all(going, skipsVolumes, func(s *State) { s.Volumes = &Volumes{Error: "forbidden"} }),
			"attached to Node node. It cannot be told which of them belong to pods that stay on the Node: forbidden"),
		"then the VM goes": {
			given: all(going, skipsVolumes, attached("pv-a"), told), do: Delete, silent: true, phase: deletingPhase, condition: "VolumesDetached False VolumeWaitSkipped",
		},
		"also where the annotation is taken away again": {
			given: all(going, skipsVolumes, attached("pv-a"), told, restarted, func(s *State) { s.Machine.SkipsVolumes = false }), do: Delete, silent: true, phase: deletingPhase,
		},
		"the drain is not skipped for it": {given: all(running, deleting, skipsVolumes), do: DrainNode, phase: deletingPhase},
		"pre-terminate hooks hold the VM": {
			given: all(going, skipsVolumes, heldBeforeTerminate, attached("pv-a"), told), poll: instance.PollSettled, phase: deletingPhase,
			condition: "InstanceReady False WaitingForPreTerminateHooks",
		},
	})
	step := Next(given(going, skipsVolumes, attached("pv-a")))
	if len(step.Events) != 1 || !step.Events[0].Warning || step.Events[0].Message != message {
		t.Errorf("tells %+v", step.Events)
	}
}

// TestLIFE10_WhatIsSkippedIsAskedFor: drains and waits end early where somebody asks for that, and
// only there. That is written down before the VM goes.
func TestLIFE10_WhatIsSkippedIsAskedFor(t *testing.T) {
	const skippedDrain, skippedWait = clusterv1alpha1.ReasonDrainSkipped, clusterv1alpha1.ReasonVolumeWaitSkipped
	ends := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(false)
		w.settleDown()
		w.attach(2, false)
		w.pods, w.blocked = 1, rapid.Bool().Draw(t, "blocked")
		w.oneByOne = rapid.Bool().Draw(t, "oneByOne")
		w.end()
		w.sync()
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			if rapid.IntRange(0, 3).Draw(t, "skip") == 0 {
				w.skip(rapid.Bool().Draw(t, "drain"), rapid.Bool().Draw(t, "volumes"))
			}
			w.disturbVolumes(t)
			if w.api != nil {
				ends[w.api.Status.Condition(clusterv1alpha1.ConditionDrained).Reason]++
				ends[w.api.Status.Condition(clusterv1alpha1.ConditionVolumesDetached).Reason]++
			}
		}
		w.settleDown()
		w.arrived()
		if len(w.broken) > 0 {
			t.Fatal(strings.Join(w.broken, "\n"))
		}
	})
	if ends[skippedDrain] == 0 || ends[skippedWait] == 0 {
		t.Errorf("histories in which too seldom something is skipped: %v", ends)
	}
}

// skip has annotations skip the drain, or the wait for volumes, or takes them away.
func (w *world) skip(drain, volumes bool) {
	if w.api == nil {
		return
	}
	w.version++
	w.api.SkipsDrain, w.api.SkipsVolumes = drain, volumes
}

// inspectSkips judges what a status skips that is about to be written.
func (w *world) inspectSkips(s *State, to Status) {
	for typ, end := range map[string]struct {
		reason string
		asked  bool
	}{
		clusterv1alpha1.ConditionDrained:         {clusterv1alpha1.ReasonDrainSkipped, s.Machine.SkipsDrain},
		clusterv1alpha1.ConditionVolumesDetached: {clusterv1alpha1.ReasonVolumeWaitSkipped, s.Machine.SkipsVolumes},
	} {
		if is, was := to.Condition(typ), s.Machine.Status.Condition(typ); is.Reason == end.reason && was.Reason != end.reason && !end.asked {
			w.breaks("%s though nobody asks for that", end.reason)
		}
	}
}
