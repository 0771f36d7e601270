package lifecycle

import (
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// TestWaiting shows what becomes of machines that wait for their Node, and of those whose VM cannot
// be looked at.
func TestWaiting(t *testing.T) {
	checkSteps(t, map[string]wantStep{
		"a machine without a Node is looked at again in time": {
			given: all(provisioned, startup(30*time.Second)), poll: instance.PollSettled, requeue: 30 * time.Second, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioned, condition: "NodeReady False WaitingForNode",
		},
		"one that waits for long shows when the time stands still": {
			given: all(provisioned, startup(time.Hour), driverAway, func(s *State) { s.Memory = Next(*s).Memory }, later(clockDebounce)),
			poll:  instance.PollSettled, requeue: clockRecheck, phase: clusterv1alpha1.MachinePhaseProvisioned,
			condition: "NodeReady False WaitingForNode", message: "stands still: the driver is not connected.",
		},
		"but not at once": {
			given: all(provisioned, startup(time.Hour), driverAway), poll: instance.PollSettled, requeue: clockDebounce, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioned, condition: "NodeReady False WaitingForNode",
		},
		"nor where there is no limit": {
			given: all(provisioned, driverAway, func(s *State) { s.Memory = Next(*s).Memory }, later(time.Hour)), poll: instance.PollSettled, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioned, condition: "NodeReady False WaitingForNode",
		},
		"a machine that got no Node in time": {
			given:     all(provisioned, startup(time.Minute), waited(time.Minute)),
			condition: "Ready False JoinTimeout", message: "not become a Ready Node within 1m0s.", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"one whose Node is not Ready in time": {
			given:     all(provisioned, joined("False"), startup(time.Minute), waited(time.Minute)),
			condition: "NodeReady False JoinTimeout", message: "within 1m0s: its words", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"one that cannot take its Node in time": {
			given: all(provisioned, startup(time.Minute), func(s *State) { s.Node = Node{Match: NodeConflicting, Conflict: "several"} },
				waited(time.Minute)),
			condition: "NodeReady False JoinTimeout", message: "within 1m0s: several", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"one whose Node has an unknown providerID waits: the next one would have one, too": {
			given: all(provisioned, startup(time.Minute), func(s *State) {
				s.Node = Node{Match: NodeConflicting, HasUnknownID: true, Conflict: "which one"}
			}, waited(time.Hour)),
			condition: "NodeReady False ProviderIDUnknown", message: "which one", phase: clusterv1alpha1.MachinePhaseProvisioned, poll: instance.PollSettled,
		},
		"one whose VM does not come up in time says what failed it": {
			given: all(intended, startup(time.Minute), func(s *State) { s.Machine.ProviderID = "cloud:///1" },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating}), waited(time.Minute)),
			condition: "Ready False JoinTimeout", message: "within 1m0s", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"a Node that is Ready is not late, though the last look shows a VM that boots": {
			given: all(intended, startup(time.Minute), func(s *State) { s.Machine.ProviderID = "cloud:///1" },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating}), waited(time.Minute), joined("True")),
			condition: "InstanceReady False Creating", phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
			requeue: time.Minute, silent: true,
		},
		"a Node that does not come back in time": {
			given:     all(running, startup(time.Minute), func(s *State) { s.Node = Node{} }, waited(time.Minute)),
			condition: "Ready False JoinTimeout", message: "has not come back within 1m0s.", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"a Node whose VM is switched off cannot": {
			given: all(running, startup(time.Minute), func(s *State) { s.Node = Node{} },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Stopped}), waited(time.Hour)),
			condition: "NodeReady False NodeMissing", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollPending, requeue: time.Minute,
		},
		"time in which nobody could see does not count": {
			given: all(provisioned, startup(time.Minute), func(s *State) {
				s.Memory = Next(*s).Memory
			}, later(time.Hour), stopped(time.Hour)), poll: instance.PollSettled, requeue: time.Minute, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"nor is anything late while nobody can see": {
			given: all(provisioned, startup(time.Minute), waited(time.Hour), func(s *State) { s.Clock.Runs = false }),
			poll:  instance.PollSettled, requeue: time.Second, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"nor while the VM cannot be looked at": {
			given: all(provisioned, startup(time.Minute), waited(time.Hour), refusedLook(instance.AccountChanged, true)),
			poll:  instance.PollSettled, requeue: time.Minute, phase: clusterv1alpha1.MachinePhaseProvisioned,
			condition: "InstanceReady True AccountChanged", message: "cannot be looked at: other account",
		},
		"another account changes nothing but a word": {
			given: all(running, refusedLook(instance.AccountChanged, false)), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "InstanceReady True AccountChanged", message: "other account",
		},
		"the machine stays Ready": {
			given: all(running, refusedLook(instance.Credentials, true)), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "Ready True MachineReady",
		},
		"what passes by itself is not told of a VM that runs": {
			given: all(running, refusedLook(instance.Internal, true)), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "InstanceReady True Running", silent: true,
		},
		"a VM that cannot be looked at for want of a Secret": {
			given: all(running, func(s *State) {
				s.Driver.Trouble = &instance.Failure{Class: instance.Precondition, Reason: "ReferenceUnresolved", Message: "Secret a/b is not there"}
			}), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "InstanceReady True ReferenceUnresolved", message: "cannot be looked at: Secret a/b is not there",
		},
		"a VM that is looked at with a copy of its Secret": {
			given: all(running, func(s *State) {
				s.Driver.Missing = &instance.Failure{Class: instance.Precondition, Reason: "ReferenceUnresolved", Message: "Secret a/b is not there"}
			}), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "InstanceReady True ReferenceUnresolved", message: "with a copy of the Secret: Secret a/b is not there",
		},
		"a VM that boots and cannot be looked at": {
			given: all(intended, func(s *State) { s.Machine.ProviderID = "cloud:///1" },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating}), refusedLook(instance.Credentials, true)),
			condition: "Ready False Credentials", message: "other account", phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
	})
}
