package machineset

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/core/controllers/fleet"
)

// counters count what the controller did.
type counters struct {
	created, refused, updated, deleted prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*counters, error) {
	c := fleet.Counters{Registry: registry, Subsystem: "machineset"}
	made := &counters{
		created: c.New("machines_created_total", "Machines created."),
		refused: c.New("machines_refused_total", "Machines that the API server refused."),
		updated: c.New("machines_updated_total", "Machines brought up to their set's template in place."),
		deleted: c.New("machines_deleted_total", "Machines whose deletion was begun."),
	}
	return made, c.Err
}
