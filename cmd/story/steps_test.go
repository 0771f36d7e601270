package story

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Steps stand in the order in which they happened, whoever has told of them.
func TestOPS4_AStoryIsInOrder(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	m := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(0)), DeletionTimestamp: new(metav1.NewTime(at(50)))}}
	m.Status.Conditions = []metav1.Condition{
		{Type: clusterv1alpha1.ConditionNodeReady, Status: metav1.ConditionTrue, Reason: "NodeReady", LastTransitionTime: metav1.NewTime(at(30))},
		{Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionTrue, Reason: "Running", LastTransitionTime: metav1.NewTime(at(10))},
		{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "MachineReady", LastTransitionTime: metav1.NewTime(at(30))},
	}
	events := []eventsv1.Event{
		{Reason: "Repeated", EventTime: metav1.NewMicroTime(at(1)), Series: &eventsv1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(at(40))}},
		{Reason: "Once", EventTime: metav1.NewMicroTime(at(20))},
		{Reason: "Older", DeprecatedLastTimestamp: metav1.NewTime(at(5)), DeprecatedCount: 2},
	}
	var got []string
	for _, s := range Steps(m, events) {
		got = append(got, s.At.UTC().Format("05")+" "+s.What+" "+s.Reason)
	}
	want := []string{
		"00 Created ", "05 Event Older (x2)", "10 InstanceReady Running", "20 Event Once", "30 NodeReady NodeReady", "40 Event Repeated (x4)", "50 Deleted ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
