package lifecycle

import (
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

func paused(s *State) { s.Machine.Paused = Pause{Reason: "PausedByAnnotation", Message: "Paused."} }

func deleteNow(s *State) { s.Machine.DeleteNow = "the Machine" }

// TestPauseAndDeleteNow shows what becomes of machines that are paused, or that somebody wants to
// go.
func TestPauseAndDeleteNow(t *testing.T) {
	checkSteps(t, map[string]wantStep{
		"a paused machine is not created": {
			given: paused, condition: "Ready False Creating", phase: clusterv1alpha1.MachinePhasePending,
		},
		"nor given a uid": {
			given:     all(paused, func(s *State) { s.Machine.UID = "" }),
			condition: "Paused True PausedByAnnotation", message: "Paused.", phase: clusterv1alpha1.MachinePhasePending,
		},
		"its Node is not synced": {
			given:     all(provisioned, joined("True"), func(s *State) { s.Node.Synced = false }, paused),
			condition: "Paused True PausedByAnnotation", phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"how the Node is, is shown": {
			given: all(running, joined("Unknown"), paused), condition: "Ready Unknown NodeUnknown", phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"and that it is gone": {
			given:     all(running, func(s *State) { s.Node = Node{} }, paused),
			condition: "Ready False NodeMissing", phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"a paused machine is not deleted": {
			given:     all(running, deleting, paused),
			condition: "Paused True PausedByAnnotation", message: "to be deleted; that waits", phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"nor by the wish of somebody": {
			given: all(running, deleteNow, paused), condition: "Paused True PausedByAnnotation", phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"nor does the time run in which it is to be drained": {
			given: all(running, deleting, func(s *State) { s.Memory = Next(*s).Memory }, paused, waited(time.Hour),
				func(s *State) { s.Machine.Paused = Pause{} }), do: DrainNode, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"it says so once": {
			given: all(running, paused, func(s *State) { s.Machine.Status = Next(*s).Status }), silent: true,
			condition: "Paused True PausedByAnnotation", phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"and no more when it goes on": {
			given: all(running, paused, func(s *State) {
				s.Machine.Status = Next(*s).Status
				s.Machine.Paused = Pause{}
			}), poll: instance.PollSettled, condition: "Ready True MachineReady", phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"a machine that is to go now is deleted": {
			given: all(running, deleteNow), do: DeleteNow, phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
		},
		"also one that has failed": {
			given: all(deleteNow, func(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseFailed }),
			do:    DeleteNow, phase: clusterv1alpha1.MachinePhaseFailed, silent: true,
		},
		"once": {
			given: all(running, deleteNow, func(s *State) { s.Memory = Next(*s).Memory }), requeue: deleteNowRetry,
			phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
		},
		"and again when that had no effect": {
			given: all(running, deleteNow, func(s *State) { s.Memory = Next(*s).Memory }, later(deleteNowRetry)), do: DeleteNow,
			phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
		},
	})
}

// TestPausedOnce: one event tells of a pause.
func TestPausedOnce(t *testing.T) {
	s := given(running, paused)
	first := Next(s)
	s.Machine.Status = first.Status
	if again := Next(s); len(first.Events) != 1 || len(again.Events) != 0 {
		t.Errorf("events %+v, then %+v", first.Events, again.Events)
	}
}
