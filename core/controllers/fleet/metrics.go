package fleet

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Counters makes metrics of one controller. They have no labels, so that no series outlives its object.
type Counters struct {
	Registry  prometheus.Registerer
	Subsystem string
	// Err is the first failure.
	Err error
}

// New registers a counter, or finds the one that was registered before under that name.
func (c *Counters) New(name, help string) prometheus.Counter {
	return register(c, name, prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "millwright", Subsystem: c.Subsystem, Name: name, Help: help,
	}))
}

// NewGauge registers a gauge, or finds the one that was registered before under that name.
func (c *Counters) NewGauge(name, help string) prometheus.Gauge {
	return register(c, name, prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "millwright", Subsystem: c.Subsystem, Name: name, Help: help,
	}))
}

func register[M prometheus.Collector](c *Counters, name string, metric M) M {
	err := c.Registry.Register(metric)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if before, ok := known.ExistingCollector.(M); ok {
			return before
		}
	}
	if err != nil && c.Err == nil {
		c.Err = fmt.Errorf("register metric %s: %w", name, err)
	}
	return metric
}
