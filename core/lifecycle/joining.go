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

// What core sets on a Node may be wanted otherwise by somebody else. patientClaims in claimWindow are made at once, then
// there are pauses: two that differ shall not write to a Node without end.
const (
	patientClaims = 5
	claimWindow   = 10 * time.Minute
)

var claimPauses = pause{first: time.Second, last: 5 * time.Minute}

// claims sets on the Node what core sets there, unless that was done too often of late; true when there is nothing else to
// do now. A Node that was claimed once is judged meanwhile.
func (p *plan) claims() bool {
	m := &p.Memory
	if p.Now.Sub(m.ClaimedAt) > claimWindow {
		m.Claims = 0
	}
	if m.Claims >= patientClaims {
		if again := m.ClaimedAt.Add(claimPauses.nth(m.Claims - patientClaims + 1)); p.Now.Before(again) {
			p.waitUntil(again)
			return p.status.Phase != clusterv1alpha1.MachinePhaseRunning
		}
	}
	m.Claims, m.ClaimedAt = m.Claims+1, p.Now
	return p.act(Claim)
}

// joined: the machine has its Node.
func (p *plan) joined() bool {
	if !p.Node.Claimed && p.claims() {
		return true
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
