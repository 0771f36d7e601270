package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if _, err := environment(""); err == nil || !strings.Contains(err.Error(), path+" holds none in PEM") {
		t.Errorf("it is taken: %v", err)
	}
}
