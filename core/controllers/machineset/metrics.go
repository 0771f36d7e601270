package machineset

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/core/metrics"
)

// counters count what the controller did.
type counters struct {
	created, refused, updated, deleted, frozen prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*counters, error) {
	c := metrics.NewSubsystem("machineset", registry)
	made := &counters{
		created: c.Counter("machines_created_total", "Machines created."),
		refused: c.Counter("machines_refused_total", "Machines that the API server refused."),
		updated: c.Counter("machines_updated_total", "Machines brought up to their set's template in place."),
		deleted: c.Counter("machines_deleted_total", "Machines whose deletion was begun."),
	}
	made.frozen = c.Counter("freezes_total", "How often a set had to stop creating since far too many Machines were there.")
	return made, c.Err
}

// gauges show how the whole fleet fares.
type gauges struct {
	machines, unhealthy, meltdown prometheus.Gauge
}

func newGauges(registry prometheus.Registerer) (gauges, error) {
	c := metrics.NewSubsystem("fleet", registry)
	made := gauges{
		machines:  c.Gauge("machines", "Machines that should be healthy."),
		unhealthy: c.Gauge("unhealthy_machines", "Machines that should be healthy and are not."),
		meltdown:  c.Gauge("meltdown", "1 while so many Machines are unhealthy that none is replaced."),
	}
	return made, c.Err
}
