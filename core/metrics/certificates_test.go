package metrics

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millwright-dev/millwright/transport/mtls/mtlstest"
)

// Each certificate that can be read shows its end, and a new one in its file the new end.
func TestOPS6_CertificatesShowTheirEnd(t *testing.T) {
	authority, err := mtlstest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	folder, broken := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "tls.crt"), []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := Certificates(registry, map[string]string{
		"webhook": filepath.Join(folder, "tls.crt"), "broken": filepath.Join(broken, "tls.crt"), "absent": "/nowhere/tls.crt",
	}); err != nil {
		t.Fatal(err)
	}
	for _, valid := range []time.Duration{time.Hour, 48 * time.Hour} {
		if err := authority.Issue(folder, "webhook.example.com", valid, authority); err != nil {
			t.Fatal(err)
		}
		ends := time.Now().Add(valid)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(families) != 1 || len(families[0].GetMetric()) != 1 {
			t.Fatalf("the metrics are %v, want one", families)
		}
		metric := families[0].GetMetric()[0]
		if name := metric.GetLabel()[0].GetValue(); name != "webhook" {
			t.Errorf("it is of %s", name)
		}
		if off := ends.Sub(time.Unix(int64(metric.GetGauge().GetValue()), 0)).Abs(); off > time.Minute {
			t.Errorf("it ends %s from when it does", off)
		}
	}
}
