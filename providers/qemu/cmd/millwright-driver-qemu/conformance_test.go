package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/conformance"
)

// asDriver makes the test's own executable the driver.
const asDriver = "DRIVER_QEMU_TEST_AS_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The driver keeps to the contract, as a process that the harness starts and kills. Its VMs are
// real processes of QEMU: they have no system, and stay in their firmware.
func TestConformance(t *testing.T) {
	images := t.TempDir()
	if err := os.WriteFile(filepath.Join(images, "empty.raw"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	needQEMU(t)
	t.Setenv(asDriver, "1")
	state := filepath.Join(t.TempDir(), "state")
	arguments := []string{"--state-dir", state, "--image-dir", images, "--accelerator", "tcg", "--shutdown-grace", "0s", "--log-level", "DEBUG"}
	c := conformance.Config{
		Endpoint: "exec://" + executable + "?" + url.Values{"arg": arguments, "env": {asDriver, "PATH"}}.Encode(),
		State:    t.TempDir(), Output: t.Output(), Crowd: 5, Cycles: 20,
		ProviderSpec:    []byte(`{"image": "empty.raw", "memory": "64Mi", "cpus": 1}`),
		ConflictingSpec: []byte(`{"image": "empty.raw", "memory": "96Mi", "cpus": 1}`),
	}
	c.Timeouts.Running.Duration, c.Timeouts.Gone.Duration = 30*time.Second, 30*time.Second
	conformance.Run(t, c)
	if left, err := os.ReadDir(filepath.Join(state, "machines")); err != nil || len(left) > 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

// needQEMU skips a test where QEMU is not installed; CI installs it.
func needQEMU(t *testing.T) {
	t.Helper()
	for _, name := range []string{program(), "qemu-img"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("QEMU is not installed: " + err.Error())
		}
	}
}
