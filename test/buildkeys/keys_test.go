package buildkeys

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools is the folder of the scripts and the modules that they build.
const tools = "../../tools"

// flags are what the Makefile exports, and a platform.
var flags = []string{"GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64"}

// folder returns a folder with copies of files and folders below tools, at the same places.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(tools, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			below, err := filepath.Rel(tools, path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			write(t, filepath.Join(dir, below), string(content))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// extend adds a line to a file.
func extend(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := "# changed\n"
	if strings.HasSuffix(path, ".mod") || strings.HasSuffix(path, ".go") {
		line = "// changed\n"
	}
	write(t, path, string(content)+line)
}

// key returns what a script prints with --key.
func key(t *testing.T, script string, environment []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), script, append([]string{"--key"}, args...)...)
	command.Dir = filepath.Dir(script)
	command.Env = append(append(os.Environ(), flags...), environment...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s --key %v: %v", filepath.Base(script), args, err)
	}
	if len(out) < 64 {
		t.Fatalf("%s --key %v prints %q, want a hash", filepath.Base(script), args, out)
	}
	return string(out)
}

// anotherGo is an environment where `go version` says another one.
func anotherGo(t *testing.T) []string {
	t.Helper()
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	write(t, filepath.Join(bin, "go"), "#!/bin/sh\n[ \"$1\" = version ] && echo go version go9.9.9 && exit\nexec "+program+" \"$@\"\n")
	return []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// What is built from another input has another key, so that what an older input made is never taken
// for it.
func TestEachInputChangesTheKeyOfATool(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file        string
		environment []string
	}{
		"its go.mod":             {file: "gremlins/go.mod"},
		"its go.sum":             {file: "gremlins/go.sum"},
		"a source of its own":    {file: "gremlins/main.go"},
		"the script":             {file: "build.sh"},
		"Go's flags":             {environment: []string{"GOFLAGS=-trimpath"}},
		"the linker's flags":     {environment: []string{"LDFLAGS=-X main.version=1"}},
		"the tags of a build":    {environment: []string{"BUILDTAGS=x"}},
		"cgo":                    {environment: []string{"CGO_ENABLED=1"}},
		"the system":             {environment: []string{"GOOS=darwin"}},
		"the architecture":       {environment: []string{"GOARCH=arm64"}},
		"the architecture's age": {environment: []string{"GOAMD64=v3"}},
		"the version of Go":      {environment: anotherGo(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, "build.sh", "gremlins")
			script := filepath.Join(dir, "build.sh")
			before := key(t, script, nil, "gremlins")
			if again := key(t, script, nil, "gremlins"); again != before {
				t.Fatalf("the key of the same inputs changes: %s, then %s", before, again)
			}
			if tc.file != "" {
				extend(t, filepath.Join(dir, tc.file))
			}
			if key(t, script, tc.environment, "gremlins") == before {
				t.Error("the key stays: what is built from another input would never be built")
			}
		})
	}
}

// Kubernetes reports the version that its module pins: another one is another control plane.
func TestTheVersionOfKubernetesIsInTheKeyOfTheControlPlane(t *testing.T) {
	t.Parallel()
	dir := folder(t, "build.sh", "controlplane", "kubelet-1.35")
	script := filepath.Join(dir, "controlplane", "build.sh")
	before := key(t, script, nil)
	if key(t, script, nil, "controlplane", "../kubelet-1.35") == before {
		t.Error("another module has the same key")
	}
	extend(t, filepath.Join(dir, "controlplane", "go.mod"))
	if key(t, script, nil) == before {
		t.Error("a changed go.mod has the same key")
	}
}

func TestEachInputChangesTheKeyOfTheNodesImage(t *testing.T) {
	t.Parallel()
	change := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); extend(t, filepath.Join(dir, name)) }
	}
	for name, tc := range map[string]struct {
		change      func(t *testing.T, dir string)
		environment []string
	}{
		"the kubelet":             {change: change("bin/kubelet")},
		"containerd's go.mod":     {change: change("containerd/go.mod")},
		"containerd's go.sum":     {change: change("containerd/go.sum")},
		"the script":              {change: change("nodeimage/build.sh")},
		"how tools are built":     {change: change("build.sh")},
		"how it is assembled":     {change: change("nodeimage/assemble.sh")},
		"the initrd":              {change: change("nodeimage/initrd.sh")},
		"the packages":            {change: change("nodeimage/packages")},
		"a file of the image":     {change: change("nodeimage/root/etc/modprobe.d/node.conf")},
		"a new file of the image": {change: func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "nodeimage/root/etc/new"), "") }},
		"a file that has gone": {change: func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "nodeimage/root/etc/modprobe.d/node.conf")); err != nil {
				t.Fatal(err)
			}
		}},
		"a mode": {change: func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Chmod(filepath.Join(dir, "nodeimage/root/etc/modprobe.d/node.conf"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"the version of Go": {environment: anotherGo(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, "build.sh", "nodeimage", "containerd")
			write(t, filepath.Join(dir, "bin", "kubelet"), "a kubelet")
			script := filepath.Join(dir, "nodeimage", "build.sh")
			before := key(t, script, nil, filepath.Join(dir, "bin"))
			if tc.change != nil {
				tc.change(t, dir)
			}
			if key(t, script, tc.environment, filepath.Join(dir, "bin")) == before {
				t.Error("the key stays: the image of another input would never be built")
			}
		})
	}
}
