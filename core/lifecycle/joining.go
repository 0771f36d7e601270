package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// node gets the Node: it is found, claimed, and Ready.
func (p *plan) node() bool {
	switch p.Node.Match {
	case NodeFound:
		return p.joined()
	case NodeConflicting:
		p.status.NodeName = ""
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonNodeConflict, p.Node.Conflict)
	case NodeNone:
		p.alone()
	}
	return p.waitUntil(time.Time{})
}

// alone: no Node fits.
func (p *plan) alone() {
	if !p.hadNode() {
		p.waitingForNode()
		return
	}
	p.status.NodeName = ""
	p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse,
		clusterv1alpha1.ReasonNodeMissing, "The machine had a Node, which is gone. It comes back when the kubelet registers again.")
}

func (p *plan) waitingForNode() {
	p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse,
		clusterv1alpha1.ReasonWaitingForNode, "No Node has registered for this machine yet.")
}

// joined: the machine has its Node.
func (p *plan) joined() bool {
	if !p.Node.Claimed {
		return p.act(Claim)
	}
	p.status.NodeName = p.Node.Name
	switch p.Node.Ready {
	case metav1.ConditionTrue:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionTrue,
			clusterv1alpha1.ReasonNodeReady, fmt.Sprintf("Node %s is Ready.", p.Node.Name))
	case metav1.ConditionFalse:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonNodeNotReady,
			fmt.Sprintf("Node %s is not Ready: %s", p.Node.Name, p.Node.Message))
	default:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionUnknown, clusterv1alpha1.ReasonNodeUnknown,
			fmt.Sprintf("Node %s has not reported: %s", p.Node.Name, p.Node.Message))
	}
	runs := p.status.Condition(clusterv1alpha1.ConditionInstanceReady).Status == metav1.ConditionTrue
	if p.status.Phase == clusterv1alpha1.MachinePhaseRunning || !runs {
		return p.waitUntil(time.Time{})
	}
	if p.Node.Ready != metav1.ConditionTrue {
		p.expect("node", nodePatience)
		return p.waitUntil(time.Time{})
	}
	p.status.Phase = clusterv1alpha1.MachinePhaseRunning
	p.events = append(p.events, Event{Reason: "Running", Message: fmt.Sprintf("Node %s has joined and is Ready.", p.Node.Name)})
	return p.waitUntil(time.Time{})
}
