package lifecycle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// describe returns the status that follows from a state and what was decided on it. Each condition
// has one function; one that it leaves as it is recorded is returned as it is recorded.
func describe(s State, d decision) Status {
	recorded := s.Machine.Status
	status := recorded
	status.Phase, status.NodeRef, status.ObservedGeneration = d.phase, describeNodeRef(s, d), s.Machine.Generation
	if d.operation != (clusterv1alpha1.LastOperation{}) && d.operation != undated(recorded.LastOperation) {
		d.operation.LastUpdateTime = metav1.NewTime(s.Now)
		status.LastOperation = &d.operation
	}
	if d.observed != nil {
		status.Addresses = d.observed.Addresses
	}
	status.LastKnownState = describeDriverState(s, d)
	status.ProviderID, status.ProviderIDAliases = describeProviderIDs(s)
	if !s.isPaused() {
		status = status.without(clusterv1alpha1.ConditionPaused)
	}
	status.NodeInfo = describeNodeInfo(s, d)
	if c := describeKubelet(s, status.NodeInfo); c.Type != "" {
		status = status.set(c, s)
	} else {
		status = status.without(clusterv1alpha1.ConditionKubeletVersionMatches)
	}
	for _, c := range []metav1.Condition{
		describeBootstrapReady(s, d), cmp.Or(d.drained, recorded.Condition(clusterv1alpha1.ConditionDrained)),
		cmp.Or(d.detached, recorded.Condition(clusterv1alpha1.ConditionVolumesDetached)),
		describeInstanceReady(s, d), describeNodeReady(s, d), describePaused(s),
	} {
		status = status.set(c, s)
	}
	if d.detachMoot {
		status = status.without(clusterv1alpha1.ConditionVolumesDetached)
	}
	isUpdating := status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonInstanceUpdating
	if status.Phase == clusterv1alpha1.MachinePhaseRunning && isUpdating {
		status.Phase = clusterv1alpha1.MachinePhaseUpdating
	}
	if failed := describeFailure(s, d, status); failed.Type != "" {
		status.ErrorReason, status.ErrorMessage = &failed.Reason, &failed.Message
		status.FailureReason, status.FailureMessage = &failed.Reason, &failed.Message
	}
	if d.phase == clusterv1alpha1.MachinePhaseDeleting {
		status.ErrorReason, status.ErrorMessage, status.FailureReason, status.FailureMessage = nil, nil, nil, nil
	}
	status = status.set(describeReady(status, s.isDeleting()), s)
	if stalled := describeStalled(status); stalled.Type != "" {
		return status.set(stalled, s)
	}
	return status.without(clusterv1alpha1.ConditionStalled)
}

// describeStalled is the condition of a machine that has failed; the zero value for any other.
func describeStalled(s Status) metav1.Condition {
	ready := s.Condition(clusterv1alpha1.ConditionReady)
	if s.Phase != clusterv1alpha1.MachinePhaseFailed || ready.Type == "" {
		return metav1.Condition{}
	}
	return condition(clusterv1alpha1.ConditionStalled, metav1.ConditionTrue, ready.Reason, ready.Message)
}

// describeNodeRef is nil without a Node: an empty reference would read as one. The uid of a Node
// that is not seen just now stays.
func describeNodeRef(s State, d decision) *corev1.ObjectReference {
	if d.nodeName == "" {
		return nil
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: d.nodeName}
	switch d.nodeName {
	case s.Node.Name:
		ref.UID = s.Node.UID
	case s.Machine.Status.nodeName():
		ref.UID = s.Machine.Status.nodeUID()
	}
	return ref
}

// describeDriverState is what the driver wants to be told again.
func describeDriverState(s State, d decision) []byte {
	switch {
	case (d.driverStateShown || hasPartialFailure(s.Memory)) && s.Memory.LastKnownState != nil:
		return s.Memory.LastKnownState
	case d.observed != nil:
		return d.observed.LastKnownState
	}
	return s.Machine.Status.LastKnownState
}

// hasPartialFailure says whether the last call failed, and handed over what must survive that.
func hasPartialFailure(m Memory) bool {
	return m.Last != nil && m.Last.Failure != nil && m.Last.Failure.LastKnownState != nil
}

