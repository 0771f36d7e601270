package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/millwright-dev/millwright/conformance"
)

// asDriver makes the test's own executable the driver.
const asDriver = "DRIVER_TEST_AS_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestConformance holds the driver, as a process of its own, to the contract. What it tries is that
// of conformance.yaml.
func TestConformance(t *testing.T) {
	dir, err := os.MkdirTemp("", "driver") // not t.TempDir: a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "unix://" + filepath.Join(dir, "d.sock")
	driver := exec.Command(os.Args[0], "--endpoint", endpoint, "--cloud", t.TempDir())
	driver.Env, driver.Stderr = append(os.Environ(), asDriver+"=1"), t.Output()
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = driver.Process.Kill()
		_ = driver.Wait()
		_ = os.RemoveAll(dir)
	})
	conformance.Run(t, conformance.Config{
		Endpoint: endpoint, State: t.TempDir(),
		ProviderSpec: []byte(`{"size": "small"}`), ConflictingSpec: []byte(`{"size": "large"}`), Crowd: 5,
	})
}
