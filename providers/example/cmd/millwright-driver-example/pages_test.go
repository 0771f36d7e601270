package main

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/conformance"
)

// A driver that reads the first page of its cloud's lists alone is caught: here the example without
// its loop over pages.
func TestADriverOfOnePageIsCaught(t *testing.T) {
	api, hooks := testCloud(t, 0)
	c := config(t)
	c.Endpoint = "exec://" + builtWithout(t, `		query.Set("page_token", page.Next)
`) + "?" + url.Values{"arg": {"--cloud", api}}.Encode()
	c.Backend, c.Focus = hooks, []string{"list/many"}
	report, err := conformance.Execute(t.Context(), c, conformance.Observer{})
	if report == nil {
		t.Fatal(err)
	}
	if report.Verdict() != conformance.Breaks || !strings.Contains(report.Results[0].Breaches[0], "read every page") {
		t.Errorf("list/many does not catch it: %+v", report.Results)
	}
}

// builtWithout builds the driver with its lists ending where they would go on, and returns where it
// is. goesOn is how they go on.
func builtWithout(t *testing.T, goesOn string) string {
	t.Helper()
	good, err := os.ReadFile("cloud.go")
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(good), goesOn, "\t\treturn nil\n", 1)
	if broken == string(good) {
		t.Fatal("there is nothing to break")
	}
	dir := t.TempDir()
	source, overlay, driver := filepath.Join(dir, "cloud.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "driver")
	here, err := filepath.Abs("cloud.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {here: source}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{source: []byte(broken), overlay: replace} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", driver, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return driver
}
