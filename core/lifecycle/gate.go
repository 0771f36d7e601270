package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// The gate stands between a Node that has joined and a machine that is Running: see docs/adr/0032.
// It opens when the Node is Ready, a cloud controller has initialised it where one has to, and the
// pods of critical DaemonSets run there. Then core takes the start-up taints away, and the machine
// is Running. It holds on the way in only. A machine that is Running stays so; if its Node has
// registered anew, with start-up taints, these go by the same rules.

// gateBackoff are the pauses between two looks at critical DaemonSets: most pods start within
// seconds.
var gateBackoff = instance.Backoff{First: time.Second, Last: 15 * time.Second}

// UninitializedTaint is the key of the taint with which a kubelet registers that expects a cloud
// controller; that one takes it away. Source: TaintExternalCloudProvider in
// k8s.io/cloud-provider/api.
const UninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// isGated says whether anything depends on the gate.
func isGated(s State) bool {
	return !s.isRunning() || s.Node.HasStartupTaints
}

// isGateOpen says whether the Node can take pods, as far as this state knows. Critical DaemonSets
// that nobody has looked at keep it closed.
func isGateOpen(s State) bool {
	if !isInitialized(s.Node) {
		return false
	}
	found := s.DaemonSets
	return !s.Machine.AwaitsDaemonSets || found != nil && *found == DaemonSets{}
}

// isInitialized says whether the Node is Ready, and no cloud controller has to initialise it.
func isInitialized(n Node) bool {
	return n.Match == NodeFound && n.Ready == metav1.ConditionTrue && !n.Uninitialized
}

// needsDaemonSets says whether the gate now depends on a look at the critical DaemonSets.
func needsDaemonSets(s State) bool {
	return isGated(s) && isInitialized(s.Node) && s.Machine.AwaitsDaemonSets && s.DaemonSets == nil
}

// canAdmit says whether core is to take start-up taints from the Node now.
func canAdmit(s State) bool {
	return s.Node.HasStartupTaints && isGateOpen(s)
}

// needsNodeStep says whether core has to look at the Node's DaemonSets or write to the Node now.
func needsNodeStep(s State) bool {
	return !s.Node.Synced || canAdmit(s) || needsDaemonSets(s)
}

// awaitDaemonSets has critical DaemonSets looked at again, if they are what keeps the gate closed:
// nobody watches pods.
func awaitDaemonSets(s State, d decision) decision {
	if s.DaemonSets == nil || isGateOpen(s) {
		d.Memory.GateLooks = 0
		return d
	}
	d.Memory.GateLooks++
	d, _ = d.waitUntil(s.Now.Add(gateBackoff.Nth(d.Memory.GateLooks)))
	return d
}

// isGateClosed says whether something is known to keep the gate closed on a Node that is Ready. It
// is false where nobody could look.
func isGateClosed(s State) bool {
	return s.Node.Uninitialized || s.DaemonSets != nil && s.DaemonSets.Waiting != ""
}

// describeGate shows what the Node of a machine that is not Running yet waits for though it is
// Ready; the zero value for nothing.
func describeGate(s State) metav1.Condition {
	reason, ready := clusterv1alpha1.ReasonWaitingForDaemonSets, fmt.Sprintf("Node %s is Ready, ", s.Node.Name)
	switch {
	case s.isRunning() || s.Node.Ready != metav1.ConditionTrue:
		return metav1.Condition{}
	case s.Node.Uninitialized:
		return nodeNotReady(clusterv1alpha1.ReasonNodeUninitialized, ready+uninitialized+".")
	case s.DaemonSets == nil || isGateOpen(s):
		return metav1.Condition{}
	case s.DaemonSets.Error != "":
		return condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionUnknown, reason,
			ready+"and nobody can tell whether its critical DaemonSets run: "+s.DaemonSets.Error)
	}
	return nodeNotReady(reason, ready+describeWaiting(s.DaemonSets)+".")
}

// uninitialized is what a Node with UninitializedTaint waits for.
const uninitialized = "and waits for a cloud controller to take away the taint " + UninitializedTaint

// describeWaiting names the DaemonSets that are waited for.
func describeWaiting(found *DaemonSets) string {
	return "and waits for the pods of critical DaemonSets: " + found.Waiting
}

// describeObstacle tells what a machine that failed for want of a Ready Node waited for last, of
// one that has a Node.
func describeObstacle(s State) string {
	message := s.Node.Message
	if s.Node.Ready == metav1.ConditionTrue {
		message = fmt.Sprintf("Node %s is Ready", s.Node.Name)
	}
	switch {
	case s.Node.Uninitialized:
		message += ", " + uninitialized
	case s.DaemonSets != nil:
		message += ", " + describeWaiting(s.DaemonSets)
	}
	return message
}