// describeFailure is the condition that tells why a machine has failed for good just now, if it
// never had a Node: cluster-autoscaler deletes such machines. It is the zero value for any other.
func describeFailure(s State, d decision, described Status) metav1.Condition {
	if d.phase != clusterv1alpha1.MachinePhaseFailed || s.Machine.Status.Phase == d.phase || hadNode(s, d) {
		return metav1.Condition{}
	}
	if hasNotJoined(d.nodeReason) {
		return described.Condition(clusterv1alpha1.ConditionNodeReady)
	}
	return described.Condition(clusterv1alpha1.ConditionInstanceReady)
}

// hasNotJoined says whether a reason of NodeReady is one for which a machine fails: its VM did not
// join, or never can.
func hasNotJoined(reason string) bool {
	return reason == clusterv1alpha1.ReasonJoinTimeout || reason == clusterv1alpha1.ReasonTokenMissing
}

// describeReady sums the other conditions up.
func describeReady(s Status, isDeleting bool) metav1.Condition {
	const typ = clusterv1alpha1.ConditionReady
	if !isDeleting && s.Condition(clusterv1alpha1.ConditionInstanceReady).Type == "" {
		return metav1.Condition{}
	}
	if isDeleting {
		c := departureCondition(s)
		return condition(typ, metav1.ConditionFalse, c.Reason, c.Message)
	}
	types := []string{
		clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ConditionNodeReady,
	}
	if hasNotJoined(s.Condition(clusterv1alpha1.ConditionNodeReady).Reason) {
		// What failed the machine goes before what merely was not done when it did.
		slices.Reverse(types)
	}
	for _, other := range types {
		if c := s.Condition(other); c.Type != "" && c.Status != metav1.ConditionTrue {
			return condition(typ, c.Status, c.Reason, c.Message)
		}
	}
	message := "The VM runs and its Node is Ready."
	if s.Condition(clusterv1alpha1.ConditionNodeReady).Reason == clusterv1alpha1.ReasonNoNode {
		message = "The VM runs."
	}
	return condition(typ, metav1.ConditionTrue, clusterv1alpha1.ReasonMachineReady, message)
}

// departureCondition is the condition that says what a machine on its way out waits for.
func departureCondition(s Status) metav1.Condition {
	c := s.Condition(clusterv1alpha1.ConditionDrained)
	isOver := c.Reason == clusterv1alpha1.ReasonDrainTimedOut || c.Reason == clusterv1alpha1.ReasonDrainSkipped || c.Reason == clusterv1alpha1.ReasonNodeConflict
	if c.Type != "" && c.Status != metav1.ConditionTrue && !isOver {
		return c
	}
	if c = s.Condition(clusterv1alpha1.ConditionVolumesDetached); c.Reason == clusterv1alpha1.ReasonWaitingForVolumes {
		return c
	}
	c = s.Condition(clusterv1alpha1.ConditionInstanceReady)
	if c.Reason == "" || c.Status == metav1.ConditionTrue {
		c.Reason, c.Message = clusterv1alpha1.ReasonInstanceDeleting, "The machine is being deleted."
	}
	return c
}

// For so long what should pass by itself is not written down.
const (
	// driverDebounce: a driver that restarts, or an answer that was lost.
	driverDebounce = 5 * time.Second
	// limiterDebounce: a driver that takes no more calls at once.
	limiterDebounce = 2 * time.Minute
	// nodeDebounce: a Node that has registered and is about to become Ready.
	nodeDebounce = 30 * time.Second
	// drainDebounce: an API server that is busy, or volumes that are being detached.
	drainDebounce = 10 * time.Second
	// deleteDebounce: a VM that is being deleted.
	deleteDebounce = 10 * time.Second
	// clockDebounce: a clock that stands still.
	clockDebounce = 30 * time.Second
)

// debounce returns the step for a decision and the status that describes it: whether the status is
// written now, later, or not at all.
func debounce(s State, d decision, described Status) Step {
	recorded := s.Machine.Status
	write := !described.Equal(recorded) || d.mustWrite || recorded.ObservedGeneration != s.Machine.Generation && slices.Contains(lastingPhases, described.Phase)
	d, wait := debounceWrite(s, d, write)
	if wait {
		described = describeRecorded(s)
		write = !described.Equal(recorded)
	}
	step := d.Step
	if write && (d.Do == Nothing || d.Do == Create || d.Do == Delete) {
		// With any other action the status is written by a later step only.
		step.Events = append(step.Events, warnings(described, recorded)...)
	}
	step.Status, step.Write = described, write
	return step
}

