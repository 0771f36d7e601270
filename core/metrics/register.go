package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Registration collects the failures of several metrics, so that one check is enough for all.
type Registration struct {
	Registry prometheus.Registerer
	// Err is the first failure.
	Err error
}

// Register registers a metric, or returns the one that has the name already: tests run several
// managers in one process.
func Register[M prometheus.Collector](all *Registration, metric M) M {
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

// Subsystem makes the metrics of one controller. They have no labels, so that no series outlives
// its object.
type Subsystem struct {
	Registration
	name string
}

// NewSubsystem returns one whose metrics are called millwright_<name>_….
func NewSubsystem(name string, registry prometheus.Registerer) *Subsystem {
	return &Subsystem{Registration: Registration{Registry: registry}, name: name}
}

// Counter registers a counter.
func (s *Subsystem) Counter(name, help string) prometheus.Counter {
	return Register(&s.Registration, prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "millwright", Subsystem: s.name, Name: name, Help: help,
	}))
}

// Gauge registers a gauge.
func (s *Subsystem) Gauge(name, help string) prometheus.Gauge {
	return Register(&s.Registration, prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "millwright", Subsystem: s.name, Name: name, Help: help,
	}))
}
