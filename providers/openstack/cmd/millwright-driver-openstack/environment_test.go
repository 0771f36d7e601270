package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Certificates that are none would fail every machine, each with an error of its own.
func TestCertificatesThatAreNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"OS_AUTH_URL": "https://keystone.example.com/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_PROJECT_NAME": "demo", "OS_CACERT": path,
	} {
		t.Setenv(name, value)
	}
	if _, err := environment("", false); err == nil || !strings.Contains(err.Error(), path+" holds none in PEM") {
		t.Errorf("it is taken: %v", err)
	}
}

// Metrics are for who shares the machine or the pod: nobody checks who asks for them.
func TestMetricsStayOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":9105", "192.0.2.1:9105", "localhost:9105", "9105"} {
		if err := serveMetrics(t.Context(), address, prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), "--metrics-bind-address") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
