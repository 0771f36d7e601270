package fences

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A goMod is what `go mod edit -json` tells of a go.mod.
type goMod struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct{ Path, Version string }
	Replace   []struct{ Old, New struct{ Path string } }
}

// TestModules checks what every go.mod of the workspace has in common.
func TestModules(t *testing.T) {
	dirs, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			m, err := readGoMod(filepath.Join(top, dir))
			if err != nil {
				t.Fatal(err)
			}
			if want := root + filepath.ToSlash(dir); m.Module.Path != want {
				t.Errorf("module is called %s, want %s after its folder", m.Module.Path, want)
			}
			if m.Toolchain != "" {
				t.Errorf("toolchain %s: a library does not choose the compiler of those who import it", m.Toolchain)
			}
			if m.Go != "1.26.0" {
				t.Errorf("go %s, want 1.26.0 in every module", m.Go)
			}
			checkReplaces(t, dir, m)
		})
	}
}

// checkReplaces allows siblings alone to be replaced, by their folder, and wants
// each required one to be.
func checkReplaces(t *testing.T, dir string, m goMod) {
	t.Helper()
	replaced := map[string]bool{}
	for _, r := range m.Replace {
		sibling, ours := strings.CutPrefix(r.Old.Path, root)
		if !ours {
			t.Errorf("replaces %s: who imports this module would not", r.Old.Path)
			continue
		}
		replaced[r.Old.Path] = true
		want, err := filepath.Rel(dir, sibling)
		if err != nil {
			t.Fatal(err)
		}
		if r.New.Path != filepath.ToSlash(want) {
			t.Errorf("replaces %s by %s, want %s", r.Old.Path, r.New.Path, want)
		}
	}
	for _, r := range m.Require {
		if strings.HasPrefix(r.Path, root) && !replaced[r.Path] {
			t.Errorf("requires %s and does not replace it by its folder", r.Path)
		}
	}
}

// TestWorkspace checks that go.work names every module, but those of the tools:
// the control plane's replaces would rule all the others.
func TestWorkspace(t *testing.T) {
	used, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]bool{}
	for _, dir := range used {
		in[dir] = true
	}
	err = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && skipped(d.Name()) {
			return filepath.SkipDir
		}
		if d.Name() != "go.mod" {
			return nil
		}
		dir, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil {
			return err
		}
		tool := strings.HasPrefix(filepath.ToSlash(dir), "tools/")
		if in[dir] == tool {
			t.Errorf("module %s: in go.work is %t, want %t", dir, in[dir], !tool)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// built are the modules of tools that `make test` builds and that share packages with the
// workspace: the control plane above all.
var built = []string{"tools/controlplane", "tools/helm", "tools/controller-gen"}

// TestModulesRequireTheSameVersions checks that the workspace, each of its modules alone, the
// control plane and the tools build a package from the same version. Go then compiles it once for
// all of them: together they are two thirds of what is compiled.
func TestModulesRequireTheSameVersions(t *testing.T) {
	dirs, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	required := map[string]map[string][]string{}
	for _, dir := range append(dirs, built...) {
		m, err := readGoMod(filepath.Join(top, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range m.Require {
			if strings.HasPrefix(r.Path, root) {
				continue
			}
			if required[r.Path] == nil {
				required[r.Path] = map[string][]string{}
			}
			required[r.Path][r.Version] = append(required[r.Path][r.Version], dir)
		}
	}
	for path, versions := range required {
		if len(versions) > 1 {
			t.Errorf("%s is required in more than one version: %v: run go get %s@NEWEST in each of these modules, then make tidy", path, versions, path)
		}
	}
	if len(required) < 100 {
		t.Errorf("only %d modules are required: does this test look in the right place?", len(required))
	}
}

func readGoMod(dir string) (goMod, error) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return goMod{}, fmt.Errorf("read go.mod of %s: %w", dir, err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		return goMod{}, fmt.Errorf("read go.mod of %s: %w", dir, err)
	}
	return m, nil
}

// skipped names folders that hold no sources of ours.
func skipped(name string) bool {
	return name == "bin" || name == "testdata" || name == "node_modules" || len(name) > 2 && name[0] == '.'
}
