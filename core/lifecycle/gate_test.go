package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Changes of a state that has a Node.
func uninitializedNode(s *State) { s.Node.Uninitialized = true }
func withStartupTaints(s *State) { s.Node.HasStartupTaints = true }
func notSynced(s *State)         { s.Node.Synced = false }

// awaiting is a machine for which critical DaemonSets count, and what a look at them found; nil
// before it.
func awaiting(found *DaemonSets) func(*State) {
	return func(s *State) { s.Machine.AwaitsDaemonSets, s.DaemonSets = true, found }
}

// TestLIFE5_TheGate: a machine is Running only once its Node is Ready, initialised and has what it
// cannot work without. Then its start-up taints go, in the write that syncs the Node.
func TestLIFE5_TheGate(t *testing.T) {
	const phase = clusterv1alpha1.MachinePhaseProvisioned
	ready := all(provisioned, joined("True"))
	starting, hidden := &DaemonSets{Waiting: "kube-system/network"}, &DaemonSets{Error: "forbidden"}
	isRunning := wantStep{phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollSettled, condition: "NodeReady True NodeReady"}
	with := func(w wantStep, given ...func(*State)) wantStep {
		w.given = all(given...)
		return w
	}
	sync := wantStep{do: SyncNode, poll: instance.PollSettled, silent: true, phase: phase}
	look := wantStep{do: CheckDaemonSets, poll: instance.PollSettled, silent: true, phase: phase}
	shown := wantStep{poll: instance.PollSettled, phase: phase}
	shownAs := func(condition, message string, requeue time.Duration) wantStep {
		shown.condition, shown.message, shown.requeue = condition, message, requeue
		return shown
	}
	checkSteps(t, map[string]wantStep{
		"nothing to wait for":                   with(isRunning, ready),
		"a look is had first":                   with(look, ready, awaiting(nil)),
		"also before the Node is synced":        with(look, ready, awaiting(nil), notSynced),
		"not of a Node that is not Ready":       with(wantStep{poll: instance.PollSettled, requeue: nodeDebounce, silent: true, phase: phase}, provisioned, joined("False"), awaiting(nil)),
		"a shorter wait, if one is set":         with(wantStep{poll: instance.PollSettled, requeue: time.Second, silent: true, phase: phase}, provisioned, joined("False"), awaiting(nil), func(s *State) { s.Machine.NodeDebounce = time.Second }),
		"not before it is initialised":          with(wantStep{poll: instance.PollSettled, requeue: nodeDebounce, silent: true, phase: phase}, ready, awaiting(nil), uninitializedNode),
		"all runs":                              with(isRunning, ready, awaiting(&DaemonSets{})),
		"start-up taints go":                    with(sync, ready, withStartupTaints),
		"with what else is set":                 with(sync, ready, withStartupTaints, notSynced),
		"not before a look":                     with(look, ready, withStartupTaints, awaiting(nil)),
		"not before it is Ready":                with(wantStep{poll: instance.PollSettled, requeue: nodeDebounce, silent: true, phase: phase}, provisioned, joined("False"), withStartupTaints),
		"what passes within seconds is silent":  with(wantStep{poll: instance.PollSettled, requeue: time.Second, silent: true, phase: phase}, ready, awaiting(starting)),
		"DaemonSets are named":                  with(shownAs("NodeReady False WaitingForDaemonSets", "kube-system/network", 2*time.Second), ready, awaiting(starting), patient),
		"that nobody can tell is told":          with(shownAs("NodeReady Unknown WaitingForDaemonSets", "forbidden", 2*time.Second), ready, awaiting(hidden), patient),
		"the cloud controller is waited for":    with(shownAs("NodeReady False NodeUninitialized", UninitializedTaint, 0), ready, uninitializedNode, patient),
		"a Node that may not be Ready for that": with(shownAs("NodeReady False NodeNotReady", UninitializedTaint, 0), provisioned, joined("False"), uninitializedNode, patient),
		"a VM that is switched off meanwhile": with(wantStep{poll: instance.PollPending, phase: phase, condition: "Ready False Stopped"},
			ready, awaiting(&DaemonSets{}), seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Stopped})),
	})
}

// TestLIFE5_TheGateHoldsOnTheWayInOnly: what becomes of DaemonSets later is nothing to a machine
// that is Running. Where its Node has registered anew, start-up taints go by the same rules.
func TestLIFE5_TheGateHoldsOnTheWayInOnly(t *testing.T) {
	still := wantStep{poll: instance.PollSettled, silent: true, phase: clusterv1alpha1.MachinePhaseRunning, condition: "Ready True MachineReady"}
	with := func(do Action, requeue time.Duration, given ...func(*State)) wantStep {
		w := still
		w.do, w.requeue, w.given = do, requeue, all(append([]func(*State){running, joined("True")}, given...)...)
		return w
	}
	checkSteps(t, map[string]wantStep{
		"DaemonSets that nobody looks at":  with(Nothing, 0, awaiting(nil)),
		"a taint that came later":          with(Nothing, 0, uninitializedNode),
		"start-up taints, and no look yet": with(CheckDaemonSets, 0, awaiting(nil), withStartupTaints),
		"start-up taints that stay":        with(Nothing, time.Second, awaiting(&DaemonSets{Waiting: "a/b"}), withStartupTaints),
		"start-up taints that go":          with(SyncNode, 0, awaiting(&DaemonSets{}), withStartupTaints),
	})
}

