package machinedeployment

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// counters count what the controller did. They have no labels, so that no series outlives its object.
type counters struct {
	setsCreated, setsScaled prometheus.Counter
}

// newMetrics registers the counters, or finds those that were registered before.
func newMetrics(registry prometheus.Registerer) (*counters, error) {
	var errs []error
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "millwright", Subsystem: "machinedeployment", Name: name, Help: help,
		})
		err := registry.Register(c)
		var known prometheus.AlreadyRegisteredError
		if errors.As(err, &known) {
			if before, ok := known.ExistingCollector.(prometheus.Counter); ok {
				return before
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("register metric %s: %w", name, err))
		}
		return c
	}
	c := &counters{
		setsCreated: counter("sets_created_total", "MachineSets created for a template."),
		setsScaled:  counter("sets_scaled_total", "Changes of a MachineSet's size."),
	}
	return c, errors.Join(errs...)
}
