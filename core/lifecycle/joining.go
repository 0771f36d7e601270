package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// node gets the Node: it is found, claimed, and Ready.
func (p *plan) node() bool {
	if !p.Confirmed() {
		// The next look says whether the VM is the machine's. Meanwhile what is written down of the
		// Node holds.
		p.watch = Closely
		return p.waitUntil(time.Time{})
	}
	switch p.Node.Match {
	case NodeFound:
		return p.joined()
	case NodeConflicting:
		p.status.NodeName = ""
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonNodeConflict, p.Node.Conflict)
		if p.status.Phase != clusterv1alpha1.MachinePhaseRunning && p.late(false) {
			return p.failJoin()
		}
	case NodeNone:
		return p.alone()
	}
	return p.waitUntil(time.Time{})
}

// alone: no Node fits. A Node that was deleted comes back when its kubelet registers again, which
// takes a VM that runs.
func (p *plan) alone() bool {
	reason, message := clusterv1alpha1.ReasonWaitingForNode, notRegistered
	if p.hadNode() {
		p.watch = Closely
		p.status.NodeName = ""
		reason = clusterv1alpha1.ReasonNodeMissing
		message = "The machine had a Node, which is gone. It comes back when the kubelet registers again."
	}
	p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, reason, p.stands(message))
	if p.late(p.status.Phase == clusterv1alpha1.MachinePhaseRunning) {
		return p.failJoin()
	}
	return p.waitUntil(time.Time{})
}

const notRegistered = "No Node has registered for this machine yet."

// What core sets on a Node may be wanted otherwise by somebody else. patientClaims in claimWindow
// are made at once, then there are pauses: two that differ shall not write to a Node without end.
const (
	patientClaims = 5
	claimWindow   = 10 * time.Minute
)

var claimBackoff = instance.Backoff{First: time.Second, Last: 5 * time.Minute}

// claims sets on the Node what core sets there, unless that was done too often of late; true when
// there is nothing else to do now. A Node that was claimed once is judged meanwhile.
func (p *plan) claims() bool {
	m := &p.Memory
	if p.Now.Sub(m.ClaimedAt) > claimWindow {
		m.Claims = 0
	}
	if m.Claims >= patientClaims {
		if again := m.ClaimedAt.Add(claimBackoff.Nth(m.Claims - patientClaims + 1)); p.Now.Before(again) {
			p.waitUntil(again)
			return p.status.Phase != clusterv1alpha1.MachinePhaseRunning
		}
	}
	m.Claims, m.ClaimedAt = m.Claims+1, p.Now
	return p.act(Claim)
}

// joined: the machine has its Node.
func (p *plan) joined() bool {
	if p.takeOverNodeID() {
		return true
	}
	if !p.Node.Claimed && p.claims() {
		return true
	}
	p.status.NodeName = p.Node.Name
	p.showNode()
	if p.status.Phase == clusterv1alpha1.MachinePhaseRunning {
		p.Memory.Wait = Wait{}
		if p.Node.Ready != metav1.ConditionTrue {
			// A Node that fails may be the first to tell of a VM that is gone.
			p.watch = Closely
		}
		return p.waitUntil(time.Time{})
	}
	runs := p.status.Condition(clusterv1alpha1.ConditionInstanceReady).Status == metav1.ConditionTrue
	ready := p.Node.Ready == metav1.ConditionTrue
	switch {
	case runs && ready:
	case !ready && p.late(false):
		return p.failJoin()
	case runs:
		p.debounceFor("node", nodePatience)
		return p.waitUntil(time.Time{})
	default:
		return p.waitUntil(time.Time{})
	}
	p.Memory.Wait = Wait{}
	p.status.Phase = clusterv1alpha1.MachinePhaseRunning
	p.events = append(p.events, Event{Reason: "Running", Message: fmt.Sprintf("Node %s has joined and is Ready.", p.Node.Name)})
	return p.waitUntil(time.Time{})
}

// takeOverNodeID takes over the Node's form of the id. The API server allows that for an id that is
// written down as an alias.
func (p *plan) takeOverNodeID() bool {
	id := p.Node.ProviderID
	if id == "" || id == p.Machine.ProviderID {
		return false
	}
	if !p.Machine.Status.names(id) {
		p.due = true
		return p.waitUntil(time.Time{})
	}
	return p.recordProviderID(id)
}

// showNode shows how the Node is, in words that stay the same as long as it is so: what the kubelet
// says of itself may change with each heartbeat, and stands in the Node.
func (p *plan) showNode() {
	why := "it has no condition Ready."
	if p.Node.Reason != "" {
		why = p.Node.Reason + ". Its condition Ready says more."
	}
	switch p.Node.Ready {
	case metav1.ConditionTrue:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionTrue,
			clusterv1alpha1.ReasonNodeReady, fmt.Sprintf("Node %s is Ready.", p.Node.Name))
	case metav1.ConditionFalse:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, clusterv1alpha1.ReasonNodeNotReady,
			fmt.Sprintf("Node %s is not Ready: %s", p.Node.Name, why))
	default:
		p.condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionUnknown, clusterv1alpha1.ReasonNodeUnknown,
			fmt.Sprintf("Node %s has not reported: %s", p.Node.Name, why))
	}
}
