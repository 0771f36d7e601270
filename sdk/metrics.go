package sdk

import (
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"
)

// callMetrics count the calls of the driver. Nil counts nothing.
type callMetrics struct{ calls *prometheus.HistogramVec }

// newCallMetrics registers millwright_driver_call_duration_seconds by method and code. Without a
// registry nothing is counted.
func newCallMetrics(registry prometheus.Registerer) (*callMetrics, error) {
	if registry == nil {
		return nil, nil
	}
	m := &callMetrics{calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "millwright_driver_call_duration_seconds", Help: "How long calls of the driver took.",
		Buckets: []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"method", "code"})}
	return m, registry.Register(m.calls)
}

func (m *callMetrics) ended(method string, err error, took time.Duration) {
	if m != nil {
		m.calls.WithLabelValues(path.Base(method), status.Code(err).String()).Observe(took.Seconds())
	}
}
