package machine

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// TestFailed: a driver's own words make no series of their own.
func TestFailed(t *testing.T) {
	m, err := newMeasures(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{clusterv1alpha1.ReasonQuotaExceeded, "SawBlunt", "SawLost"} {
		m.countFailure(reason)
	}
	if n := testutil.CollectAndCount(m.failures); n != 2 {
		t.Errorf("%d series", n)
	}
	if n := testutil.ToFloat64(m.failures.WithLabelValues("Other")); n != 2 {
		t.Errorf("%v other warnings, want 2", n)
	}
}
