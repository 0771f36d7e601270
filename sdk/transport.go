package sdk

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// CloudTransport calls a cloud's HTTP API for a driver: no faster than the cloud takes it, and
// counted. It retries nothing. The zero value limits and counts nothing; its fields must not be
// changed once it is used. It is safe for concurrent use.
type CloudTransport struct {
	// Base makes the calls; nil stands for http.DefaultTransport.
	Base http.RoundTripper
	// Limiter bounds how many calls are made in a second; nil for none. A call waits for its turn
	// until its context ends.
	Limiter *rate.Limiter
	// Metrics counts the calls; nil counts none.
	Metrics *CloudMetrics
}

// RoundTrip implements http.RoundTripper.
func (t *CloudTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Limiter != nil {
		began := time.Now()
		if err := t.Limiter.Wait(r.Context()); err != nil {
			return nil, err
		}
		t.Metrics.waited(time.Since(began))
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	began := time.Now()
	response, err := base.RoundTrip(r)
	code := "none"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	t.Metrics.called(r.Method, code, time.Since(began))
	return response, err
}

// CloudMetrics count the calls to a cloud's API. Nil counts nothing.
type CloudMetrics struct {
	calls *prometheus.HistogramVec
	waits prometheus.Counter
}

// NewCloudMetrics registers the metrics of a cloud's API:
// millwright_driver_cloud_call_duration_seconds by method and code, where code is none for a call
// without an answer, and millwright_driver_cloud_limiter_wait_seconds_total.
func NewCloudMetrics(registry prometheus.Registerer) (*CloudMetrics, error) {
	m := &CloudMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "millwright_driver_cloud_call_duration_seconds", Help: "How long calls to the cloud's API took.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method", "code"}),
		waits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "millwright_driver_cloud_limiter_wait_seconds_total", Help: "How long calls to the cloud's API waited for their turn.",
		}),
	}
	for _, one := range []prometheus.Collector{m.calls, m.waits} {
		if err := registry.Register(one); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *CloudMetrics) called(method, code string, took time.Duration) {
	if m != nil {
		m.calls.WithLabelValues(method, code).Observe(took.Seconds())
	}
}

func (m *CloudMetrics) waited(d time.Duration) {
	if m != nil {
		m.waits.Add(d.Seconds())
	}
}
