package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// awaitPreDrainHooks: annotations may ask for the drain to wait, or for the rest of it. While they
// do, its time does not pass.
func awaitPreDrainHooks(s State, d decision) (decision, bool) {
	if s.Machine.PreDrainHooks == "" {
		return d, false
	}
	d.Memory.Wait = Wait{}
	d.drained = condition(clusterv1alpha1.ConditionDrained, metav1.ConditionUnknown, clusterv1alpha1.ReasonWaitingForPreDrainHooks,
		"The drain waits until these annotations are taken away: "+s.Machine.PreDrainHooks+".")
	return awaitHooks(d)
}

// awaitPreTerminateHooks: annotations may ask for the VM to be kept for now.
func awaitPreTerminateHooks(s State, d decision) (decision, bool) {
	if s.hooksOfVM() == "" {
		return d, false
	}
	return awaitHooks(d.instanceIs(clusterv1alpha1.ReasonWaitingForPreTerminateHooks))
}

// hooksOfVM names what holds the VM; empty for nothing. A hook of the drain that comes when this is
// over holds the VM instead, as in Cluster API. Without a Node there was no drain.
func (s State) hooksOfVM() string {
	m := s.Machine
	if s.Node.Match != NodeFound || m.PreDrainHooks == "" {
		return m.PreTerminateHooks
	}
	if m.PreTerminateHooks == "" {
		return m.PreDrainHooks
	}
	return m.PreDrainHooks + "; " + m.PreTerminateHooks
}

// awaitHooks waits for as long as it takes: the VM is polled meanwhile, and what its driver wants
// to be told again is written down.
func awaitHooks(d decision) (decision, bool) {
	d.Poll, d.driverStateShown = instance.PollSettled, true
	return d, true
}
