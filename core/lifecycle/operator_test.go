package lifecycle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// toForget is a machine on its way out that is to go without its VM.
func toForget(s *State) { s.Machine.Forgotten = true }

// told writes down what the step before has decided.
func told(s *State) { s.Machine.Status = Next(*s).Status }

// drainedNode: no pod is left on the Node.
func drainedNode(s *State) { s.Drain = &Drain{Done: true} }

// TestForgetting shows each decision on a machine that goes without its VM.
func TestForgetting(t *testing.T) {
	const deletingPhase = clusterv1alpha1.MachinePhaseDeleting
	checkSteps(t, map[string]wantStep{
		"what is left behind is written down first": {
			given: all(running, deleting, toForget), requeue: forgetRecheck, phase: deletingPhase,
			condition: "InstanceReady False Forgotten", message: "machineUID uid, VM cloud:///1",
		},
		"VMs that must not be are told of, too": {
			given: all(running, deleting, toForget, func(s *State) {
				s.Driver.LastPoll = &instance.Observation{At: s.Now, Looks: 1, Instance: &instance.Instance{
					ProviderID: "cloud:///1", State: instance.Running, DuplicateProviderIDs: []string{"cloud:///2", "cloud:///3"},
				}}
			}), requeue: forgetRecheck, phase: deletingPhase,
			condition: "InstanceReady False Forgotten", message: "VM cloud:///1, VM cloud:///2, VM cloud:///3.",
		},
		"a VM that nobody has seen is told of by its uid": {
			given: all(intended, deleting, toForget), requeue: forgetRecheck, phase: deletingPhase,
			condition: "InstanceReady False Forgotten", message: "in the cloud: machineUID uid.",
		},
		"a call that is under way may yet name the VM": {
			given: all(intended, deleting, toForget, func(s *State) { s.Driver.UnderWay = true }), phase: deletingPhase,
			condition: "InstanceReady False Deleting", message: "under way",
		},
		"a VM that is known only later is told of, too": {
			given: all(intended, deleting, toForget, told, func(s *State) { s.Machine.ProviderID = "cloud:///9" }), requeue: forgetRecheck,
			phase: deletingPhase, condition: "InstanceReady False Forgotten", message: "VM cloud:///9",
		},
		"the Node is drained as ever": {
			given: all(running, deleting, toForget, told), do: DrainNode, phase: deletingPhase,
			condition: "InstanceReady False Forgotten",
		},
		"the Node goes without a call to the driver": {
			given: all(running, deleting, toForget, told, drainedNode), do: RemoveNode, phase: deletingPhase,
		},
		"a driver that nobody knows does not matter": {
			given: all(running, deleting, toForget, told, drainedNode, func(s *State) { s.Driver.Unknown = "no driver" }), do: RemoveNode,
			phase: deletingPhase,
		},
		"then the machine goes, and what is left behind is told once more": {
			given: all(intended, deleting, toForget, told), do: Release, phase: deletingPhase,
			condition: "InstanceReady False Forgotten", silent: true, requeue: deleteDebounce,
		},
		"a machine that was never asked for leaves nothing behind": {
			given: all(deleting, toForget), do: Release, silent: true, requeue: deleteDebounce,
		},
		"who takes it back has the VM deleted": {
			given: all(running, deleting, toForget, told, drainedNode, func(s *State) { s.Machine.Forgotten = false }), do: Delete,
			phase: deletingPhase,
		},
	})
}

// Events tell what is left behind: a warning as soon as that is certain, and the last one of the
// machine.
func TestWhatIsLeftBehindIsTold(t *testing.T) {
	first := Next(given(all(intended, deleting, toForget)))
	if len(first.Events) != 1 || !first.Events[0].Warning || first.Events[0].Reason != clusterv1alpha1.ReasonInstanceForgotten {
		t.Errorf("the first events are %v, want a warning", first.Events)
	}
	last := Next(given(all(intended, deleting, toForget, told)))
	if len(last.Events) != 1 || last.Events[0].Reason != "Deleted" || last.Events[0].Message != first.Events[0].Message {
		t.Errorf("the last events are %v, want what the first said: %v", last.Events, first.Events)
	}
}

// TestPausedShowsTheNodeOfAMachineThatRuns: of others nobody knows which Node they have.
func TestPausedShowsTheNodeOfAMachineThatRuns(t *testing.T) {
	paused := func(s *State) { s.Machine.Paused = Pause{Reason: "PausedByAnnotation", Message: "Paused."} }
	unconfirmed := func(s *State) {
		s.Machine.Status.ProviderID, s.Memory.Confirmed = "", ""
		notPolledYet(s)
	}
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"runs":                       {given(running, paused), clusterv1alpha1.ReasonNodeReady},
		"has lost its Node":          {given(running, paused, func(s *State) { s.Node = Node{} }), clusterv1alpha1.ReasonNodeMissing},
		"does not run yet":           {given(provisioned, joined(metav1.ConditionTrue), paused), ""},
		"is on its way out":          {given(running, paused, deleting), ""},
		"whose VM nobody confirmed":  {given(running, paused, unconfirmed), ""},
		"on its way out, not joined": {given(provisioned, paused, deleting), ""},
	} {
		if d, decided := decidePause(c.state, decision{}); !decided || d.nodeReason != c.want {
			t.Errorf("a machine that %s: %q, want %q", name, d.nodeReason, c.want)
		}
	}
}

// forget asks that a machine that is being deleted goes without its VM, or takes that back.
func (w *world) forget(it bool) {
	if w.api == nil || w.api.DeletionTimestamp.IsZero() {
		return
	}
	w.version++
	w.api.Forgotten = it
}
