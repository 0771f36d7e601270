package lifecycle

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// born is a machine that comes with a providerID, and a Node that has it, too.
func born(s *State) {
	s.Machine.ProviderID = "cloud:///1"
	joined(metav1.ConditionTrue)(s)
	s.Node.ProviderID, s.Node.Synced = "cloud:///1", false
}

func lookFailed(class instance.Class) func(*State) {
	return func(s *State) {
		s.Driver.LastPoll = &instance.Observation{Failure: &instance.Failure{Class: class, Reason: string(class), Message: "its words"}, At: s.Now, Looks: 1}
	}
}

// upgraded is a machine whose status a core wrote that did not write down what the driver had
// confirmed.
func upgraded(s *State) { s.Machine.Status.ProviderID, s.Machine.Status.ProviderIDAliases = "", nil }

func uidTaken(s *State) { s.Machine.UIDTaken = "team/other" }

func longAgo(s *State) {
	s.Memory = Next(*s).Memory
	s.Now = s.Now.Add(driverDebounce)
}

// TestAdoption shows what counts of a providerID that comes with a machine.
func TestAdoption(t *testing.T) {
	const pending = clusterv1alpha1.MachinePhasePending
	vm := instance.Instance{ProviderID: "cloud:///1", State: instance.Running}
	checkSteps(t, map[string]wantStep{
		"the driver has not been asked yet: nothing is written": {
			given: born, poll: instance.PollPending, requeue: driverDebounce, silent: true,
		},
		"it cannot be asked for longer": {
			given: all(born, longAgo), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady Unknown NotAdopted", message: "has not been asked yet",
		},
		"it is away": {
			given: all(born, longAgo, func(s *State) { s.Driver.Ready, s.Driver.Unready = false, "gone" }), poll: instance.PollPending, phase: pending,
			condition: "Ready Unknown NotAdopted", message: "gone",
		},
		"there is no such driver": {
			given: all(born, func(s *State) { s.Driver.Unknown = "no driver" }), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady False DriverNotFound",
		},
		"what it would be asked with is not there": {
			given: all(born, func(s *State) {
				s.Driver.Trouble = &instance.Failure{Class: instance.Precondition, Reason: "ReferenceUnresolved", Message: "no Secret x"}
			}), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady Unknown NotAdopted", message: "no Secret x",
		},
		"it does not answer": {
			given: all(born, lookFailed(instance.Credentials), longAgo), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady Unknown NotAdopted", message: "its words",
		},
		"it knows of nothing, for now": {
			given: all(born, missing(1)), poll: instance.PollPending, requeue: driverDebounce, silent: true,
		},
		"it knows of nothing": {
			given: all(born, missing(2)), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady False NotAdopted", message: "knows no VM",
		},
		"it has the uid under another name": {
			given: all(born, lookFailed(instance.Conflict)), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady False NotAdopted",
		},
		"it knows what is left of a create": {
			given: all(born, seen(instance.Instance{State: instance.Failed, Reason: "CreateIncomplete"})), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady False NotAdopted",
		},
		"it names another VM": {
			given: all(born, seen(instance.Instance{ProviderID: "cloud:///2", State: instance.Running})), poll: instance.PollPending, phase: pending,
			condition: "InstanceReady False ProviderIDConflict", message: "cloud:///2",
		},
		"it confirms the VM": {given: all(born, seen(vm)), do: SyncNode, poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseProvisioned},
		"it confirms the VM by another of its ids": {
			given: all(born, seen(instance.Instance{ProviderID: "cloud://r/1", ProviderIDAliases: []string{"cloud:///1"}, State: instance.Running})),
			do:    SyncNode, poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"it confirms the VM beside another one": {
			given: all(born, seen(instance.Instance{ProviderID: "cloud:///0", DuplicateProviderIDs: []string{"cloud:///1"}, State: instance.Running})),
			do:    SyncNode, poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"a machine that runs and whose id changes": {
			given: all(running, seen(instance.Instance{ProviderID: "cloud:///2", State: instance.Running}), func(s *State) { s.Node.Synced = false }),
			poll:  instance.PollPending, phase: clusterv1alpha1.MachinePhaseRunning, condition: "InstanceReady False ProviderIDConflict",
		},
		"the uid is another machine's": {
			given: all(born, uidTaken, seen(vm)), phase: pending, requeue: uidRecheck,
			condition: "InstanceReady False MachineUIDTaken", message: "team/other",
		},
		"the uid is another machine's, and there is no id": {
			given: uidTaken, phase: pending, requeue: uidRecheck, condition: "InstanceReady False MachineUIDTaken",
		},
		"after an upgrade nothing is done or written before a look": {
			given: all(running, upgraded, notPolledYet, func(s *State) { s.Node.Synced = false }), poll: instance.PollPending,
			phase: clusterv1alpha1.MachinePhaseRunning, silent: true, condition: "Ready True MachineReady",
		},
		"after an upgrade a look confirms silently": {
			given: all(running, upgraded), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
		},
		"after an upgrade a VM that is gone is replaced": {
			given: all(running, upgraded, missing(2)), poll: instance.PollNever, phase: clusterv1alpha1.MachinePhaseFailed,
			condition: "InstanceReady False Missing",
		},
		"paused after an upgrade, its Node is left as it was shown": {
			given: all(running, upgraded, notPolledYet, joined(metav1.ConditionFalse), func(s *State) { s.Machine.Paused = Pause{"PausedByAnnotation", "Paused."} }),
			phase: clusterv1alpha1.MachinePhaseRunning, condition: "NodeReady True NodeReady",
		},
	})
}

// TestLeavingUnadopted shows how a machine goes whose providerID is not, or not yet, confirmed.
func TestLeavingUnadopted(t *testing.T) {
	const gone = clusterv1alpha1.MachinePhaseDeleting
	vm := instance.Instance{ProviderID: "cloud:///1", State: instance.Running}
	deletedByUID := func(s *State) {
		s.Memory = Next(*s).Memory
		succeeded(instance.Delete, nil)(s)
	}
	checkSteps(t, map[string]wantStep{
		"the driver is asked first": {
			given: all(born, deleting), poll: instance.PollPending, requeue: driverDebounce, silent: true,
		},
		"one that is away is waited for": {
			given: all(born, deleting, longAgo, func(s *State) { s.Driver.Ready, s.Driver.Unready = false, "gone" }), poll: instance.PollPending, phase: gone,
			condition: "InstanceReady Unknown NotAdopted", message: "gone",
		},
		"confirmed, it is drained": {given: all(born, deleting, seen(vm)), do: DrainNode, phase: gone},
		"nothing is known: what carries the uid is deleted": {
			given: all(born, deleting, missing(2)), do: Delete, phase: gone, condition: "Drained True NoNode",
		},
		"another VM carried the uid of one that ran, and is deleted: its Node stays": {
			given: all(running, deleting, seen(instance.Instance{ProviderID: "cloud:///2", State: instance.Running}), func(s *State) {
				// Its create was answered before.
				s.Memory.Last = &instance.Outcome{Operation: instance.Create, Ended: s.Now.Add(-time.Minute), Instance: &vm}
				for range 2 {
					s.Memory = Next(*s).Memory
					s.Driver.LastPoll, s.Driver.UnderWay = nil, true
				}
				s.Driver.UnderWay = false
				succeeded(instance.Delete, nil)(s)
			}), do: Release, requeue: deleteDebounce, silent: true, phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"another VM carries the uid: it is deleted": {
			given: all(born, deleting, seen(instance.Instance{ProviderID: "cloud:///2", State: instance.Running})), do: Delete, phase: gone,
			condition: "Drained True NoNode",
		},
		"nothing is left: only the machine goes": {given: all(born, deleting, missing(2), deletedByUID), do: Release, requeue: deleteDebounce, silent: true},
		"the uid belongs to another name: only the machine goes": {
			given: all(born, deleting, lookFailed(instance.Conflict)), do: Release, requeue: deleteDebounce, silent: true,
		},
		"a machine of an earlier core is not let go for that": {
			given: all(running, upgraded, deleting, lookFailed(instance.Conflict)), do: Delete, phase: gone,
		},
		"forgotten: the driver is not asked": {
			given: all(born, deleting, func(s *State) { s.Machine.Forgotten = true }), phase: gone, requeue: forgetRecheck,
			condition: "InstanceReady False " + clusterv1alpha1.ReasonInstanceForgotten, message: "cloud:///1",
		},
		"the uid is another machine's: only the machine goes": {
			given: all(born, uidTaken, deleting, seen(vm)), do: Release, requeue: deleteDebounce, silent: true,
		},
		"a machine without a uid has nothing": {
			given: all(born, deleting, func(s *State) { s.Machine.UID = "" }), do: Release, requeue: deleteDebounce, silent: true,
		},
		"a delete that the driver does not understand, of nothing": {
			given: all(born, deleting, missing(2), func(s *State) {
				s.Memory = Next(*s).Memory
				ended(instance.Delete, instance.Failure{Class: instance.SpecInvalid, Reason: "SpecInvalid"})(s)
			}), do: Release, poll: instance.PollPending, requeue: deleteDebounce, silent: true,
		},
	})
}

// TestTakingOverTheNodesForm: a Node that has another of the VM's ids is the machine's, whose
// providerID becomes the Node's once the API server knows that it may.
func TestTakingOverTheNodesForm(t *testing.T) {
	alias := func(s *State) {
		s.Driver.LastPoll.Instance.ProviderIDAliases = []string{"cloud://r/1"}
		s.Node.ProviderID = "cloud://r/1"
	}
	checkSteps(t, map[string]wantStep{
		"the alias is written down first": {
			given: all(running, alias), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"then the Node's form is": {
			given: all(running, alias, func(s *State) { s.Machine.Status = Next(*s).Status }), do: RecordProviderID,
			poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
		},
	})
	s := given(running, alias)
	s.Machine.Status = Next(s).Status
	if step := Next(s); step.ProviderID != "cloud://r/1" {
		t.Errorf("providerID becomes %q", step.ProviderID)
	}
	s.Machine.ProviderID, s.Memory = "cloud://r/1", Memory{}
	if ids, want := s.KnownIDs(), []string{"cloud:///1", "cloud://r/1"}; !slices.Equal(ids, want) {
		t.Errorf("known as %q, want %q", ids, want)
	}
	notPolledYet(&s)
	if ids, want := s.KnownIDs(), []string{"cloud:///1", "cloud://r/1"}; !s.Confirmed() || !slices.Equal(ids, want) {
		t.Errorf("a process that has seen nothing knows it as %q, want %q", ids, want)
	}
	seen(instance.Instance{ProviderID: "cloud:///0", DuplicateProviderIDs: []string{"cloud://r/1"}})(&s)
	if ids, want := s.KnownIDs(), []string{"cloud:///0", "cloud://r/1"}; !slices.Equal(ids, want) {
		t.Errorf("beside another VM it is known as %q, want %q", ids, want)
	}
	notPolledYet(&s)
	s.Machine.ProviderID = "cloud:///2"
	if s.Confirmed() || s.KnownIDs() != nil {
		t.Error("an id that was never confirmed is known")
	}
}
