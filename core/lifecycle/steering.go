package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// dismissPatience is how long the news that the machine is on its way out may take.
const dismissPatience = 30 * time.Second

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
		p.notYet()
	case p.status.Phase != clusterv1alpha1.MachinePhaseRunning:
	case !p.Confirmed():
		// Which Node it has is not known.
	case p.Node.Match == NodeFound:
		p.judged()
	default:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonNodeMissing, "The machine had a Node, which is gone.")
	}
}

// dismissed: somebody wants the machine to go now. It is deleted as by anybody else.
func (p *plan) dismissed() bool {
	if p.Machine.Dismissed == "" {
		return false
	}
	if at := p.Memory.DismissedAt; !at.IsZero() && p.Now.Before(at.Add(dismissPatience)) {
		return p.waitUntil(at.Add(dismissPatience))
	}
	p.Memory.DismissedAt = p.Now
	p.events = append(p.events, Event{
		Reason: "DeleteNow", Message: fmt.Sprintf("Deleted: %s carries the annotation %s.", p.Machine.Dismissed, clusterv1alpha1.DeleteNowAnnotation),
	})
	return p.act(Dismiss)
}
