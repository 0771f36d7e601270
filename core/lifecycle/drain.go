package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Pauses between two passes of a drain: short at first, for most pods stop within seconds. While a
// PodDisruptionBudget is in the way they are longer, since hundreds of drains may wait for one.
var (
	drainBackoff   = instance.Backoff{First: time.Second, Last: 10 * time.Second}
	blockedBackoff = instance.Backoff{First: 5 * time.Second, Last: 20 * time.Second}
)

const (
	// recordedRecheck is when to decide again after it was written down what the VM goes with.
	recordedRecheck = time.Second
	// leastWait is how long this process drains, or waits for volumes, at least, unless the machine
	// gives it less. However long ago that began, nobody may have drained the Node meanwhile, nor
	// anything have been detached.
	leastWait = 5 * time.Minute
)

// decideDrain: no pod is left on the Node that could be evicted, the time for it is over, or it is
// skipped.
func decideDrain(s State, d decision) (decision, bool) {
	d.phase, d.drained = clusterv1alpha1.MachinePhaseDeleting, d.Memory.Drained
	switch {
	case d.Memory.Gone || d.Memory.Drained.Type != "" || s.Machine.Status.IsDrainOver():
		return d, false
	case s.Node.Match == NodeConflicting:
		d.drained = describeDrained(s, clusterv1alpha1.ReasonNodeConflict)
		return d, false
	case s.Node.Match == NodeNone:
		d.drained = describeDrained(s, clusterv1alpha1.ReasonNoNode)
		return d, false
	}
	if d, waits := awaitPreDrainHooks(s, d); waits {
		return d, true
	}
	if s.Machine.SkipsDrain {
		return leavePods(s, d, clusterv1alpha1.ReasonDrainSkipped)
	}
	d.Memory.Wait = d.Memory.Wait.read(waitForDrain, s.Now, s.Clock.Cluster, false)
	left := timeLeft(s.Machine.Status.Condition(clusterv1alpha1.ConditionDrained), s.Machine.DrainTimeout, d.Memory.Wait)
	if s.Drain == nil && left > 0 {
		return d.act(DrainNode)
	}
	switch reason := drainEnd(s, left); reason {
	case "":
		return awaitDrain(s, d, left)
	case clusterv1alpha1.ReasonDrainTimedOut:
		return leavePods(s, d, reason)
	default:
		d.drained = describeDrained(s, reason)
		d.Memory.Drained = d.drained
		return d, false
	}
}

// IsDrainOver says whether the drain of a machine on its way out is written down as over. A machine
// without a Node has none.
func (s Status) IsDrainOver() bool {
	c := s.Condition(clusterv1alpha1.ConditionDrained)
	over := c.Status == metav1.ConditionTrue && c.Reason != clusterv1alpha1.ReasonNoNode ||
		c.Reason == clusterv1alpha1.ReasonDrainTimedOut || c.Reason == clusterv1alpha1.ReasonDrainSkipped
	return over && s.Phase == clusterv1alpha1.MachinePhaseDeleting
}

// IsDrainSkipped says whether it is written down of a machine on its way out that its drain was
// skipped: pods, and their volumes, may be left on the Node.
func (s Status) IsDrainSkipped() bool {
	return s.IsDrainOver() && s.Condition(clusterv1alpha1.ConditionDrained).Reason == clusterv1alpha1.ReasonDrainSkipped
}

// leavePods ends a drain with pods that are left. It is written down, and told by an Event, before
// anything else is done. That ends the drain: see IsDrainOver.
func leavePods(s State, d decision, reason string) (decision, bool) {
	d.drained = describeDrained(s, reason)
	return d.waitUntil(s.Now.Add(recordedRecheck))
}

// timeLeft is how long a wait on the way out may yet take, of which a condition tells. It began
// when this process first saw it, or before, when the condition became False. The time before this
// process saw it counts in full, the time since then as far as the API server could be asked.
func timeLeft(recorded metav1.Condition, timeout time.Duration, w Wait) time.Duration {
	began := w.Since
	if recorded.Status == metav1.ConditionFalse {
		began = recorded.LastTransitionTime.Time
	}
	left := timeout - max(0, w.Since.Sub(began)) - w.Observed
	return max(left, min(timeout, leastWait)-w.Observed)
}

// drainEnd is the reason why the drain is over; empty while it is not. It goes by what the last
// pass found and by how long the drain may yet take.
func drainEnd(s State, left time.Duration) string {
	pass := s.Drain
	complete := pass != nil && pass.Error == ""
	switch {
	case complete && pass.Done:
		return clusterv1alpha1.ReasonDrained
	case complete && pass.Terminating && isNodeUnreachable(s):
		return clusterv1alpha1.ReasonNodeUnreachable
	case left <= 0:
		return clusterv1alpha1.ReasonDrainTimedOut
	}
	return ""
}

