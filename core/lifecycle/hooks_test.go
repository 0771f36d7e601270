package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

func heldBeforeDrain(s *State) { s.Machine.PreDrainHooks = "hook/a of backup" }

func heldBeforeTerminate(s *State) { s.Machine.PreTerminateHooks = "hook/b of storage" }

// TestLIFE9_Hooks shows each decision on a machine that hooks hold on its way out.
func TestLIFE9_Hooks(t *testing.T) {
	const deletingPhase = clusterv1alpha1.MachinePhaseDeleting
	checkSteps(t, map[string]wantStep{
		"a hook means nothing before the machine is deleted": {
			given: all(running, heldBeforeDrain, heldBeforeTerminate), silent: true, poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"a hook holds the drain": {
			given: all(running, deleting, heldBeforeDrain), poll: instance.PollSettled, phase: deletingPhase,
			condition: "Drained Unknown WaitingForPreDrainHooks", message: "hook/a of backup",
		},
		"and the sum of all says so": {
			given: all(running, deleting, heldBeforeDrain), poll: instance.PollSettled, phase: deletingPhase,
			condition: "Ready False WaitingForPreDrainHooks", message: "hook/a of backup",
		},
		"a machine without a Node has no drain to hold": {
			given: all(intended, deleting, heldBeforeDrain), do: Delete, phase: deletingPhase, condition: "Drained True NoNode",
		},
		"a hook does not hide that the driver has lost what it knew": {
			given: all(provisioned, deleting, heldBeforeTerminate, func(s *State) {
				s.Driver.LastPoll = nil
				s.Machine.Status = s.Machine.Status.set(metav1.Condition{Type: "InstanceReady", Status: "False", Reason: "DataLoss", Message: "lost"}, *s)
			}), poll: instance.PollSettled, phase: deletingPhase, condition: "InstanceReady False DataLoss",
		},
		"a hook that comes while pods are evicted holds the rest": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Remaining: "a/b"} }, told, heldBeforeDrain), poll: instance.PollSettled, phase: deletingPhase,
			condition: "Ready False WaitingForPreDrainHooks",
		},
		"one that comes when the drain is over holds the VM": {
			given: all(running, deleting, drained("True", "Drained"), heldBeforeDrain), poll: instance.PollSettled, phase: deletingPhase,
			condition: "InstanceReady False WaitingForPreTerminateHooks", message: "taken away: hook/a of backup.",
		},
		"beside those that are for it": {
			given: all(running, deleting, drained("True", "Drained"), heldBeforeDrain, heldBeforeTerminate), poll: instance.PollSettled, phase: deletingPhase,
			condition: "InstanceReady False WaitingForPreTerminateHooks", message: "hook/a of backup; hook/b of storage.",
		},
		"the drain begins when the hook is gone": {
			given: all(running, deleting, heldBeforeDrain, told, func(s *State) { s.Machine.PreDrainHooks = "" }), do: DrainNode, phase: deletingPhase,
		},
		"a hook does not hold the drain that comes before it": {
			given: all(running, deleting, heldBeforeTerminate), do: DrainNode, phase: deletingPhase,
		},
		"a hook holds the VM": {
			given: all(running, deleting, drainedNode, heldBeforeTerminate), poll: instance.PollSettled, phase: deletingPhase,
			condition: "InstanceReady False WaitingForPreTerminateHooks", message: "hook/b of storage",
		},
		"also one that is to be deleted once more": {
			given: all(provisioned, deleting, heldBeforeTerminate, succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}), missing(1)),
			poll:  instance.PollSettled, phase: deletingPhase, condition: "Ready False WaitingForPreTerminateHooks",
		},
		"a machine for which nothing was made is not held before it": {
			given: all(deleting, heldBeforeTerminate), do: Release, silent: true, requeue: deleteDebounce,
		},
		"nor one that is forgotten": {
			given: all(running, deleting, toForget, told, drainedNode, heldBeforeTerminate), do: RemoveNode, phase: deletingPhase,
		},
		"nor one whose VM is gone": {
			given: all(running, deleting, heldBeforeTerminate, func(s *State) { s.Memory.Gone = true }), do: RemoveNode, phase: deletingPhase,
		},
	})
}

// TestLIFE9_AHookHoldsNoDriverStateBack: what the driver wants to be told again is written down
// though nothing else happens for hours.
func TestLIFE9_AHookHoldsNoDriverStateBack(t *testing.T) {
	for name, held := range map[string]func(*State){"the drain": heldBeforeDrain, "the VM": all(drainedNode, heldBeforeTerminate)} {
		s := given(running, deleting, held, told, func(s *State) { s.Memory.LastKnownState, s.Memory.LastKnownStateAt = []byte("new"), s.Now })
		if step := Next(s); string(step.Status.LastKnownState) != "new" || !step.Write {
			t.Errorf("with a hook that holds %s: state %q, written %t", name, step.Status.LastKnownState, step.Write)
		}
	}
}

// TestLIFE9_AHookTakesNoTimeOfTheDrain: the drain has all its time once nothing holds it.
func TestLIFE9_AHookTakesNoTimeOfTheDrain(t *testing.T) {
	s := given(running, deleting, heldBeforeDrain, func(s *State) { s.Machine.DrainTimeout = time.Hour }, told)
	for range 3 {
		later(time.Hour)(&s)
		s.Memory = Next(s).Memory
	}
	s.Machine.PreDrainHooks = ""
	s.Drain = &Drain{Remaining: "a/b"}
	if c := Next(s).Status.Condition(clusterv1alpha1.ConditionDrained); c.Reason != clusterv1alpha1.ReasonDraining {
		t.Errorf("Drained is %s %s: %s", c.Status, c.Reason, c.Message)
	}
}

// hook holds the drain, or the VM, of the machine, or lets it go.
func (w *world) hook(preDrain, preTerminate bool) {
	if w.api == nil {
		return
	}
	w.version++
	w.api.PreDrainHooks, w.api.PreTerminateHooks = "", ""
	if preDrain {
		w.api.PreDrainHooks = "a of b"
	}
	if preTerminate {
		w.api.PreTerminateHooks = "c of d"
	}
}
