package machine

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestADriversOwnWordsMakeNoSeries: a driver's own words make no series of their own.
func TestADriversOwnWordsMakeNoSeries(t *testing.T) {
	m, err := newMeasures(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{clusterv1alpha1.ReasonQuotaExceeded, "SawBlunt", "SawLost"} {
		m.countWarning(reason)
	}
	if n := testutil.CollectAndCount(m.warningsTotal); n != 2 {
		t.Errorf("%d series", n)
	}
	if n := testutil.ToFloat64(m.warningsTotal.WithLabelValues("Other")); n != 2 {
		t.Errorf("%v other warnings, want 2", n)
	}
}

func TestDurationsAreMeasuredOnce(t *testing.T) {
	m, err := newMeasures(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute)) }
	status := func(phase clusterv1alpha1.MachinePhase, conditions ...metav1.Condition) clusterv1alpha1.MachineStatus {
		return clusterv1alpha1.MachineStatus{Phase: phase, Conditions: conditions}
	}
	runs := metav1.Condition{Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionTrue, LastTransitionTime: at(2)}
	drained := func(status metav1.ConditionStatus, reason string, since int) metav1.Condition {
		return metav1.Condition{Type: clusterv1alpha1.ConditionDrained, Status: status, Reason: reason, LastTransitionTime: at(since)}
	}
	const running, deleting = clusterv1alpha1.MachinePhaseRunning, clusterv1alpha1.MachinePhaseDeleting
	life := []clusterv1alpha1.MachineStatus{
		status(clusterv1alpha1.MachinePhaseProvisioned, runs), status(running, runs), status(clusterv1alpha1.MachinePhaseUnknown, runs), status(running, runs),
		status(deleting, drained(metav1.ConditionFalse, clusterv1alpha1.ReasonDraining, 6)),
		status(deleting, drained(metav1.ConditionTrue, clusterv1alpha1.ReasonDrained, 16)),
		status(deleting, drained(metav1.ConditionTrue, clusterv1alpha1.ReasonDrained, 16)),
	}
	machine := &clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}}
	for i := range life[1:] {
		if life[i+1].Phase == deleting {
			machine.DeletionTimestamp = new(at(5))
		}
		machine.Status = life[i+1]
		m.recordStatus(machine, &life[i], at(4+4*i).Time)
	}
	skipped := status(deleting, drained(metav1.ConditionFalse, clusterv1alpha1.ReasonDrainSkipped, 6))
	machine.Status = skipped
	m.recordStatus(machine, &life[len(life)-3], at(40).Time)
	for name, c := range map[string]struct {
		histogram prometheus.Histogram
		minutes   float64
	}{
		"from the creation to Running": {m.startup, 4}, "from the VM to Running": {m.join, 2}, "of the drain": {m.drain, 14},
	} {
		var got dto.Metric
		if err := c.histogram.Write(&got); err != nil {
			t.Fatal(err)
		}
		if h := got.GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != c.minutes*60 {
			t.Errorf("the time %s was measured %d times, %v s in all; want once %v min", name, h.GetSampleCount(), h.GetSampleSum(), c.minutes)
		}
	}
}
