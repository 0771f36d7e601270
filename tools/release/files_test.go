package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is where this one is, and kubectl what the Makefile has built.
const (
	repository = "../.."
	kubectl    = "../../bin/kubectl"
)

// makeFiles runs the command, and returns the folder that it wrote to.
func makeFiles(t *testing.T, executables string) string {
	t.Helper()
	out := t.TempDir()
	command := filesCommand()
	command.SetOut(io.Discard)
	command.SetArgs([]string{
		"--version", "v0.1.0", "--registry", "registry.example.com/millwright", "--created", "1764000000", "--repository", repository,
		"--executables", executables, "--platforms", "linux/amd64,windows/amd64", "--executable", "kubectl-millwright", "--kubectl", kubectl, "--out", out,
	})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// plugins are files in the place of executables: nothing here runs them.
func plugins(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for file, content := range map[string]string{"linux-amd64/kubectl-millwright": "for Linux", "windows-amd64/kubectl-millwright.exe": "for Windows"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// unpacked returns the files of an archive, by their names, and which of them are executable.
func unpacked(t *testing.T, path string) (files map[string]string, executable map[string]bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	files, executable = map[string]string{}, map[string]bool{}
	for archive := tar.NewReader(text); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, executable
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name], executable[header.Name] = string(content), header.Mode&0o111 != 0
	}
}

// The files of a release are those that their checksums name, made again byte by byte.
func TestOPS13_TheFilesOfARelease(t *testing.T) {
	executables := plugins(t)
	folder, again := makeFiles(t, executables), makeFiles(t, executables)
	read := func(folder, name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	sums := read(folder, "SHA256SUMS")
	if other := read(again, "SHA256SUMS"); other != sums {
		t.Errorf("made again, they are others:\n%s%s", sums, other)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil || bytes.Count(out, []byte(": OK")) != 6 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}

	files, executable := unpacked(t, filepath.Join(folder, "kubectl-millwright-v0.1.0-windows-amd64.tar.gz"))
	if files["kubectl-millwright.exe"] != "for Windows" || !executable["kubectl-millwright.exe"] || files["LICENSE"] == "" || len(files) != 2 {
		t.Errorf("the archive holds %v, executable are %v", files, executable)
	}
	krew := read(folder, "krew.yaml")
	for line := range strings.SplitSeq(strings.TrimSpace(sums), "\n") {
		sum, file, _ := strings.Cut(line, "  ")
		if strings.HasPrefix(file, "kubectl-millwright") && (!strings.Contains(krew, "sha256: "+sum) || !strings.Contains(krew, "/releases/download/v0.1.0/"+file)) {
			t.Errorf("krew's manifest does not know %s:\n%s", line, krew)
		}
	}
	chart, _ := unpacked(t, filepath.Join(folder, "millwright-0.1.0.tgz"))
	if c := chart["millwright/Chart.yaml"]; !strings.Contains(c, "\nversion: 0.1.0\n") || !strings.Contains(c, "\nappVersion: v0.1.0\n") {
		t.Errorf("the chart calls itself\n%s", c)
	}
	if v := chart["millwright/values.yaml"]; !strings.Contains(v, "\n  registry: registry.example.com/millwright\n") {
		t.Errorf("the chart's values are\n%s", v)
	}
	manifest := read(folder, "millwright-openstack.yaml")
	for _, image := range []string{"millwright-manager", "millwright-driver-openstack"} {
		if !strings.Contains(manifest, "image: registry.example.com/millwright/"+image+":v0.1.0\n") {
			t.Errorf("the manifest does not name the release's %s", image)
		}
	}
	if crds := read(folder, "millwright-crds.yaml"); strings.Count(crds, "kind: CustomResourceDefinition\n") != 6 {
		t.Errorf("there are %d CRDs", strings.Count(crds, "kind: CustomResourceDefinition\n"))
	}
}

// Who imports the modules of a release needs nothing but their tags: no replace directive, and no
// file beside them.
func TestOPS13_ModulesOfAReleaseCanBeImported(t *testing.T) {
	const version = "v0.1.0-rc.1"
	out, consumer := t.TempDir(), t.TempDir()
	command := modulesCommand()
	var tags bytes.Buffer
	command.SetOut(&tags)
	command.SetArgs([]string{"--version", version, "--created", "1764000000", "--repository", repository, "--out", out})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{version, "api/" + version, "core/" + version, "providers/openstack/" + version} {
		if !strings.Contains(tags.String(), tag+"\n") {
			t.Errorf("the tag %s is not among\n%s", tag, tags.String())
		}
	}
	for file, text := range map[string]string{
		"go.mod": "module example.com/consumer\n\ngo 1.26.0\n",
		"main.go": `package main

import (
	"fmt"

	"github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/rollout"
	driver "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

func main() {
	fmt.Println(rollout.StateOf(&v1alpha1.MachineDeployment{}).Replicas, (&driver.CreateMachineRequest{}).ProtoReflect() != nil, sdk.NewError != nil)
}
`,
	} {
		if err := os.WriteFile(filepath.Join(consumer, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The module cache is one of its own, so that the release's modules come from its proxy. What
	// else it takes comes from the cache there is.
	known, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, upstream, _ := strings.Cut(strings.TrimSpace(string(known)), "\n")
	environment := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GONOSUMDB=github.com/millwright-dev/*", "GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+filepath.Join(out, "modules")+",file://"+filepath.Join(cache, "cache", "download")+","+upstream)
	run := func(folder, name string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir, command.Env = folder, environment
		said, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, said)
		}
		return string(said)
	}
	modules := []string{"api", "core", "proto", "sdk"}
	for i, m := range modules {
		modules[i] = "github.com/millwright-dev/millwright/" + m + "@" + version
	}
	run(consumer, "go", append([]string{"get"}, modules...)...)
	if said := run(consumer, "go", "run", "."); !strings.HasSuffix(said, "\n0 true true\n") {
		t.Errorf("the program says %q", said)
	}
	// The tags can be fetched from the bundle, and a module builds there by itself.
	clone := filepath.Join(t.TempDir(), "clone")
	absolute, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	run(out, "git", "clone", "--quiet", absolute, clone)
	run(clone, "git", "fetch", "--quiet", filepath.Join(out, "millwright-"+version+".bundle"), "refs/tags/*:refs/tags/*")
	run(clone, "git", "checkout", "--quiet", "core/"+version)
	run(filepath.Join(clone, "core"), "go", "build", "-mod=readonly", "./rollout")
}
