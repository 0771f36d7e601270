package driver

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/instance"
)

// metrics of all drivers; the label driver is the configured name.
type metrics struct {
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	up       *prometheus.GaugeVec
	// connections are counted by whether the handshake succeeded.
	connections *prometheus.CounterVec
	// mutations are counted by what came of them, open breakers by the class that opened them.
	mutations *prometheus.CounterVec
	breakers  *prometheus.GaugeVec
}

// newMetrics registers the metrics unless registry is nil.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millwright_driver_call_duration_seconds",
			Help:    "How long calls to a driver took, by method and gRPC code.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"driver", "method", "code"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_driver_calls_in_flight",
			Help: "Calls to a driver that are under way.",
		}, []string{"driver"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_driver_up",
			Help: "1 while a driver is connected and says that it is ready.",
		}, []string{"driver"}),
		connections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_driver_connections_total",
			Help: "Attempts to connect to a driver, or to start it, by result: after the first ok each is a driver that restarted or was lost.",
		}, []string{"driver", "result"}),
		mutations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_driver_mutations_total",
			Help: "Creates and deletes that were sent to a driver, by the class of their failure; OK for a success.",
		}, []string{"driver", "operation", "class"}),
		breakers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_driver_breakers",
			Help: "Accounts and operations of which all but a probe now and then is held back, by the class of failure that is to blame.",
		}, []string{"driver", "class"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.duration, m.inFlight, m.up, m.connections, m.mutations, m.breakers} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// meter measures and logs every call to the driver of that name: its method, code and time, never
// its payload.
func (m *metrics) meter(name string, log logr.Logger, clock clock.PassiveClock) grpc.UnaryClientInterceptor {
	inFlight := m.inFlight.WithLabelValues(name)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		inFlight.Inc()
		defer inFlight.Dec()
		began := clock.Now()
		err := invoke(ctx, method, req, reply, cc, opts...)
		took := clock.Since(began)
		code := knownCode(status.Code(err))
		short := method[strings.LastIndex(method, "/")+1:]
		m.duration.WithLabelValues(name, short, code.String()).Observe(took.Seconds())
		log.V(1).Info("called driver", "method", short, "code", code.String(), "seconds", took.Seconds())
		return err
	}
}

// knownCode is UNKNOWN for a code that gRPC does not define: a driver that makes up codes would
// make up series without end.
func knownCode(code codes.Code) codes.Code {
	if code > codes.Unauthenticated {
		return codes.Unknown
	}
	return code
}

// recordAttempt counts an attempt to connect.
func (m *metrics) recordAttempt(name string, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.connections.WithLabelValues(name, result).Inc()
}

// recordCall counts a mutation that ended, and the breakers that are open after it.
func (m *metrics) recordCall(name string, o instance.Outcome, open map[instance.Class]int) {
	class := "OK"
	if o.Failure != nil {
		class = string(o.Failure.Class)
	}
	m.mutations.WithLabelValues(name, string(o.Operation), class).Inc()
	for _, class := range instance.BreakerClasses() {
		m.breakers.WithLabelValues(name, string(class)).Set(float64(open[class]))
	}
}

func (m *metrics) setUp(name string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(name).Set(value)
}
