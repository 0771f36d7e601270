package machinedeployment

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/core/metrics"
)

// counters count what the controller did.
type counters struct {
	setsCreated, setsScaled, deadlinesExceeded prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*counters, error) {
	c := metrics.NewSubsystem("machinedeployment", registry)
	made := &counters{
		setsCreated: c.Counter("sets_created_total", "MachineSets created for a template."),
		setsScaled:  c.Counter("sets_scaled_total", "Changes of a MachineSet's size."),

		deadlinesExceeded: c.Counter("progress_deadlines_exceeded_total", "Rollouts that did not get on for progressDeadlineSeconds."),
	}
	return made, c.Err
}
