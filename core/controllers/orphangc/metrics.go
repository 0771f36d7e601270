package orphangc

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/core/metrics"
)

// vectors are the collector's metrics, by driver.
type vectors struct {
	orphans *prometheus.GaugeVec
	deleted *prometheus.CounterVec
	scans   *prometheus.CounterVec
}

// States of orphans, as label values.
const (
	stateFound = "found"
	stateHeld  = "held"
)

// newMetrics registers the metrics, or takes those that are registered already.
func newMetrics(registry prometheus.Registerer) (*vectors, error) {
	all := &metrics.Registration{Registry: registry}
	m := &vectors{
		orphans: metrics.Register(all, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millwright_orphans",
			Help: "VMs of this cluster that belonged to no Machine at the last scan: found, and those of them that are held, not deleted.",
		}, []string{"driver", "state"})),
		deleted: metrics.Register(all, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_orphans_deleted_total",
			Help: "Orphans that were deleted and are gone.",
		}, []string{"driver"})),
		scans: metrics.Register(all, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_orphan_scans_total",
			Help: "Scans of accounts for orphans, by result: complete, or failed and counting for nothing.",
		}, []string{"driver", "result"})),
	}
	return m, all.Err
}