// describeRecorded returns the recorded status with the driver's state, which is never held back.
// If it is written, it says that the spec of now has been seen.
func describeRecorded(s State) Status {
	status := s.Machine.Status
	status.ObservedGeneration = s.Machine.Generation
	status.NodeRef = describeNodeRef(s, decision{nodeName: status.nodeName()})
	status.LastKnownState = describeDriverState(s, decision{})
	for _, typ := range []string{
		clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ConditionVolumesDetached,
		clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ConditionPaused, clusterv1alpha1.ConditionReady,
	} {
		status = status.set(status.Condition(typ), s)
	}
	return status
}

// lastingPhases are those in which a status that has not seen its spec is written though it says
// nothing new: nothing else is going to be written.
var lastingPhases = []clusterv1alpha1.MachinePhase{
	clusterv1alpha1.MachinePhaseRunning, clusterv1alpha1.MachinePhaseUpdating, clusterv1alpha1.MachinePhaseFailed, clusterv1alpha1.MachinePhasePending,
}

// debounceWrite says whether the write has to wait, because what it tells should pass by itself
// within seconds. The decision remembers since when.
func debounceWrite(s State, d decision, write bool) (decision, bool) {
	if d.Do == Create || d.Do == Delete {
		// Whether the driver takes the call shows afterwards.
		return d, d.debounced != "" && write
	}
	if d.Do == DrainNode || d.Do == CheckVolumes || d.Do == CheckDaemonSets {
		// Nothing is written before that has found what is in the way: what is remembered of it
		// stays.
		return d, false
	}
	m := &d.Memory
	if d.debounced == "" || !write {
		m.Debounced, m.DebouncedSince = "", time.Time{}
		return d, false
	}
	if m.Debounced != d.debounced {
		m.Debounced, m.DebouncedSince = d.debounced, s.Now
	}
	until := m.DebouncedSince.Add(d.debounceFor)
	if !s.Now.Before(until) {
		return d, false
	}
	return d.waitUntil(until)
}

// warnings tell of what is in the way, once for each reason.
func warnings(described, recorded Status) []Event {
	var events []Event
	for _, typ := range []string{
		clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionInstanceReady,
		clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ConditionVolumesDetached,
	} {
		if c := described.Condition(typ); c.Reason != recorded.Condition(typ).Reason && isWarning(c) {
			events = append(events, Event{Warning: true, Reason: c.Reason, Message: c.Message})
		}
	}
	return events
}

// isWarning says whether a condition tells of something that is in the way, or will be.
func isWarning(c metav1.Condition) bool {
	if c.Status == metav1.ConditionTrue {
		isUnpolled := c.Type == clusterv1alpha1.ConditionInstanceReady && c.Reason != clusterv1alpha1.ReasonInstanceRunning
		return c.Reason == clusterv1alpha1.ReasonKubeletTooOld || isUnpolled
	}
	return !expectedReasons[c.Reason]
}

// expectedReasons are the reasons that belong to the normal course of things, or are told by
// others.
var expectedReasons = map[string]bool{
	clusterv1alpha1.ReasonInstanceCreating:     true,
	clusterv1alpha1.ReasonInstanceBooting:      true,
	clusterv1alpha1.ReasonInstanceUpdating:     true,
	clusterv1alpha1.ReasonInstanceDeleting:     true,
	clusterv1alpha1.ReasonDriverUnavailable:    true,
	clusterv1alpha1.ReasonOutcomeUnknown:       true,
	clusterv1alpha1.ReasonWaitingForNode:       true,
	clusterv1alpha1.ReasonNodeNotReady:         true,
	clusterv1alpha1.ReasonNodeUnknown:          true,
	clusterv1alpha1.ReasonNodeUninitialized:    true,
	clusterv1alpha1.ReasonWaitingForDaemonSets: true,
	clusterv1alpha1.ReasonDraining:             true,
	clusterv1alpha1.ReasonWaitingForVolumes:    true,

	clusterv1alpha1.ReasonWaitingForPreDrainHooks:     true,
	clusterv1alpha1.ReasonWaitingForPreTerminateHooks: true,
}
