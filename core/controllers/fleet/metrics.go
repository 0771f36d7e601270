package fleet

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are registered together, so that one check tells whether all of them were.
type Metrics struct {
	Registry prometheus.Registerer
	// Err is the first failure.
	Err error
}

// Register registers a metric, or finds the one that was registered before under that name.
func Register[M prometheus.Collector](all *Metrics, metric M) M {
	err := all.Registry.Register(metric)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if before, ok := known.ExistingCollector.(M); ok {
			return before
		}
	}
	if err != nil && all.Err == nil {
		all.Err = fmt.Errorf("register metric: %w", err)
	}
	return metric
}

// Counters makes metrics of one controller. They have no labels, so that no series outlives its object.
type Counters struct {
	Metrics
	Subsystem string
}

// CountersOf makes metrics whose names begin with the subsystem.
func CountersOf(subsystem string, registry prometheus.Registerer) *Counters {
	return &Counters{Metrics: Metrics{Registry: registry}, Subsystem: subsystem}
}

// New registers a counter.
func (c *Counters) New(name, help string) prometheus.Counter {
	return Register(&c.Metrics, prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "millwright", Subsystem: c.Subsystem, Name: name, Help: help,
	}))
}

// NewGauge registers a gauge.
func (c *Counters) NewGauge(name, help string) prometheus.Gauge {
	return Register(&c.Metrics, prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "millwright", Subsystem: c.Subsystem, Name: name, Help: help,
	}))
}
