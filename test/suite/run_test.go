package suite

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runner runs targets of a Makefile that has one that fails and one that does not.
func runner(t *testing.T, dir string) (Runner, *bytes.Buffer) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // a target that fails keeps its temporary files
	write(t, dir, map[string]string{"Makefile": "good:\n\t@echo it is good; echo >> good.log\nbad:\n\t@echo it is bad; exit 1\napp: good\n"})
	var out bytes.Buffer
	return Runner{Make: []string{"make", "--no-print-directory"}, Dir: dir, Out: &out}, &out
}

var times = regexp.MustCompile(`[0-9]+ s`)

func TestAllStepsRunAfterARedOne(t *testing.T) {
	r, out := runner(t, t.TempDir())
	err := r.RunAll(t.Context(), []string{"bad", "good"})
	if !errors.Is(err, ErrFailed) {
		t.Errorf("error %v, want one that wraps %v", err, ErrFailed)
	}
	lines := strings.Split(times.ReplaceAllString(out.String(), "N s"), "\n")
	var told []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "make") { // its own words differ from version to version
			told = append(told, line)
		}
	}
	want := []string{
		"== make bad", "it is bad", "== make bad FAILED after N s, N s of CPU",
		"== make good", "it is good", "== make good took N s, N s of CPU",
		"== summary",
		"bad             FAILED after N s, N s of CPU",
		"good            took N s, N s of CPU",
		"all             FAILED after N s, N s of CPU", "",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestGreenStepsReturnNoError(t *testing.T) {
	r, _ := runner(t, t.TempDir())
	if err := r.RunAll(t.Context(), []string{"good"}); err != nil {
		t.Error(err)
	}
}

// A part that passed is left out until one of its inputs changes, or it is asked for again.
func TestAPartThatPassedIsNotRunAgain(t *testing.T) {
	dir := repository(t)
	write(t, dir, map[string]string{".gitignore": "good.log\nresults\n"})
	run := func(again bool, names ...string) (string, error) {
		t.Helper()
		r, out := runner(t, dir)
		tree, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		chosen := []Part{{Name: "bad"}, parts[0]}[2-len(names):]
		err = Long{Runner: r, Tree: tree, Folder: filepath.Join(dir, "results"), Again: again}.Run(t.Context(), chosen)
		return out.String(), err
	}
	for _, step := range []struct {
		name, change string
		again        bool
		ran          bool
	}{
		{"the first time", "", false, true},
		{"the second time", "", false, false},
		{"asked for again", "", true, true},
		{"after another file has changed", "docs/page.md", false, false},
		{"after an input has changed", "lib/used/used.go", false, true},
		{"and once more", "", false, false},
	} {
		if step.change != "" {
			write(t, dir, map[string]string{step.change: "package used\n\nvar Changed int\n"})
		}
		out, err := run(step.again, "app")
		if err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if ran := strings.Contains(out, "it is good"); ran != step.ran {
			t.Errorf("%s: ran is %t, want %t:\n%s", step.name, ran, step.ran, out)
		}
	}
	for range 2 {
		out, err := run(false, "bad", "app")
		if !errors.Is(err, ErrFailed) || !strings.Contains(out, "it is bad") {
			t.Errorf("a part that fails runs each time: %v\n%s", err, out)
		}
	}
}
