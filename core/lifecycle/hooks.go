package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// decidePreDrainHooks: somebody has asked for the drain to wait. One that is over stays over.
func decidePreDrainHooks(s State, d decision) (decision, bool) {
	if s.Machine.PreDrainHooks == "" || isDrainOver(s) {
		return d, false
	}
	d.phase = clusterv1alpha1.MachinePhaseDeleting
	// The time in which nobody may drain is none of the drain's.
	d.Memory.Wait = Wait{}
	d.drained = condition(clusterv1alpha1.ConditionDrained, metav1.ConditionUnknown, clusterv1alpha1.ReasonWaitingForPreDrainHooks,
		"The drain begins once these annotations are taken away: "+s.Machine.PreDrainHooks+".")
	return d, true
}

// decidePreTerminateHooks: somebody has asked for the VM to be kept for now. A machine that is
// forgotten leaves its VM alone anyway.
func decidePreTerminateHooks(s State, d decision) (decision, bool) {
	if s.Machine.PreTerminateHooks == "" || d.Memory.Gone || s.Machine.Forgotten || !mayHaveInstance(s) {
		return d, false
	}
	return d.instanceIs(clusterv1alpha1.ReasonWaitingForPreTerminateHooks), true
}