// awaitDrain waits for the next pass. What the API server refuses is shown unless that passes, and
// so is what the next pod with volumes waits for.
func awaitDrain(s State, d decision, left time.Duration) (decision, bool) {
	pass := s.Drain
	d.Memory.DrainPasses++
	d.Memory.PodsRemaining = pass.Remaining
	d.Memory.PassesBlocked++
	if pass.Blocked == "" {
		d.Memory.PassesBlocked = 0
	}
	wait := drainBackoff.Nth(d.Memory.DrainPasses)
	reason := clusterv1alpha1.ReasonDraining
	switch {
	case pass.Error != "":
	case pass.Blocked != "":
		reason, wait = clusterv1alpha1.ReasonBlockedByPodDisruptionBudget, blockedBackoff.Nth(d.Memory.PassesBlocked)
	case pass.Refused != "":
		reason = clusterv1alpha1.ReasonEvictionRefused
	}
	mayPass := pass.Error != "" || reason == clusterv1alpha1.ReasonEvictionRefused || reason == clusterv1alpha1.ReasonDraining && pass.Next != ""
	if mayPass && s.Machine.Status.Phase == clusterv1alpha1.MachinePhaseDeleting {
		d = d.debounce("drain", drainDebounce)
	}
	d.drained = describeDrained(s, reason)
	return d.waitUntil(s.Now.Add(min(wait, left)))
}

// isNodeUnreachable says whether nothing has been heard of the Node's kubelet for so long that it
// counts as gone. That a Node is called silent proves nothing by itself: node-lifecycle says so of
// Nodes that live, after an outage of the API server, until their kubelets have renewed their
// Leases.
func isNodeUnreachable(s State) bool {
	switch silence := s.Memory.Silence; {
	case !s.Drain.Silent:
		return false
	case isInstanceGone(s):
		return true
	case s.Drain.LeaseError != "":
		return false
	default:
		return s.Clock.Nodes-silence.Since >= s.Machine.UnreachableAfter
	}
}

// isInstanceGone says whether the VM is known to be gone: a silent kubelet's pods have ended with
// it.
func isInstanceGone(s State) bool {
	return s.view().isMissing() ||
		s.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceMissing
}

// describeDrained is the condition Drained for a reason: what the drain waits for, or how it ended.
func describeDrained(s State, reason string) metav1.Condition {
	c := metav1.Condition{Type: clusterv1alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: reason}
	node, pass := s.Node.Name, s.Drain
	switch reason {
	case clusterv1alpha1.ReasonNodeConflict:
		c.Message = s.Node.Conflict
	case clusterv1alpha1.ReasonNoNode:
		c.Status, c.Message = metav1.ConditionTrue, "The machine has no Node to drain."
	case clusterv1alpha1.ReasonDrained:
		c.Status, c.Message = metav1.ConditionTrue, fmt.Sprintf("No pod is left on Node %s that could be evicted.", node)
	case clusterv1alpha1.ReasonNodeUnreachable:
		c.Status = metav1.ConditionTrue
		c.Message = fmt.Sprintf("Node %s does not answer; its pods are not waited for: %s.", node, pass.Remaining)
	case clusterv1alpha1.ReasonDrainTimedOut:
		c.Message = fmt.Sprintf("The drain of Node %s took longer than %s; the VM goes with the pods that are left", node, s.Machine.DrainTimeout)
		if s.Memory.PodsRemaining != "" {
			c.Message += ": " + s.Memory.PodsRemaining
		}
		c.Message += "."
	case clusterv1alpha1.ReasonDrainSkipped:
		c.Message = fmt.Sprintf("The annotation %s skips the drain of Node %s; the VM goes with the pods that are on it.",
			clusterv1alpha1.ExcludeNodeDrainingAnnotation, node)
	case clusterv1alpha1.ReasonBlockedByPodDisruptionBudget:
		c.Message = pass.Blocked
		if pass.Refused != "" {
			c.Message += "; " + pass.Refused
		}
		c.Message += nextNote(s)
	case clusterv1alpha1.ReasonEvictionRefused:
		c.Message = pass.Refused + nextNote(s)
	case clusterv1alpha1.ReasonDraining:
		c.Message = fmt.Sprintf("Waiting for the pods that were evicted from Node %s%s.", node, nextNote(s)) + silenceNote(s)
		if pass.Error != "" {
			c.Message = fmt.Sprintf("Node %s cannot be drained: %s", node, pass.Error)
		}
	}
	return c
}

// nextNote tells people what the next pod with volumes waits for.
func nextNote(s State) string {
	if s.Drain.Next == "" {
		return ""
	}
	return "; pods with volumes go one at a time, and the next one waits for " + s.Drain.Next
}

// silenceNote tells people that the kubelet of a Node whose pods are waited for does not report.
func silenceNote(s State) string {
	switch {
	case !s.Drain.Silent:
		return ""
	case s.Drain.LeaseError != "":
		return " Its kubelet does not report, and whether it still lives cannot be read: " + s.Drain.LeaseError
	}
	return fmt.Sprintf(" Its kubelet does not report. They are no longer waited for once that has lasted %s in which other Nodes report.",
		s.Machine.UnreachableAfter)
}
