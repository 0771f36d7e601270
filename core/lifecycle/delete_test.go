package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// TestNextOnAMachineOnItsWayOut shows each decision on a machine that is on its way out.
func TestNextOnAMachineOnItsWayOut(t *testing.T) {
	checkSteps(t, map[string]wantStep{
		"a machine that was never asked for goes at once": {
			given: deleting, do: Release, silent: true, requeue: deleteDebounce,
		},
		"the Node is drained first": {
			given: all(running, deleting), do: DrainNode, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"pods that end are waited for": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Remaining: "a/b"} }), requeue: time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False Draining",
		},
		"a budget is named": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Blocked: "pod a/b: budget c"} }), requeue: 5 * time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False BlockedByPodDisruptionBudget", message: "budget c",
		},
		"a drain that the API server refuses is shown": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Error: "forbidden"} }), requeue: time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False Draining", message: "forbidden",
		},
		"unless that passes": {
			given: all(running, deleting, func(s *State) {
				s.Drain = &Drain{Remaining: "a/b"}
				s.Machine.Status = Next(*s).Status
				s.Drain = &Drain{Error: "timeout"}
			}), requeue: time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False Draining", silent: true,
		},
		"a refused eviction is shown": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Refused: "pod a/b: no", Remaining: "a/b"} }), requeue: time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False EvictionRefused", message: "pod a/b: no",
		},
		"unless that passes, too": {
			given: all(running, deleting, func(s *State) {
				s.Drain = &Drain{Remaining: "a/b"}
				s.Machine.Status = Next(*s).Status
				s.Drain = &Drain{Refused: "pod a/b: no", Remaining: "a/b"}
			}), requeue: time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False Draining", silent: true,
		},
		"it does not hide a budget": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Blocked: "pod a/c: budget d", Refused: "pod a/b: no"} }), requeue: 5 * time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False BlockedByPodDisruptionBudget", message: "budget d; pod a/b: no",
		},
		"a Node that nobody knows to be this machine's is not drained": {
			given: all(running, deleting, func(s *State) { s.Node = Node{Match: NodeConflicting, Conflict: "several"} }), do: Delete,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False NodeConflict", message: "several",
		},
		"an empty Node's VM is deleted": {
			given: all(running, deleting, func(s *State) { s.Drain = &Drain{Done: true} }), do: Delete,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False Deleting",
		},
		"that the time for the drain is over is written down before the VM is deleted": {
			given: all(running, deleting, func(s *State) {
				s.Drain = &Drain{Remaining: "a/b"}
				s.Memory = Next(*s).Memory
				s.Drain = nil
			}, later(time.Hour)), requeue: recordedRecheck,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False DrainTimedOut", message: "a/b",
		},
		"but not when nobody could drain in that time": {
			given: all(running, deleting, func(s *State) { s.Memory = Next(*s).Memory }, later(time.Hour), stopped(time.Hour)), do: DrainNode,
			phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"nor when nobody but a process before this one could": {
			given: all(running, deleting, func(s *State) { s.Machine.DeletionTimestamp = s.Now.Add(-time.Hour) }), do: DrainNode,
			phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"a drain that is over stays over": {
			given: all(running, deleting, func(s *State) {
				s.Drain = &Drain{Done: true}
				s.Machine.Status = Next(*s).Status
				s.Drain = nil
			}), do: Delete, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained True Drained", silent: true,
		},
		"a VM whose driver is missing waits for one": {
			given: all(intended, deleting, func(s *State) { s.Driver.Unknown = "no driver" }),
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False DriverNotFound",
		},
		"a VM whose driver is away waits for it": {
			given: all(intended, deleting, func(s *State) { s.Driver.Ready = false }, patient),
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False DriverUnavailable",
		},
		"a driver without room for the delete": {
			given: all(intended, deleting, func(s *State) { s.Driver.AwaitsTurn = true }),
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False Deleting",
		},
		"deletes of others of the account were refused": {
			given: all(intended, deleting, func(s *State) {
				s.Driver.Held = &instance.Failure{Class: instance.Credentials, Reason: "CredentialsInvalid", Message: "who are you?"}
			}),
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False CredentialsInvalid", requeue: breakerRecheck,
		},
		"a create under way holds the delete": {
			given: all(intended, deleting, func(s *State) { s.Driver.UnderWay = true }),
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained True NoNode",
		},
		"a VM that appeared too late is known first": {
			given: all(intended, deleting, succeeded(instance.Create, &instance.Instance{ProviderID: "cloud:///1", State: instance.Running})),
			do:    RecordProviderID, phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a VM that dies is watched": {
			given: all(provisioned, deleting, succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting, Message: "bye", LastKnownState: []byte("y")}), notPolledYet),
			poll:  instance.PollPending, requeue: acceptedRecheck, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting", message: "bye",
		},
		"a VM that is gone is deleted once more": {
			given: all(provisioned, deleting, succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}), missing(1)),
			do:    Delete, poll: instance.PollPending, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"what a VM left behind is deleted at once": {
			given: all(provisioned, deleting, succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}),
				seen(instance.Instance{State: instance.Failed})),
			do: Delete, poll: instance.PollPending, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"but less and less often while that changes nothing": {
			given: all(provisioned, deleting, func(s *State) { s.Memory.Deletes = 9 },
				succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}),
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})),
			poll: instance.PollPending, requeue: time.Minute, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"a VM that is gone though its deletes are answered with it": {
			given: all(provisioned, deleting, func(s *State) { s.Memory.Deletes = 9 },
				succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}), missing(1)),
			poll: instance.PollPending, requeue: repeatDeleteAfter, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"a VM that does not die is deleted again": {
			given: all(provisioned, deleting, succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}), notPolledYet, patient),
			do:    Delete, poll: instance.PollPending, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"a create in doubt is waited for": {
			given: all(intended, deleting, func(s *State) { s.Driver.LeadingSince = s.Now }, succeeded(instance.Delete, nil)), requeue: repeatDeleteAfter,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting", message: "outcome is unknown",
		},
		"a create beyond doubt is not": {
			given: all(intended, deleting, succeeded(instance.Delete, nil)), do: Release, phase: clusterv1alpha1.MachinePhaseProvisioning,
			silent: true, requeue: deleteDebounce,
		},
		"a protected VM is shown": {
			given: all(provisioned, deleting, ended(instance.Delete, instance.Failure{Class: instance.Precondition, Reason: "DeletionProtected"})),
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False DeletionProtected", requeue: 10 * time.Second,
		},
		"a spec that never made anything does not hold the machine": {
			given: all(func(s *State) {
				s.Machine.Status = Status{Phase: "Failed", LastOperation: &clusterv1alpha1.LastOperation{Type: opCreate, State: clusterv1alpha1.OperationFailed}}
			}, deleting, ended(instance.Delete, instance.Failure{Class: instance.SpecInvalid, Reason: "SpecInvalid"})),
			do: Release, poll: instance.PollPending, requeue: deleteDebounce, phase: clusterv1alpha1.MachinePhaseFailed, silent: true,
		},
		"a spec that may have made something does": {
			given: all(intended, deleting, ended(instance.Delete, instance.Failure{Class: instance.SpecInvalid, Reason: "SpecInvalid"})),
			poll:  instance.PollPending, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False SpecInvalid", requeue: 30 * time.Second,
		},
		"a driver that has lost what it knew is not asked to delete": {
			given: all(provisioned, deleting, ended(instance.Delete, instance.Failure{Class: instance.DataLoss, Reason: "X"}), notPolledYet),
			poll:  instance.PollSettled, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Ready False DataLoss",
		},
		"nor one that lost it before this process": {
			given: all(provisioned, deleting, func(s *State) {
				s.Driver.LastPoll = nil
				s.Machine.Status = s.Machine.Status.set(metav1.Condition{Type: "InstanceReady", Status: "False", Reason: "DataLoss", Message: "lost"}, *s)
			}),
			poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False DataLoss",
		},
		"the Node goes after its VM": {
			given: all(running, deleting, func(s *State) { s.Memory.Gone = true }), do: RemoveNode, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
	})
}

