package story

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Step is something that has happened to a Machine.
type Step struct {
	// At is when: for an event that repeats, the last time.
	At time.Time
	// What is a condition, or Event, Created, Deleted.
	What string
	// Status is that of a condition, and Warning or Normal of an event.
	Status string
	// Reason is one word, Message what there is to say, on one line or several.
	Reason, Message string
}

// Steps are in the order in which they happened. Ready repeats another condition, so that it is no
// step.
func Steps(m *clusterv1alpha1.Machine, events []eventsv1.Event) []Step {
	steps := []Step{{At: m.CreationTimestamp.Time, What: "Created"}}
	if m.DeletionTimestamp != nil {
		steps = append(steps, Step{At: m.DeletionTimestamp.Time, What: "Deleted", Message: "The Machine shall go."})
	}
	for _, c := range m.Status.Conditions {
		if c.Type != clusterv1alpha1.ConditionReady {
			steps = append(steps, Step{At: c.LastTransitionTime.Time, What: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message})
		}
	}
	for _, e := range events {
		steps = append(steps, Step{At: last(e), What: "Event", Status: e.Type, Reason: e.Reason + times(e), Message: e.Note})
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return steps
}

// last is when an event happened last, wherever its writer has put that.
func last(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	if e.EventTime.IsZero() {
		return e.DeprecatedLastTimestamp.Time
	}
	return e.EventTime.Time
}

// times says how often an event was seen, if more than once.
func times(e eventsv1.Event) string {
	n := e.DeprecatedCount
	if e.Series != nil {
		n = e.Series.Count
	}
	if n > 1 {
		return fmt.Sprintf(" (x%d)", n)
	}
	return ""
}

// addresses are a Machine's, each with its kind.
func addresses(list []corev1.NodeAddress) []string {
	var texts []string
	for _, a := range list {
		texts = append(texts, fmt.Sprintf("%s (%s)", a.Address, a.Type))
	}
	return texts
}

// owner is who made the Machine; empty for nobody.
func owner(m metav1.Object) string {
	if o := metav1.GetControllerOf(m); o != nil {
		return o.Kind + "/" + o.Name
	}
	return ""
}
