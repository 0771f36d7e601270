package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// cloudMetrics are those of the requests to OpenStack.
type cloudMetrics struct {
	requests, waits *prometheus.HistogramVec
	changeWaits     prometheus.Histogram
	repeated        *prometheus.CounterVec
}

func newCloudMetrics(registry prometheus.Registerer) *cloudMetrics {
	m := &cloudMetrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_openstack_request_duration_seconds",
			Help:    "How long requests to OpenStack took, by service, method and HTTP status; 0 is no whole answer. A POST to identity is a login.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
		}, []string{"service", "method", "code"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_openstack_limiter_wait_seconds",
			Help:    "How long reads of OpenStack waited for others of their project, by service.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 7),
		}, []string{"service"}),
		changeWaits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "millwright_openstack_machine_wait_seconds",
			Help:    "How long creations and deletions of machines waited for others of their project.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 7),
		}),
		repeated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_openstack_repeated_requests_total",
			Help: "Requests to OpenStack that were sent again with a new token, by service.",
		}, []string{"service"}),
	}
	registry.MustRegister(m.requests, m.waits, m.changeWaits, m.repeated)
	return m
}

// observe counts a request.
func (m *cloudMetrics) observe(c session.Call) {
	m.requests.WithLabelValues(c.Service, c.Method, strconv.Itoa(c.Code)).Observe(c.Duration.Seconds())
	if c.Method == http.MethodGet {
		m.waits.WithLabelValues(c.Service).Observe(c.Waited.Seconds())
	}
	if c.Repeated {
		m.repeated.WithLabelValues(c.Service).Inc()
	}
}

// observeWait counts a creation or deletion of a machine.
func (m *cloudMetrics) observeWait(waited time.Duration) { m.changeWaits.Observe(waited.Seconds()) }

// readHeaderTimeout bounds how long a scraper may take to ask.
const readHeaderTimeout = 5 * time.Second

// serveMetrics serves /metrics in plain HTTP at a loopback address until ctx ends. Any other
// address is refused: there is nobody to check who asks.
func serveMetrics(ctx context.Context, address string, from prometheus.Gatherer) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--metrics-bind-address: is %s; give a loopback address, such as 127.0.0.1:9105: the metrics are served to whoever asks", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
