package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// calls are how many calls there were so far.
type calls struct {
	// driver counts core's calls to the driver about machines, cloud the driver's to the cloud.
	driver, cloud int
}

func (r *run) calls(ctx context.Context) (calls, error) {
	metrics, err := r.stack.Metrics(ctx)
	if err != nil {
		return calls{}, err
	}
	totals, err := r.stack.Backend().GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		return calls{}, fmt.Errorf("ask the cloud for its totals: %w", err)
	}
	cloud := 0
	for _, n := range totals.GetCalls() {
		cloud += int(n)
	}
	return calls{driver: driverCalls(metrics), cloud: cloud}, nil
}

// driverCalls counts the calls to the driver that are about machines.
func driverCalls(metrics map[string]*dto.MetricFamily) int {
	total := 0
	for _, m := range metrics["millwright_driver_call_duration_seconds"].GetMetric() {
		about := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == "method" && strings.Contains(l.GetValue(), "Machine")
		})
		if about {
			total += int(m.GetHistogram().GetSampleCount())
		}
	}
	return total
}
