package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// changing is what differs from one run to the next, and what stands in its place.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`golden-[a-z0-9]{10}-[a-z0-9]{5}-\d+`), "golden-SET-RANDOM-N"},
	{regexp.MustCompile(`golden-[a-z0-9]{10}\b`), "golden-SET"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b(?:\d+[smh])+\b`), "AGE"},
	{regexp.MustCompile(` {2,}`), "  "},
}

// What each command of the plugin says of a MachineDeployment that is made, rolled and scaled is
// what it said when testdata was written: `go test ./test/e2e -run TestOPS4_ThePlugin -update`.
func TestOPS4_ThePluginSaysWhatItSaid(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	var said strings.Builder
	run := func(args ...string) {
		t.Helper()
		out, err := u.plugin(args...)
		fmt.Fprintf(&said, "$ kubectl millwright %s\n", strings.Join(args, " "))
		for line := range strings.Lines(out) {
			// How far it is at which moment is not the same twice.
			if !strings.HasPrefix(line, "Waiting") {
				said.WriteString(strings.TrimRight(line, " \n") + "\n")
			}
		}
		if err != nil {
			fmt.Fprintln(&said, err)
		}
	}
	u.apply(deployment("golden", 2, nil))
	u.kubectl("wait", "machinedeployment/golden", "--for=condition=Ready", "--timeout="+waitLimit.String())
	run("tree")
	run("tree", "golden", "-o", "wide")
	run("tree", "-o", "name")
	run("tree", "nobody")
	manifest := filepath.Join(t.TempDir(), "golden.yaml")
	if err := os.WriteFile(manifest, []byte(deployment("golden", 2, map[string]string{"kubelet": "1.34.2"})), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := []string{"plan", "-f", manifest}
	run(plan...)
	run(append(plan, "--detailed-exitcode")...)
	u.kubectl("apply", "-f", manifest)
	run("rollout", "status", "golden")
	run("rollout", "history", "golden")
	run("plan", "golden")
	run("rollout", "pause", "golden")
	run("rollout", "status", "golden", "--watch=false")
	run("rollout", "resume", "golden")
	run("rollout", "undo", "golden")
	run("rollout", "status", "golden")
	run("rollout", "restart", "golden")
	run("rollout", "status", "golden")
	run("scale", "golden", "--replicas=1", "--watch")
	u.awaitRunning(1)
	run("top", "--once")
	run("describe", "machine/nobody")
	text := strings.ReplaceAll(said.String(), manifest, "golden.yaml")
	text = strings.ReplaceAll(text, u.namespace, "NAMESPACE")
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.with)
	}
	path := filepath.Join("testdata", "plugin.txt")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("the plugin says something else (-before +now):\n%s", diff)
	}
}
