package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const notRegistered = "No Node has registered for this machine yet."

// describeNodeReady says how the Node is, or why there is none.
func describeNodeReady(s State, d decision) metav1.Condition {
	c := s.Machine.Status.Condition(clusterv1alpha1.ConditionNodeReady)
	if c.Type == "" && d.begun {
		c = nodeNotReady(clusterv1alpha1.ReasonWaitingForNode, notRegistered)
	}
	switch d.nodeReason {
	case "":
		return c
	case clusterv1alpha1.ReasonNodeConflict:
		return nodeNotReady(d.nodeReason, s.Node.Conflict)
	case clusterv1alpha1.ReasonWaitingForNode:
		return nodeNotReady(d.nodeReason, notRegistered+startupClockNote(s))
	case clusterv1alpha1.ReasonNodeMissing:
		message := "The machine had a Node, which is gone."
		if !s.isPaused() {
			message += " It comes back when the kubelet registers again." + startupClockNote(s)
		}
		return nodeNotReady(d.nodeReason, message)
	case clusterv1alpha1.ReasonJoinTimeout:
		return nodeNotReady(d.nodeReason, describeJoinTimeout(s))
	}
	return describeFoundNode(s.Node)
}

func nodeNotReady(reason, message string) metav1.Condition {
	return condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, reason, message)
}

// startupClockNote tells people that the time for the Node stands still.
func startupClockNote(s State) string {
	if !isStartupClockStopped(s) {
		return ""
	}
	return " The time for it stands still: " + s.Clock.Away + "."
}

// describeJoinTimeout tells why a machine failed that did not get its Node in time.
func describeJoinTimeout(s State) string {
	message := fmt.Sprintf("The VM has not become a Ready Node within %s", s.Machine.StartupTimeout)
	switch {
	case s.isRunning():
		message = fmt.Sprintf("The Node is gone, and has not come back within %s", s.Machine.StartupTimeout)
	case s.Node.Match == NodeConflicting:
		message += ": " + s.Node.Conflict
	case s.Node.Match == NodeFound:
		message += ": " + s.Node.Message
	}
	return message + "."
}

// describeFoundNode shows how the Node is, in words that stay the same as long as it is so: what
// the kubelet says of itself may change with each heartbeat, and stands in the Node.
func describeFoundNode(n Node) metav1.Condition {
	why := "it has no condition Ready."
	if n.Reason != "" {
		why = n.Reason + ". Its condition Ready says more."
	}
	switch n.Ready {
	case metav1.ConditionTrue:
		return condition(clusterv1alpha1.ConditionNodeReady, n.Ready, clusterv1alpha1.ReasonNodeReady, fmt.Sprintf("Node %s is Ready.", n.Name))
	case metav1.ConditionFalse:
		return nodeNotReady(clusterv1alpha1.ReasonNodeNotReady, fmt.Sprintf("Node %s is not Ready: %s", n.Name, why))
	}
	return condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionUnknown, clusterv1alpha1.ReasonNodeUnknown,
		fmt.Sprintf("Node %s has not reported: %s", n.Name, why))
}
