package metrics

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestOPS13_TheVersionIsAMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := Build(registry, "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 1 || families[0].GetName() != "millwright_build_info" {
		t.Fatalf("the metrics are %v", families)
	}
	metric := families[0].GetMetric()[0]
	got := map[string]string{}
	for _, label := range metric.GetLabel() {
		got[label.GetName()] = label.GetValue()
	}
	if metric.GetGauge().GetValue() != 1 || got["version"] != "v0.1.0" || got["go_version"] != runtime.Version() {
		t.Errorf("it is %v", metric)
	}
}
