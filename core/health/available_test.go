package health

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// What is written down is the second in which a Machine became Ready: it may have been at its very
// end.
func TestROL5_AvailabilityIsNeverCountedEarly(t *testing.T) {
	ready := time.Unix(1000, 999_999_999)
	m := &clusterv1alpha1.Machine{}
	m.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(ready.Unix(), 0),
	}}
	for _, tc := range []struct {
		why      string
		minReady time.Duration
		after    time.Duration
		want     bool
		left     time.Duration
	}{
		{"without a time to wait it is at once", 0, 0, true, 0},
		{"not at once", 10 * time.Second, 0, false, 10*time.Second + time.Nanosecond},
		{"not just before the time is over", 10 * time.Second, 10*time.Second - time.Nanosecond, false, 2 * time.Nanosecond},
		{"but when the second is over", 10 * time.Second, 10*time.Second + time.Nanosecond, true, 0},
		{"and a second after at the latest", 10 * time.Second, 11 * time.Second, true, 0},
	} {
		got, left := IsAvailable(m, tc.minReady, ready.Add(tc.after))
		if got != tc.want || left != tc.left {
			t.Errorf("%s: %t, %s left; want %t, %s", tc.why, got, left, tc.want, tc.left)
		}
	}
	m.DeletionTimestamp = &metav1.Time{Time: ready}
	if got, _ := IsAvailable(m, 0, ready); got {
		t.Error("one that is being deleted is available")
	}
}
