package csrapproval

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/core/metrics"
)

// decisions counts what was decided.
type decisions struct{ *prometheus.CounterVec }

// newDecisions registers the metric, or takes the one that is registered already.
func newDecisions(registry prometheus.Registerer) (decisions, error) {
	all := &metrics.Registration{Registry: registry}
	counted := metrics.Register(all, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_certificate_requests_decided_total",
		Help: "Certificate requests of machines' kubelets that were approved or denied, by signer, and by the rule that those denied have broken.",
	}, []string{"signer", "verdict", "rule"}))
	return decisions{counted}, all.Err
}