// TestLIFE5_StartupTaintsGoWithTheGate: a sync before the gate opens leaves them there.
func TestLIFE5_StartupTaintsGoWithTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		given func(*State)
		admit bool
	}{
		"open":   {all(provisioned, joined("True")), true},
		"closed": {all(provisioned, joined("True"), uninitializedNode), false},
	} {
		step := Next(given(c.given, withStartupTaints, notSynced))
		if step.Do != SyncNode || step.Admit != c.admit {
			t.Errorf("%s: does %q, admits %t", name, step.Do, step.Admit)
		}
	}
}

// TestLIFE7_TheGateIsPartOfJoining: the time to join runs while something is known to be waited
// for. The machine that fails says for what.
func TestLIFE7_TheGateIsPartOfJoining(t *testing.T) {
	const limit = 20 * time.Minute
	late := all(provisioned, startup(limit))
	for name, c := range map[string]struct {
		given func(*State)
		// message is a part of the condition's; empty where the machine does not fail.
		message string
	}{
		"a Node that is not Ready":     {joined("False"), "its words."},
		"nor initialised":              {all(joined("False"), uninitializedNode), "its words, and waits for a cloud controller"},
		"a Node that awaits the cloud": {all(joined("True"), uninitializedNode), "Node node is Ready, and waits for a cloud controller"},
		"DaemonSets that do not run":   {all(joined("True"), awaiting(&DaemonSets{Waiting: "a/b"})), "Node node is Ready, and waits for the pods of critical DaemonSets: a/b."},
		"DaemonSets that nobody sees":  {all(joined("True"), awaiting(&DaemonSets{Error: "forbidden"})), ""},
		"no Node, and a hint":          {func(s *State) { s.JoinProgress.Message = "the CSR was denied" }, "within 20m0s: the CSR was denied."},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(late, c.given, waited(limit))
			s.DaemonSets = given(c.given).DaemonSets
			s.Driver.LastPoll.At = s.Now
			got := Next(s).Status
			node := got.Condition(clusterv1alpha1.ConditionNodeReady)
			failed := got.Phase == clusterv1alpha1.MachinePhaseFailed
			if failed != (c.message != "") || failed && (node.Reason != clusterv1alpha1.ReasonJoinTimeout || !strings.Contains(node.Message, c.message)) {
				t.Errorf("phase %s, %s: %s", got.Phase, node.Reason, node.Message)
			}
		})
	}
}

// TestJoinProgressIsShown: what is known of a VM without a Node stands beside WaitingForNode.
func TestJoinProgressIsShown(t *testing.T) {
	s := given(provisioned, func(s *State) { s.JoinProgress = JoinProgress{Message: "The CSR was denied", Refused: true} })
	c := Next(s).Status.Condition(clusterv1alpha1.ConditionNodeReady)
	if c.Reason != clusterv1alpha1.ReasonWaitingForNode || c.Message != notRegistered+" The CSR was denied." {
		t.Errorf("it says %s: %s", c.Reason, c.Message)
	}
}

// TestGateLooksBecomeRare: the pauses between looks grow, and start anew when the gate was open.
func TestGateLooksBecomeRare(t *testing.T) {
	s := given(provisioned, joined("True"), awaiting(&DaemonSets{Waiting: "a/b"}))
	var pauses []time.Duration
	for range 7 {
		step := Next(s)
		s.Memory = step.Memory
		pauses = append(pauses, step.RequeueAt.Sub(s.Now))
	}
	if pauses[0] != time.Second || pauses[6] != gateBackoff.Last {
		t.Errorf("pauses of %v", pauses)
	}
	s.DaemonSets = &DaemonSets{}
	if got := Next(s).Memory.GateLooks; got != 0 {
		t.Errorf("%d looks are remembered of a gate that is open", got)
	}
}

// TestOPS2_WhatTheGateWaitsForIsWrittenOnce: a Node that is Ready within seconds after its
// DaemonSets costs no write, one that waits for long costs one.
func TestOPS2_WhatTheGateWaitsForIsWrittenOnce(t *testing.T) {
	s := given(provisioned, joined(metav1.ConditionTrue))
	s.Machine.AwaitsDaemonSets = true
	writes := 0
	for range 100 {
		s.DaemonSets = nil
		step := Next(s)
		if step.Do != CheckDaemonSets {
			t.Fatalf("does %q without a look", step.Do)
		}
		s.Memory, s.DaemonSets = step.Memory, &DaemonSets{Waiting: "a/b"}
		step = Next(s)
		s.Memory = step.Memory
		if step.Write {
			writes++
			s.Machine.Status = step.Status
			if waited := s.Now.Sub(given().Now); waited < nodeDebounce {
				t.Errorf("written after %s", waited)
			}
		}
		s.Now = s.Now.Add(10 * time.Second)
	}
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}
