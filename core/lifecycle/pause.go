package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// paused: nothing is done for the machine, on its way in or out. What became of a call that was
// under way is remembered. How the Node of a machine that runs is costs nothing to know, and is
// shown: others count on it.
func (p *plan) paused() {
	why := p.Machine.Paused
	p.Memory.Wait.Blind = true
	if p.status.Condition(clusterv1alpha1.ConditionPaused).Type == "" {
		p.events = append(p.events, Event{Reason: clusterv1alpha1.ConditionPaused, Message: why.Message})
	}
	if !p.Machine.Deleting.IsZero() {
		why.Message += " The machine is to be deleted; that waits, too."
		p.status.Phase, p.status.Failure = clusterv1alpha1.MachinePhaseDeleting, nil
	}
	p.condition(clusterv1alpha1.ConditionPaused, metav1.ConditionTrue, why.Reason, why.Message)
	switch {
	case p.status.Condition(clusterv1alpha1.ConditionInstanceReady).Type == "":
		p.setPending()
	case p.status.Phase != clusterv1alpha1.MachinePhaseRunning:
	case !p.Confirmed():
		// Which Node it has is not known.
	case p.Node.Match == NodeFound:
		p.showNode()
	default:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonNodeMissing, "The machine had a Node, which is gone.")
	}
}
