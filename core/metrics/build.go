package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Build shows in millwright_build_info what this process was built from.
func Build(registry prometheus.Registerer, version string) error {
	all := &Registration{Registry: registry}
	info := Register(all, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "millwright", Name: "build_info", Help: "1, with the manager's version and that of Go.",
	}, []string{"version", "go_version"}))
	if all.Err == nil {
		info.WithLabelValues(version, runtime.Version()).Set(1)
	}
	return all.Err
}
