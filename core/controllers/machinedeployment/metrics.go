package machinedeployment

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/core/controllers/fleet"
)

// counters count what the controller did.
type counters struct {
	setsCreated, setsScaled, deadlinesExceeded prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*counters, error) {
	c := fleet.CountersOf("machinedeployment", registry)
	made := &counters{
		setsCreated: c.New("sets_created_total", "MachineSets created for a template."),
		setsScaled:  c.New("sets_scaled_total", "Changes of a MachineSet's size."),

		deadlinesExceeded: c.New("progress_deadlines_exceeded_total", "Rollouts that did not get on for progressDeadlineSeconds."),
	}
	return made, c.Err
}
