package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// What core sets on a Node may be wanted otherwise by somebody else. syncBurst syncs in syncWindow
// are made at once, then there are pauses: two that differ shall not write to a Node without end.
const (
	syncBurst  = 5
	syncWindow = 10 * time.Minute
)

var syncBackoff = instance.Backoff{First: time.Second, Last: 5 * time.Minute}

// clockRecheck is how often a machine that waits reads its clock, to show when that stands still.
const clockRecheck = time.Minute

// decideNode gets the Node: it is found, synced, and Ready. A VM that runs is polled as settled
// (afterRunning), also while its first Node is awaited. It is polled as pending once its Node is
// gone or, of a machine that is Running, not Ready.
func decideNode(s State, d decision) (decision, bool) {
	if !s.Confirmed() {
		// The next poll says whether the VM is the machine's. Meanwhile what is written down of the
		// Node holds.
		d.Poll = instance.PollPending
		return d, true
	}
	if s.Machine.Nodeless {
		return decideNodeless(s, d)
	}
	switch s.Node.Match {
	case NodeFound:
		return decideJoined(s, d)
	case NodeConflicting:
		return decideConflict(s, d)
	case NodeNone:
	}
	return awaitNode(s, d)
}

// decideConflict: there is a Node, and it cannot be taken. One with an unknown providerID is waited
// for without a limit: a replacement would join with such an ID again, and be replaced for ever.
func decideConflict(s State, d decision) (decision, bool) {
	d.nodeName, d.nodeReason = "", clusterv1alpha1.ReasonNodeConflict
	if s.Node.HasUnknownID {
		d.nodeReason = clusterv1alpha1.ReasonProviderIDUnknown
		return d, true
	}
	if !s.isRunning() {
		d, _ = checkStartup(s, d, false)
	}
	return d, true
}

// decideNodeless: a machine that never has a Node becomes Running once its VM runs.
func decideNodeless(s State, d decision) (decision, bool) {
	d.nodeName, d.nodeReason, d.Memory.Wait = "", clusterv1alpha1.ReasonNoNode, Wait{}
	if !s.isRunning() && describeInstanceReady(s, d).Status == metav1.ConditionTrue {
		d.phase = clusterv1alpha1.MachinePhaseRunning
		d.Events = []Event{{Reason: "Running", Message: "The VM runs."}}
	}
	return d, true
}

// awaitNode: no Node fits. A Node that was deleted comes back when its kubelet registers again,
// which needs a VM that runs.
func awaitNode(s State, d decision) (decision, bool) {
	d.nodeReason = clusterv1alpha1.ReasonWaitingForNode
	if hadNode(s, d) {
		d.Poll = instance.PollPending
		d.nodeName, d.nodeReason = "", clusterv1alpha1.ReasonNodeMissing
	}
	if isStartupClockStopped(s) {
		d = d.debounce("clock", clockDebounce)
	}
	d, _ = checkStartup(s, d, s.isRunning())
	return d, true
}

// hadNode says whether the machine has or had a Node.
func hadNode(s State, d decision) bool {
	return s.isRunning() || d.nodeName != "" || s.Node.Match == NodeFound
}

// decideJoined: the machine has its Node.
func decideJoined(s State, d decision) (decision, bool) {
	if id := s.Node.ProviderID; id != "" && id != s.Machine.ProviderID {
		// The machine takes over the Node's form of the id. The API server allows that for an id
		// that is written down as an alias.
		if s.Machine.Status.hasProviderID(id) {
			return d.recordProviderID(id)
		}
		d.mustWrite = true
		return d, true
	}
	if needsDaemonSets(s) {
		return d.act(CheckDaemonSets)
	}
	if !s.Node.Synced || canAdmit(s) {
		var decided bool
		if d, decided = decideSync(s, d); decided {
			return d, true
		}
	}
	d = awaitDaemonSets(s, d)
	d.nodeName, d.nodeReason = s.Node.Name, clusterv1alpha1.ReasonNodeReady
	if s.isRunning() {
		d.Memory.Wait = Wait{}
		if s.Node.Ready != metav1.ConditionTrue {
			// A Node that fails may be the first to tell of a VM that is gone.
			d.Poll = instance.PollPending
		}
		return d, true
	}
	return decideFirstReady(s, d)
}

// decideFirstReady: a machine becomes Running once its VM runs and the gate is open.
func decideFirstReady(s State, d decision) (decision, bool) {
	runs, isOpen := describeInstanceReady(s, d).Status == metav1.ConditionTrue, isGateOpen(s)
	if runs && isOpen {
		d.Memory.Wait = Wait{}
		d.phase = clusterv1alpha1.MachinePhaseRunning
		d.Events = []Event{{Reason: "Running", Message: fmt.Sprintf("Node %s has joined and is Ready.", s.Node.Name)}}
		return d, true
	}
	if !isOpen {
		var late bool
		if d, late = checkStartup(s, d, false); late {
			return d, true
		}
	}
	if runs {
		d = d.debounce("node", cmp.Or(s.Machine.NodeDebounce, nodeDebounce))
	}
	return d, true
}

// decideSync sets on the Node what core sets there, unless that was done too often of late. It
// returns true when there is nothing else to do now. A Node that was synced once is judged
// meanwhile.
func decideSync(s State, d decision) (decision, bool) {
	m := &d.Memory
	if s.Now.Sub(m.SyncedAt) > syncWindow {
		m.Syncs = 0
	}
	if m.Syncs >= syncBurst {
		if again := m.SyncedAt.Add(syncBackoff.Nth(m.Syncs - syncBurst + 1)); s.Now.Before(again) {
			d, _ = d.waitUntil(again)
			return d, !s.isRunning()
		}
	}
	m.Syncs, m.SyncedAt = m.Syncs+1, s.Now
	d.Admit = canAdmit(s)
	return d.act(SyncNode)
}

