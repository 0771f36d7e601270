package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// For so long what should pass by itself is not written down.
const (
	// driverDebounce: a driver that restarts, or an answer that was lost.
	driverDebounce = 5 * time.Second
	// limiterDebounce: a driver that takes no more calls at once.
	limiterDebounce = 2 * time.Minute
	// nodeDebounce: a Node that has registered and is about to become Ready.
	nodeDebounce = 30 * time.Second
	// drainDebounce: an API server that is busy.
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
		described = recorded
		described.ObservedGeneration = s.Machine.Generation
		described.LastKnownState = describeDriverState(s, decision{})
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

// lastingPhases are those in which a status that has not seen its spec is written though it says
// nothing new: nothing else is going to be written.
var lastingPhases = []clusterv1alpha1.MachinePhase{
	clusterv1alpha1.MachinePhaseRunning, clusterv1alpha1.MachinePhaseFailed, clusterv1alpha1.MachinePhasePending,
}

// debounceWrite says whether the write has to wait, because what it tells should pass by itself
// within seconds. The decision remembers since when.
func debounceWrite(s State, d decision, write bool) (decision, bool) {
	if d.Do == Create || d.Do == Delete {
		// Whether the driver takes the call shows afterwards.
		return d, d.debounced != "" && write
	}
	if d.Do == DrainNode {
		// Nothing is written before the pass, which finds what is in the way: what is remembered of
		// that stays.
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
		clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ConditionDrained,
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
	clusterv1alpha1.ReasonInstanceCreating:  true,
	clusterv1alpha1.ReasonInstanceBooting:   true,
	clusterv1alpha1.ReasonInstanceUpdating:  true,
	clusterv1alpha1.ReasonInstanceDeleting:  true,
	clusterv1alpha1.ReasonDriverUnavailable: true,
	clusterv1alpha1.ReasonOutcomeUnknown:    true,
	clusterv1alpha1.ReasonWaitingForNode:    true,
	clusterv1alpha1.ReasonNodeNotReady:      true,
	clusterv1alpha1.ReasonNodeUnknown:       true,
	clusterv1alpha1.ReasonDraining:          true,
}
