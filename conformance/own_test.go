package conformance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeOwn writes an executable with checks.
func writeOwn(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOwnChecksOfAnExecutable(t *testing.T) {
	path := writeOwn(t, `case "$1 $2" in
"list ") echo '[{"id":"own/labels","level":"MUST","rule":"Labels are small."},{"id":"own/later","level":"SHOULD","rule":"x"},{"id":"own/fails","level":"MUST","rule":"y"}]';;
"run own/labels") grep -q '"clusterUID":"c1"' && echo '{"breaches":["a label is big"]}';;
"run own/later") echo '{"notRun":"no cloud"}';;
*) echo nonsense >&2; exit 3;;
esac`)
	checks, err := loadOwn(t.Context(), path)
	if err != nil || len(checks) != 3 {
		t.Fatalf("%v, %v", checks, err)
	}
	c := Config{Own: checks, Endpoint: "unix:///x"}
	if errs := c.checkOwn(); len(errs) > 0 {
		t.Error(errs)
	}
	for i, want := range []struct {
		outcome Outcome
		says    string
	}{{Failed, "a label is big"}, {NotRun, "no cloud"}, {Failed, "nonsense"}} {
		one := newTrial(&session{config: c, clusterUID: "c1", target: &target{}})
		got := one.result(t.Context(), c.own()[i])
		if got.Outcome != want.outcome || !strings.Contains(got.Reason+strings.Join(got.Breaches, " "), want.says) {
			t.Errorf("%s: %+v, want %+v", checks[i].ID, got, want)
		}
	}
}

func TestOwnChecksThatAreNone(t *testing.T) {
	run := func(context.Context, *OwnTrial) {}
	for name, own := range map[string][]OwnCheck{
		"another group": {{ID: "create/mine", Level: Must, Rule: "r", Run: run}},
		"twice":         {{ID: "own/a", Level: Must, Rule: "r", Run: run}, {ID: "own/a", Level: Must, Rule: "r", Run: run}},
		"no level":      {{ID: "own/a", Rule: "r", Run: run}},
		"no rule":       {{ID: "own/a", Level: Must, Run: run}},
		"nothing to do": {{ID: "own/a", Level: Must, Rule: "r"}},
	} {
		if errs := (Config{Own: own}).checkOwn(); len(errs) == 0 {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
	for name, script := range map[string]string{"no JSON": "echo x", "another shape": `echo '{"checks":[]}'`, "it fails": "exit 1"} {
		if _, err := loadOwn(t.Context(), writeOwn(t, script)); err == nil || !strings.HasPrefix(err.Error(), "ownChecks: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
