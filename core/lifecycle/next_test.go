package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

const (
	opCreate = clusterv1alpha1.OperationCreate
	opDelete = clusterv1alpha1.OperationDelete
)

// TestNextShowsEachDecision shows each decision once.
func TestNextShowsEachDecision(t *testing.T) {
	checkSteps(t, map[string]wantStep{
		"a machine without a uid gets one first": {
			given: func(s *State) { s.Machine.UID = "" }, do: Identify, silent: true,
		},
		"one that is going and has no finalizer is not ours": {
			given: func(s *State) { deleting(s); s.Machine.Finalizer = false }, silent: true,
		},
		"user data that cannot be rendered": {
			given:     func(s *State) { s.BootstrapError = "label is wrong" },
			condition: "Ready False BootstrapInvalid", message: "label is wrong", phase: clusterv1alpha1.MachinePhasePending,
			requeue: bootstrapRetry,
		},
		"user data with a warning": {
			given: func(s *State) { s.BootstrapWarning = "kubelet is old" }, do: Create,
			condition: "BootstrapReady True KubeletTooOld", message: "kubelet is old", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"user data of a machine that has its VM does not matter any more": {
			given:     all(running, func(s *State) { s.BootstrapError = "label is wrong" }),
			condition: "Ready True MachineReady", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollSettled, silent: true,
		},
		"user data that cannot be rendered any more after an attempt that failed": {
			given: all(intended, func(s *State) {
				s.BootstrapError = "label is wrong"
				s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded"}}
			}),
			condition: "BootstrapReady False BootstrapInvalid", message: "label is wrong",
			phase: clusterv1alpha1.MachinePhaseProvisioning, requeue: bootstrapRetry,
		},
		"no driver": {
			given:     func(s *State) { s.Driver.Unknown = "no driver for cloudProvider \"x\"" },
			condition: "InstanceReady False DriverNotFound", message: "\"x\"", phase: clusterv1alpha1.MachinePhasePending,
		},
		"no class": {
			given: func(s *State) {
				s.Driver.Unknown, s.Driver.UnknownReason = "There is no MachineClass x.", clusterv1alpha1.ReasonMachineClassNotFound
			},
			condition: "InstanceReady False MachineClassNotFound", message: "no MachineClass x", phase: clusterv1alpha1.MachinePhasePending,
		},
		"the intent goes first": {
			given: func(*State) {}, do: Create,
			condition: "InstanceReady False Creating", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"the driver has no room: nothing is written": {
			given: func(s *State) { s.Driver.AwaitsTurn = true }, silent: true, requeue: limiterDebounce,
		},
		"others of the account were refused for want of quota": {
			given: func(s *State) {
				s.Driver.Held = &instance.Failure{Class: instance.Quota, Reason: "QuotaExceeded", Message: "2 of 2"}
			},
			condition: "InstanceReady False QuotaExceeded", message: "2 of 2", requeue: breakerRecheck, phase: clusterv1alpha1.MachinePhasePending,
		},
		"the account is called too often: nothing is written": {
			given:  func(s *State) { s.Driver.Held = &instance.Failure{Class: instance.RateLimited, Reason: "RateLimited"} },
			silent: true, requeue: breakerRecheck,
		},
		"the driver is away for a moment": {
			given: func(s *State) { s.Driver.Ready, s.Driver.Unready = false, "gone" }, requeue: driverDebounce, silent: true,
		},
		"the driver is away": {
			given:     all(func(s *State) { s.Driver.Ready, s.Driver.Unready = false, "gone" }, patient),
			condition: "InstanceReady False DriverUnavailable", message: "gone", phase: clusterv1alpha1.MachinePhasePending,
		},
		"a create under way is waited for": {
			given: all(intended, func(s *State) { s.Driver.UnderWay, s.Memory.Attempted = true, instance.Create }), silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a create whose outcome got lost is repeated soon": {
			given: all(intended, func(s *State) { s.Memory.Attempted = instance.Create }), silent: true, requeue: time.Second,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"the VM is known by its providerID": {
			given: all(intended, succeeded(instance.Create, &instance.Instance{ProviderID: "cloud:///1", State: instance.Creating})), do: RecordProviderID,
			phase: clusterv1alpha1.MachinePhaseProvisioning, silent: true,
		},
		"a failure half-way tells the providerID": {
			given: all(intended, ended(instance.Create, instance.Failure{Class: instance.Internal, ProviderID: "cloud:///1", LastKnownState: []byte("x")})),
			do:    RecordProviderID, phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"what was made half-way is taken up again": {
			given: all(intended, func(s *State) {
				s.Machine.ProviderID = "cloud:///1"
				s.Memory.Last = &instance.Outcome{Operation: instance.Create, Failure: &instance.Failure{Class: instance.Internal, Reason: "ProviderInternal"}}
			}),
			do: Create, condition: "InstanceReady False ProviderInternal", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"an accepted create that shows no VM waits": {
			given: all(intended, succeeded(instance.Create, nil)), requeue: acceptedRecheck, poll: instance.PollPending, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"an accepted create whose VM is nowhere is repeated": {
			given: all(intended, succeeded(instance.Create, nil), missing(2)), do: Create, poll: instance.PollPending,
			phase: clusterv1alpha1.MachinePhaseProvisioning, silent: true,
		},
		"an accepted create that left ruins waits": {
			given: all(intended, succeeded(instance.Create, &instance.Instance{State: instance.Failed, Message: "no port"})), requeue: acceptedRecheck, poll: instance.PollPending,
			condition: "InstanceReady False Failed", message: "no port", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a VM that boots is not worth a write": {
			given: all(intended, func(s *State) { s.Machine.ProviderID = "cloud:///1" },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating})),
			poll: instance.PollPending, condition: "InstanceReady False Creating", phase: clusterv1alpha1.MachinePhaseProvisioning, silent: true,
		},
		"a VM that boots after trouble is": {
			given: all(func(s *State) {
				s.Machine.ProviderID = "cloud:///1"
				s.Machine.Status.LastOperation = &clusterv1alpha1.LastOperation{Type: opCreate, State: clusterv1alpha1.OperationProcessing}
			}, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating, Reason: "Building"}),
				func(s *State) {
					s.Machine.Status = s.Machine.Status.set(metav1.Condition{Type: "InstanceReady", Status: "False", Reason: "QuotaExceeded"}, *s)
				}),
			poll: instance.PollPending, condition: "InstanceReady False Booting", message: "Building", phase: clusterv1alpha1.MachinePhaseProvisioning,
		},
		"a VM that has not been looked at yet": {
			given: func(s *State) { s.Machine.ProviderID = "cloud:///1" }, poll: instance.PollPending, requeue: driverDebounce, silent: true,
		},
		"a VM that no driver can be asked about": {
			given:     all(intended, func(s *State) { s.Machine.ProviderID, s.Driver.Unknown = "cloud:///1", "no driver" }),
			condition: "InstanceReady False DriverNotFound", phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"a VM that cannot be looked at": {
			given: all(intended, func(s *State) {
				s.Machine.ProviderID = "cloud:///1"
				s.Driver.LastPoll = &instance.Observation{Failure: &instance.Failure{Class: instance.Credentials, Reason: "CredentialsInvalid"}, At: s.Now, Looks: 1}
			}, patient),
			condition: "InstanceReady False CredentialsInvalid", phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"a VM that was gone at one look is looked for again": {
			given: all(running, missing(1)), poll: instance.PollSettled, silent: true, phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"a look that began before the create was answered does not count": {
			given: all(intended, func(s *State) {
				s.Machine.ProviderID = "cloud:///1"
				missing(2)(s)
				s.Driver.LastPoll.At = s.Now.Add(-time.Second)
			}, succeeded(instance.Create, &instance.Instance{ProviderID: "cloud:///1", State: instance.Creating})),
			poll: instance.PollPending, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioning, condition: "InstanceReady False Creating",
		},
		"a VM that was gone at two looks is gone": {
			given: all(running, missing(2)), condition: "Ready False Missing", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"a driver that is away changes nothing for a machine that runs": {
			given: all(running, func(s *State) { s.Driver = Driver{Unready: "gone"} }), poll: instance.PollSettled, silent: true,
			condition: "Ready True MachineReady", phase: clusterv1alpha1.MachinePhaseRunning,
		},
		"a VM that the cloud has given up": {
			given:     all(provisioned, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Failed, Message: "host died"})),
			condition: "InstanceReady False Failed", message: "host died", phase: clusterv1alpha1.MachinePhaseFailed,
		},
		"a VM that is stopped before it has a Node": {
			given: all(intended, func(s *State) { s.Machine.ProviderID = "cloud:///1" },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Stopped})),
			condition: "InstanceReady False Stopped", phase: clusterv1alpha1.MachinePhaseProvisioning, poll: instance.PollPending,
		},
		"a VM that is changed": {
			given:     all(running, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Updating})),
			condition: "Ready False Updating", phase: clusterv1alpha1.MachinePhaseUpdating, poll: instance.PollPending,
		},
		"a VM that was changed and runs again": {
			given: all(running, func(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseUpdating },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running})),
			condition: "InstanceReady True Running", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollSettled,
		},
		"a VM that was changed and is stopped": {
			given: all(running, func(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseUpdating },
				seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Stopped})),
			condition: "Ready False Stopped", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollPending,
		},
		"a VM that somebody else deletes": {
			given:     all(running, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Deleting})),
			condition: "Ready False Deleting", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollPending,
		},
		"a VM that comes up again": {
			given:     all(running, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating})),
			condition: "Ready False Booting", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollPending,
		},
		"more VMs than there may be are named": {
			given:     all(running, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Running, DuplicateProviderIDs: []string{"cloud:///2"}})),
			condition: "InstanceReady True Running", message: "cloud:///2", phase: clusterv1alpha1.MachinePhaseRunning, poll: instance.PollSettled,
		},
		"a Node is synced first": {
			given: all(provisioned, joined("True"), func(s *State) { s.Node.Synced = false }), do: SyncNode, poll: instance.PollSettled, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"one that was synced too often of late is not synced again at once": {
			given: all(provisioned, joined("True"), func(s *State) {
				s.Node.Synced, s.Memory.Syncs, s.Memory.SyncedAt = false, syncBurst+2, s.Now
			}), poll: instance.PollSettled, requeue: 4 * time.Second, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"but when that is long ago": {
			given: all(provisioned, joined("True"), func(s *State) {
				s.Node.Synced, s.Memory.Syncs, s.Memory.SyncedAt = false, syncBurst+20, s.Now.Add(-time.Hour)
			}), do: SyncNode, poll: instance.PollSettled, silent: true, phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"a Node that is not Ready yet is not worth a write": {
			given: all(provisioned, joined("False")), poll: instance.PollSettled, requeue: nodeDebounce, silent: true,
			phase: clusterv1alpha1.MachinePhaseProvisioned,
		},
		"a Node that does not become Ready is": {
			given: all(provisioned, joined("False"), patient), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseProvisioned,
			condition: "Ready False NodeNotReady", message: "KubeletSays",
		},
		"a Node that has stopped reporting": {
			given: all(running, joined("Unknown")), poll: instance.PollPending, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "Ready Unknown NodeUnknown",
		},
		"a Node of a VM that is switched off before it was Ready": {
			given: all(provisioned, joined("True"), seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Stopped})),
			poll:  instance.PollPending, phase: clusterv1alpha1.MachinePhaseProvisioned, condition: "Ready False Stopped",
		},
		"a Node that is gone": {
			given: all(running, func(s *State) { s.Node = Node{} }), poll: instance.PollPending, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "Ready False NodeMissing",
		},
		"a Node that is not this machine's": {
			given: all(provisioned, func(s *State) { s.Node = Node{Match: NodeConflicting, Conflict: "several"} }), poll: instance.PollSettled,
			phase: clusterv1alpha1.MachinePhaseProvisioned, condition: "NodeReady False NodeConflict", message: "several",
		},
		"a spec that changed is taken note of": {
			given: all(running, func(s *State) { s.Machine.Generation++ }), poll: instance.PollSettled,
			phase: clusterv1alpha1.MachinePhaseRunning, condition: "Ready True MachineReady",
		},
		"a failed machine stays failed": {
			given: func(s *State) { s.Machine.Status.Phase = clusterv1alpha1.MachinePhaseFailed }, silent: true,
			phase: clusterv1alpha1.MachinePhaseFailed,
		},
	})
}

// TestAnnouncedOnce: what is in the way is told with the write that shows it, and not also with the
// steps before that.
func TestAnnouncedOnce(t *testing.T) {
	stopped := all(running, seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Stopped}))
	if step := Next(given(stopped, func(s *State) { s.Node.Synced = false })); step.Do != SyncNode || len(step.Events) > 0 {
		t.Errorf("%s tells %+v", step.Do, step.Events)
	}
	if step := Next(given(stopped)); len(step.Events) != 1 || step.Events[0].Reason != clusterv1alpha1.ReasonInstanceStopped {
		t.Errorf("tells %+v", step.Events)
	}
}
