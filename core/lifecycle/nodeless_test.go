package lifecycle

import (
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

func nodeless(s *State) { s.Machine.Nodeless, s.Token = true, Token{} }

// TestLIFE13_MachinesWithoutNodes: where there is no cluster to join, a machine is Running once its
// VM runs, has no token, and goes without a drain.
func TestLIFE13_MachinesWithoutNodes(t *testing.T) {
	booting := seen(instance.Instance{ProviderID: "cloud:///1", State: instance.Creating})
	checkSteps(t, map[string]wantStep{
		"its VM is asked for": {
			given: nodeless, do: Create, phase: clusterv1alpha1.MachinePhaseProvisioning,
			condition: "BootstrapReady True TokenNotNeeded", message: "joins no cluster",
		},
		"it needs no Node before": {
			given: nodeless, do: Create, phase: clusterv1alpha1.MachinePhaseProvisioning,
			condition: "NodeReady True NoNode",
		},
		"not without user data": {
			given: all(nodeless, func(s *State) { s.BootstrapError = "no" }), phase: clusterv1alpha1.MachinePhasePending, requeue: bootstrapRetry,
			condition: "BootstrapReady False BootstrapInvalid", message: "no",
		},
		"its VM runs": {
			given: all(provisioned, nodeless), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning,
			condition: "Ready True MachineReady", message: "The VM runs.",
		},
		"it is Running": {
			given: all(provisioned, nodeless, told), poll: instance.PollSettled, phase: clusterv1alpha1.MachinePhaseRunning, silent: true,
			condition: "NodeReady True NoNode",
		},
		"its VM boots": {
			given: all(provisioned, nodeless, booting), poll: instance.PollPending, phase: clusterv1alpha1.MachinePhaseProvisioned,
			condition: "InstanceReady False Booting",
		},
		"its VM does not run in time": {
			given: all(intended, nodeless, booting, succeeded(instance.Create, &instance.Instance{ProviderID: "cloud:///1", State: instance.Creating}),
				func(s *State) { s.Machine.ProviderID = "cloud:///1" }, startup(time.Minute), waited(time.Hour)),
			phase: clusterv1alpha1.MachinePhaseFailed, condition: "NodeReady False JoinTimeout", message: "The VM does not run within 1m0s",
		},
		"it goes": {
			given: all(provisioned, nodeless, told, deleting), do: Delete, phase: clusterv1alpha1.MachinePhaseDeleting,
			condition: "Drained True NoNode",
		},
		"it is gone": {
			given: all(provisioned, nodeless, told, deleting, told, succeeded(instance.Delete, nil)), do: Release, phase: clusterv1alpha1.MachinePhaseDeleting,
			silent: true, condition: "Drained True NoNode",
		},
	})
}