// checkStartup fails a machine that did not get its Node in time; true when it does, or asks for
// the console before. Else it sees to it that it is noticed when the time is over. The time is
// spec.nodeStartupTimeout, else the manager's --node-startup-timeout. It counts while the clock of
// the cloud runs and the last poll found the VM; with needsRunning, a VM that runs. While the VM
// does not run yet, awaitRunning asks. Where no Node fits, controllers/machine looks for it in the
// API server before it writes the failure (confirmNoNode).
func checkStartup(s State, d decision, needsRunning bool) (decision, bool) {
	limit := s.Machine.StartupTimeout
	if limit <= 0 {
		return d, false
	}
	v := s.view()
	// A Node that is Ready is ahead of the last poll, which does not show the VM as running yet.
	joined := isInitialized(s.Node) && !isGateClosed(s)
	blind := joined || v.instance == nil || v.failure != nil || needsRunning && v.instance.State != instance.Running
	d.Memory.Wait = d.Memory.Wait.read(waitForNode, s.Now, s.Clock.Cloud, blind)
	observed := d.Memory.Wait.Observed
	if observed >= limit && !blind && s.Clock.Runs {
		var waits bool
		if d, waits = awaitConsole(s, d); waits {
			return d, true
		}
		d.nodeReason = clusterv1alpha1.ReasonJoinTimeout
		return d.fail()
	}
	d, _ = d.waitUntil(s.Now.Add(min(max(limit-observed, time.Second), clockRecheck)))
	return d, false
}

// isStartupClockStopped says whether the time in which the machine has to get its Node stands
// still. It is true only where there is such a time, and where people can be told what stops
// it.
func isStartupClockStopped(s State) bool {
	return s.Clock.Away != "" && s.Machine.StartupTimeout > 0
}

const notRegistered = "No Node has registered for this machine yet."

// describeNodeReady says how the Node is, or why there is none.
func describeNodeReady(s State, d decision) metav1.Condition {
	c := s.Machine.Status.Condition(clusterv1alpha1.ConditionNodeReady)
	if c.Type == "" && d.begun {
		c = nodeNotReady(clusterv1alpha1.ReasonWaitingForNode, notRegistered)
		if s.Machine.Nodeless {
			c = nodeNotNeeded()
		}
	}
	switch d.nodeReason {
	case "":
		return c
	case clusterv1alpha1.ReasonNoNode:
		return nodeNotNeeded()
	case clusterv1alpha1.ReasonNodeConflict, clusterv1alpha1.ReasonProviderIDUnknown:
		return nodeNotReady(d.nodeReason, s.Node.Conflict)
	case clusterv1alpha1.ReasonWaitingForNode:
		return nodeNotReady(d.nodeReason, notRegistered+joinProgressNote(s)+startupClockNote(s))
	case clusterv1alpha1.ReasonNodeMissing:
		message := "The machine had a Node, which is gone."
		if !s.isPaused() {
			message += " It comes back when the kubelet registers again." + startupClockNote(s)
		}
		return nodeNotReady(d.nodeReason, message)
	case clusterv1alpha1.ReasonTokenMissing:
		return nodeNotReady(d.nodeReason, describeLostToken(d))
	case clusterv1alpha1.ReasonJoinTimeout:
		return nodeNotReady(d.nodeReason, describeJoinTimeout(s)+describeConsole(s, d.Memory.Wait.ConsoleAskedAt))
	}
	if gated := describeGate(s); gated.Type != "" {
		return gated
	}
	return describeFoundNode(s.Node)
}

func nodeNotReady(reason, message string) metav1.Condition {
	return condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionFalse, reason, message)
}

// nodeNotNeeded is the condition NodeReady of a machine that never has a Node.
func nodeNotNeeded() metav1.Condition {
	return condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionTrue, clusterv1alpha1.ReasonNoNode, "The machine joins no cluster, so it needs no Node.")
}

// joinProgressNote tells people why the VM gets no further. That it is under way is told only if it
// does not arrive (describeJoinTimeout).
func joinProgressNote(s State) string {
	if !s.JoinProgress.Refused {
		return ""
	}
	return " " + s.JoinProgress.Message + "."
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
	case s.Machine.Nodeless:
		message = fmt.Sprintf("The VM does not run within %s", s.Machine.StartupTimeout)
	case s.isRunning():
		message = fmt.Sprintf("The Node is gone, and has not come back within %s", s.Machine.StartupTimeout)
	case s.Node.Match == NodeConflicting:
		message += ": " + s.Node.Conflict
	case s.Node.Match == NodeFound:
		message += ": " + describeObstacle(s)
	case s.JoinProgress.Message != "":
		message += ": " + s.JoinProgress.Message
	}
	return message + "."
}

// uninitializedNote tells people of a taint that may keep a Node from becoming Ready.
func uninitializedNote(n Node) string {
	if !n.Uninitialized {
		return ""
	}
	return " It has the taint " + UninitializedTaint + ", which a cloud controller takes away."
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
		return nodeNotReady(clusterv1alpha1.ReasonNodeNotReady, fmt.Sprintf("Node %s is not Ready: %s", n.Name, why)+uninitializedNote(n))
	}
	return condition(clusterv1alpha1.ConditionNodeReady, metav1.ConditionUnknown, clusterv1alpha1.ReasonNodeUnknown,
		fmt.Sprintf("Node %s has not reported: %s", n.Name, why))
}
