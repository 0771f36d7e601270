package suite

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write lays out files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

// repository is a small one of two modules: app imports lib, and embeds a folder.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.work":                  "go 1.26.0\n\nuse (\n\t./app\n\t./lib\n)\n",
		"app/go.mod":               "module " + module + "/app\n\ngo 1.26.0\n",
		"app/main/main.go":         "package main\n\nimport _ \"" + module + "/lib/used\"\n\nfunc main() {}\n",
		"app/main/static/page.txt": "a page",
		"app/main/testdata/x.txt":  "read by a test",
		"app/other/other.go":       "package other\n",
		"lib/go.mod":               "module " + module + "/lib\n\ngo 1.26.0\n",
		"lib/used/used.go":         "package used\n",
		"lib/unused/unused.go":     "package unused\n",
		"lib/tested/tested.go":     "package tested\n",
		"app/main/main_test.go":    "package main\n\nimport _ \"" + module + "/lib/tested\"\n",
		"tools/image/build.sh":     "true\n",
		"tools/image/root/etc/x":   "x",
		"docs/page.md":             "words\n",
	})
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message=first")
	git(t, dir, "checkout", "--quiet", "-b", "branch")
	return dir
}

var parts = []Part{
	{Name: "app", Packages: []string{"./app/main/..."}},
	{Name: "image", Files: []string{"tools/image/**"}},
	{Name: "docs", Files: []string{"docs/*.md"}},
}

func TestAPlantedChangeSelectsItsParts(t *testing.T) {
	for name, tc := range map[string]struct {
		file, content string
		commit        bool
		want          []string
	}{
		"a package":                      {"app/main/main.go", "package main\n\nfunc main() {}\n", false, []string{"app"}},
		"what a package imports":         {"lib/used/used.go", "package used\n\nvar X int\n", false, []string{"app"}},
		"what a test imports":            {"lib/tested/tested.go", "package tested\n\nvar X int\n", false, []string{"app"}},
		"what a package embeds":          {"app/main/static/page.txt", "another page", false, []string{"app"}},
		"what a test reads":              {"app/main/testdata/x.txt", "y", false, []string{"app"}},
		"the requirements of a module":   {"lib/go.mod", "module " + module + "/lib\n\ngo 1.26\n", false, []string{"app"}},
		"a new file of a package":        {"lib/used/new.go", "package used\n", false, []string{"app"}},
		"a package that it does not use": {"lib/unused/unused.go", "package unused\n\nvar X int\n", false, nil},
		"another package of the module":  {"app/other/other.go", "package other\n\nvar X int\n", false, nil},
		"a script":                       {"tools/image/build.sh", "false\n", false, []string{"image"}},
		"a file that a script copies":    {"tools/image/root/etc/x", "y", false, []string{"image"}},
		"a change that is committed":     {"tools/image/build.sh", "false\n", true, []string{"image"}},
		"a page":                         {"docs/page.md", "other words\n", false, []string{"docs"}},
		"a file that nothing reads":      {"LICENSE", "free\n", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			write(t, dir, map[string]string{tc.file: tc.content})
			if tc.commit {
				git(t, dir, "commit", "--quiet", "--all", "--message=second")
			}
			tree, err := Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			changed, err := tree.Changed(t.Context(), "main")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.file}, changed); diff != "" {
				t.Errorf("changed files (-want +got):\n%s", diff)
			}
			selected, err := tree.Selected(t.Context(), parts, changed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, part := range selected {
				got = append(got, part.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// A file that is gone selects the parts that it was an input of.
func TestARemovedFileSelectsItsParts(t *testing.T) {
	dir := repository(t)
	if err := os.Remove(filepath.Join(dir, "app/main/static/page.txt")); err != nil {
		t.Fatal(err)
	}
	tree, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := tree.Changed(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	selected, err := tree.Selected(t.Context(), parts, changed)
	if err != nil {
		t.Fatal(err)
	}
	if len(selected) != 1 || selected[0].Name != "app" {
		t.Errorf("selected %v, want app", selected)
	}
}

func TestAHashChangesWithItsInputs(t *testing.T) {
	hash := func(t *testing.T, dir string, part Part) string {
		t.Helper()
		tree, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		in, err := tree.Inputs(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		value, err := in.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	dir := repository(t)
	app, image := hash(t, dir, parts[0]), hash(t, dir, parts[1])
	if err := os.Chmod(filepath.Join(dir, "tools/image/build.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := hash(t, dir, parts[1]); got == image {
		t.Error("the hash does not contain the mode of a file")
	}
	if got := hash(t, dir, parts[0]); got != app {
		t.Error("the hash contains a file that is no input")
	}
	write(t, dir, map[string]string{"lib/used/used.go": "package used\n\nvar Y int\n"})
	if got := hash(t, dir, parts[0]); got == app {
		t.Error("the hash does not contain what the package imports")
	}
}