// drained has the drain written down so, by an earlier process.
func drained(status metav1.ConditionStatus, reason string) func(*State) {
	return func(s *State) {
		s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseDeleting
		s.Machine.Status = s.Machine.Status.set(metav1.Condition{Type: "Drained", Status: status, Reason: reason}, *s)
	}
}

// drainAt has the drain last for d by now, as this process saw it; pass is what its last pass
// found.
func drainAt(d time.Duration, pass *Drain) func(*State) {
	return all(func(s *State) { s.Memory = Next(*s).Memory }, later(d), func(s *State) { s.Drain = pass })
}

// drainLeft is how long the drain of a machine may yet take.
func drainLeft(s State) time.Duration {
	return timeLeft(s.Machine.Status.Condition(clusterv1alpha1.ConditionDrained), s.Machine.DrainTimeout, s.Memory.Wait)
}

// TestDrainAtTheBounds shows on which side of each bound a drain falls.
func TestDrainAtTheBounds(t *testing.T) {
	pods := &Drain{Remaining: "a/b"}
	going := all(running, deleting)
	checkSteps(t, map[string]wantStep{
		"no pass begins when the time is over": {
			given: all(going, drainAt(time.Minute, nil)), requeue: recordedRecheck, phase: clusterv1alpha1.MachinePhaseDeleting,
			condition: "Drained False DrainTimedOut", message: "the pods that are left.",
		},
		"one begins just before": {
			given: all(going, drainAt(time.Minute-1, nil)), do: DrainNode, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"what a pass leaves when the time is over goes with the VM": {
			given: all(going, drainAt(time.Minute, pods)), requeue: recordedRecheck, phase: clusterv1alpha1.MachinePhaseDeleting,
			condition: "Drained False DrainTimedOut",
		},
		"the last pause ends with the time": {
			given: all(going, drainAt(time.Minute-100*time.Millisecond, pods)), requeue: 100 * time.Millisecond,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False Draining",
		},
		"pauses grow": {
			given: all(going, func(s *State) { s.Drain, s.Memory.DrainPasses = pods, 2 }), requeue: 4 * time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False Draining",
		},
		"a Node whose pass failed is not drained": {
			given: all(going, func(s *State) { s.Drain = &Drain{Done: true, Error: "timeout"} }), requeue: time.Second,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "Drained False Draining", message: "timeout",
		},
		"a drain that was over before this process": {
			given: all(going, drained("True", "Drained")), do: Delete, condition: "Drained True Drained", phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"one whose time was over": {
			given: all(going, drained("False", "DrainTimedOut")), do: Delete, silent: true, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"one that was not over": {
			given: all(going, drained("False", "Draining")), do: DrainNode, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
		"one of a machine that had no Node then": {
			given: all(going, drained("True", "NoNode")), do: DrainNode, phase: clusterv1alpha1.MachinePhaseDeleting,
		},
	})
	s := given(going, func(s *State) {
		s.Machine.DrainTimeout, s.Machine.DeletionTimestamp = 20*time.Minute, s.Now.Add(-6*time.Minute)
		s.Memory.Wait = Wait{For: waitForDrain, Since: s.Now.Add(-2 * time.Minute), Observed: 2 * time.Minute, Reading: s.Clock.Cluster}
	})
	if left := drainLeft(s); left != 18*time.Minute {
		t.Errorf("%s left of 20 minutes, of which 2 were seen, and no drain before", left)
	}
	at := func(status metav1.ConditionStatus, since time.Duration) State {
		held := s
		held.Machine.Status.Conditions = []metav1.Condition{{
			Type: clusterv1alpha1.ConditionDrained, Status: status, LastTransitionTime: metav1.NewTime(s.Now.Add(-since)),
		}}
		return held
	}
	if left := drainLeft(at(metav1.ConditionFalse, 3*time.Minute)); left != 17*time.Minute {
		t.Errorf("%s left of 20 minutes, of which 3 went by since the status says that it drains", left)
	}
	if left := drainLeft(at(metav1.ConditionUnknown, 5*time.Minute)); left != 18*time.Minute {
		t.Errorf("%s left of 20 minutes, of which 2 went by since no hook holds it any more", left)
	}
}

// TestDeleteAtTheBounds shows on which side of each bound a delete falls.
func TestDeleteAtTheBounds(t *testing.T) {
	refused := ended(instance.Delete, instance.Failure{Class: instance.SpecInvalid, Reason: "SpecInvalid"})
	accepted := succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting})
	operation := func(op clusterv1alpha1.OperationType, state clusterv1alpha1.OperationState) func(*State) {
		return func(s *State) {
			s.Machine.Status.LastOperation = &clusterv1alpha1.LastOperation{Type: op, State: state}
		}
	}
	stays := wantStep{poll: instance.PollPending, requeue: 30 * time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False SpecInvalid"}
	goes := wantStep{do: Release, poll: instance.PollPending, requeue: deleteDebounce, phase: clusterv1alpha1.MachinePhaseProvisioning, silent: true}
	waits := wantStep{poll: instance.PollPending, requeue: acceptedRecheck, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting"}
	given := func(d wantStep, given ...func(*State)) wantStep {
		d.given = all(given...)
		return d
	}
	checkSteps(t, map[string]wantStep{
		"a spec that is not understood, of a machine that the cloud missed once": given(stays, intended, deleting, refused, missing(1)),
		"twice": given(goes, intended, deleting, refused, missing(missesUntilGone)),
		"of one whose delete failed, and not its create": given(stays, intended, operation(opDelete, "Failed"), deleting, refused),
		"of one whose creates this process saw refused":  given(goes, intended, deleting, func(s *State) { s.Memory.Refused = true }, refused),
		"a quota that is no obstacle to what is there": {
			given:   all(intended, operation(opCreate, "Failed"), deleting, ended(instance.Delete, instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"})),
			requeue: 5 * time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False QuotaExceeded",
		},
		"a spec that is not understood, of a machine that had its VM": {
			given:   all(provisioned, operation(opCreate, "Failed"), deleting, refused, missing(missesUntilGone)),
			requeue: 30 * time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False SpecInvalid",
		},
		"a look that shows the VM on its way out": given(wantStep{poll: instance.PollPending, requeue: time.Minute, phase: waits.phase, condition: waits.condition},
			provisioned, deleting, accepted, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting})),
		"and still after many deletes": given(wantStep{poll: instance.PollPending, requeue: 5 * time.Minute, phase: waits.phase, condition: waits.condition},
			provisioned, deleting, func(s *State) { s.Memory.Deletes = 9 }, accepted, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting})),
		"one that shows it, and then one that failed": given(waits, provisioned, deleting, accepted,
			seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting}), func(s *State) {
				s.Driver.LastPoll.Failure = &instance.Failure{Class: instance.Internal}
			}),
		"an answer is no look": given(waits, provisioned, deleting,
			succeeded(instance.Delete, &instance.Instance{ProviderID: "cloud:///1", State: instance.Running}), notPolledYet),
		"a look that failed": given(waits, provisioned, deleting, accepted, refusedLook(instance.Internal, false)),
		"a delete that began when the doubt had settled": {
			given: all(intended, deleting, succeeded(instance.Delete, nil), func(s *State) {
				s.Driver.LeadingSince = s.Driver.Outcome.Started.Add(-settle)
			}), do: Release, phase: clusterv1alpha1.MachinePhaseProvisioning, silent: true, requeue: deleteDebounce,
		},
		"a doubt that settles sooner than the next delete": {
			given:   all(intended, deleting, succeeded(instance.Delete, nil), func(s *State) { s.Driver.LeadingSince = s.Now.Add(time.Second - settle) }),
			requeue: time.Second, phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"ruins without a providerID are not written down": {
			given: all(intended, deleting, seen(instance.Instance{State: instance.Failed})), do: Delete,
			phase: clusterv1alpha1.MachinePhaseDeleting, condition: "InstanceReady False Deleting",
		},
		"nor a VM that is over": {
			given: all(intended, deleting, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running}),
				func(s *State) { s.Memory.Gone = true }),
			do: Release, phase: clusterv1alpha1.MachinePhaseProvisioning, requeue: deleteDebounce, silent: true,
		},
	})
	for deletes, want := range []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second} {
		if got := deleteRepetition(deletes); got != want {
			t.Errorf("after %d deletes the next one waits %s, want %s", deletes, got, want)
		}
	}
}

// TestTheLastEventNamesWhatIsLeftBehind: only of a machine that is forgotten.
func TestTheLastEventNamesWhatIsLeftBehind(t *testing.T) {
	left := func(s *State) {
		s.Machine.Status = s.Machine.Status.set(instanceNotReady(clusterv1alpha1.ReasonInstanceForgotten, "VM cloud:///1"), *s)
	}
	forgotten := func(s *State) { s.Machine.Forgotten = true }
	const nothing = "Nothing of the machine is left."
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"forgotten":                         {given(forgotten, left), "VM cloud:///1"},
		"forgotten with nothing to forget":  {given(forgotten), nothing},
		"forgotten once, and not any more":  {given(left), nothing},
		"never forgotten, with a condition": {given(running), nothing},
	} {
		if d, _ := decideRelease(c.state, decision{}); len(d.Events) != 1 || d.Events[0].Message != c.want {
			t.Errorf("%s: %+v, want %q", name, d.Events, c.want)
		}
	}
}
