package buildkeys

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The flags that the Makefile exports, and a platform.
var settings = []string{
	"GOFLAGS=-trimpath -buildvcs=false -tags=grpcnotrace -gcflags=all=-dwarf=false", "GOOS=linux", "GOARCH=amd64",
}

// copied returns a copy of the control plane's folder, with a second module in it that pins the
// same versions.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build.sh", "go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("../../tools/controlplane", name))
		if err != nil {
			t.Fatal(err)
		}
		folders := []string{dir, other}
		if name == "build.sh" {
			folders = folders[:1]
		}
		for _, folder := range folders {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// key returns what build.sh in dir prints as its key.
func key(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(dir, "build.sh"), append([]string{"--key"}, args...)...)
	command.Dir = dir
	command.Env = append(append(os.Environ(), settings...), env...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("build.sh --key %v: %v", args, err)
	}
	if len(out) < 64 {
		t.Fatalf("build.sh --key %v prints %q, want a hash", args, out)
	}
	return string(out)
}

// extend appends a line, a comment in each of these files, to the file.
func extend(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	comment := "# changed\n"
	if strings.HasSuffix(file, ".mod") {
		comment = "// changed\n"
	}
	if err := os.WriteFile(file, append(content, comment...), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestEachInputChangesTheKeyOfTheControlPlane(t *testing.T) {
	t.Parallel()
	controlPlane, kubelet, other := []string{}, []string{"kubelet"}, []string{"kubelet", "other"}
	for name, tc := range map[string]struct {
		args []string
		file string
		env  []string
	}{
		"its go.mod":                     {args: controlPlane, file: "go.mod"},
		"its go.sum":                     {args: controlPlane, file: "go.sum"},
		"the script":                     {args: controlPlane, file: "build.sh"},
		"the flags":                      {args: controlPlane, env: []string{"GOFLAGS=-trimpath"}},
		"the system":                     {args: controlPlane, env: []string{"GOOS=darwin"}},
		"the architecture":               {args: controlPlane, env: []string{"GOARCH=arm64"}},
		"the kubelet's go.mod":           {args: kubelet, file: "go.mod"},
		"another module's go.mod":        {args: other, file: "other/go.mod"},
		"another module's go.sum":        {args: other, file: "other/go.sum"},
		"the script, for another module": {args: other, file: "build.sh"},
		"the flags, for another module":  {args: other, env: []string{"GOFLAGS=-trimpath"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copied(t)
			before := key(t, dir, nil, tc.args...)
			if again := key(t, dir, nil, tc.args...); again != before {
				t.Fatalf("the key of the same inputs changes: %s, then %s", before, again)
			}
			if tc.file != "" {
				extend(t, filepath.Join(dir, tc.file))
			}
			if key(t, dir, tc.env, tc.args...) == before {
				t.Error("the key stays: what is built from another input would never be built")
			}
		})
	}
}

// The version of Go is what `go version` says: a go command that says another one stands before it.
func TestAnotherGoChangesTheKeyOfTheControlPlane(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	before := key(t, dir, nil)
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = version ] && echo go version go9.9.9 && exit\nexec " + program + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if key(t, dir, []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}) == before {
		t.Error("the key stays under another version of Go")
	}
}

// A change of one module leaves what other modules pin as it was built.
func TestTheKeyHasNoInputOfAnotherModule(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	plane, kubelet := key(t, dir, nil), key(t, dir, nil, "kubelet")
	if plane == kubelet {
		t.Error("the control plane and the kubelet have one key")
	}
	extend(t, filepath.Join(dir, "other", "go.mod"))
	if key(t, dir, nil) != plane || key(t, dir, nil, "kubelet") != kubelet {
		t.Error("the key contains the go.mod of another module")
	}
}
