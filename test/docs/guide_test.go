package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/test/tier"
)

// From an empty folder the guide leads to a driver that keeps to the contract, by the command and
// as a Go test.
func TestDRV2_FromAnEmptyFolderToAGreenReport(t *testing.T) {
	tier.Long(t, "it builds a driver from nothing")
	// Not t.TempDir: a socket's path has to be short.
	work, err := os.MkdirTemp("", "guide")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	steps := strings.ReplaceAll(commandsOf(t, "docs/writing-a-driver.md", "millwright driver init my-cloud"), "unix:///tmp/", "unix://"+work+"/")
	if report := follow(t, work, steps, withoutProxy(t, work)...); !strings.Contains(report, "my-cloud dev: conforms, profile fault") {
		t.Errorf("the driver does not conform:\n%s", report)
	}
	dir := filepath.Join(work, "my-cloud")
	tests := follow(t, dir, "go vet ./...\ngo test -v ./...", withoutProxy(t, work)...)
	for _, check := range []string{"create/concurrent", "list/pages", "delete/others"} {
		if !strings.Contains(tests, "--- PASS: TestConformance/"+check) {
			t.Errorf("%s has not passed:\n%s", check, tests)
		}
	}
	// What was laid out is complete: the go command had nothing to mend.
	example := filepath.Join(top, "providers", "example")
	if read(t, dir, "go.sum") != read(t, example, "go.sum") || requirements(t, dir) != requirements(t, example) {
		t.Errorf("go.mod or go.sum were mended:\n%s", read(t, dir, "go.mod"))
	}
}

// requirements are what a go.mod says after its replaces.
func requirements(t *testing.T, dir string) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, dir, "go.mod"), "require (")
	return rest
}

// A driver that breaks the contract does not get by: here one that takes another cluster's VMs for
// its own.
func TestDRV2_ABrokenDriverGetsARedReport(t *testing.T) {
	tier.Long(t, "it builds a driver from nothing")
	work, err := os.MkdirTemp("", "guide")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	follow(t, work, "millwright driver init my-cloud", withoutProxy(t, work)...)
	source := filepath.Join(work, "my-cloud", "driver.go")
	good := []byte(read(t, source))
	broken := bytes.Replace(good, []byte(`tags := map[string]string{tagCluster: r.GetMeta().GetClusterUid(), tagUID: r.GetMachine().GetUid()}`), []byte(`tags := map[string]string{tagUID: r.GetMachine().GetUid()}`), 1)
	if bytes.Equal(broken, good) {
		t.Fatal("there is nothing to break")
	}
	if err := os.WriteFile(source, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	report := follow(t, filepath.Join(work, "my-cloud"), "if go test ./...; then echo passed; exit 1; fi", withoutProxy(t, work)...)
	if !strings.Contains(report, "--- FAIL: TestConformance/delete/foreign") {
		t.Errorf("it failed otherwise:\n%s", report)
	}
}

// withoutProxy is the environment of one who has what this repository's own build has fetched, and
// nothing else. driver-conformance keeps its journals in work.
func withoutProxy(t *testing.T, work string) []string {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "CGO_ENABLED=0", "GOCACHE=" + strings.TrimSpace(string(cache)), "XDG_CACHE_HOME=" + work,
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
