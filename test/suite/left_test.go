//go:build linux

package suite

import (
	"strings"
	"testing"
)

func TestWhatAStepLeavesBehindIsFound(t *testing.T) {
	for name, tc := range map[string]struct{ recipe, want string }{
		"a process":                         {"sleep 1000 >/dev/null 2>&1 &", ": sleep 1000"},
		"a process in its own session":      {"setsid sleep 1001 >/dev/null 2>&1 &", ": sleep 1001"},
		"a process without its environment": {"env -i sleep 1002 >/dev/null 2>&1 &", ": sleep 1002"},
		"a file":                            {"touch $$TMPDIR/log", "/log"},
		"nothing":                           {"touch $$TMPDIR/log && rm $$TMPDIR/log", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"Makefile": "step:\n\t@" + tc.recipe + "\n"})
			r, out := runner(t, t.TempDir())
			r.Dir = dir
			result := r.Run(t.Context(), "step")
			if left := strings.Join(result.Left, "\n"); tc.want == "" && left != "" || !strings.Contains(left, tc.want) {
				t.Errorf("left behind is %q, want %q", left, tc.want)
			}
			if result.Passed != (tc.want == "") {
				t.Errorf("passed is %t:\n%s", result.Passed, out)
			}
			if pids, err := children(); err != nil || len(pids) > 0 {
				t.Errorf("these live on: %v, %v", pids, err)
			}
		})
	}
}
