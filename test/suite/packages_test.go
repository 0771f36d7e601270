package suite

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packages runs tools/packages.sh where only these programs are found.
func packages(t *testing.T, programs map[string]string, parts ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bash", "env"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "bash", append([]string{filepath.Join(top, "tools", "packages.sh")}, parts...)...)
	command.Env = []string{"PATH=" + bin}
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestMissingPackagesAreInstalledBeforeAnythingIsBuilt(t *testing.T) {
	root := map[string]string{"id": "echo 0", "apt-get": `echo "apt-get $*" >&2`}
	for name, tc := range map[string]struct {
		programs map[string]string
		part     string
		// want is one of the lines that are printed; fails says that the script does.
		want  string
		fails bool
	}{
		"root installs them":           {root, "userdata", "apt-get install -y --no-install-recommends", false},
		"sudo installs them":           {map[string]string{"id": "echo 1", "apt-get": "", "sudo": `echo "sudo $*" >&2`}, "userdata", "sudo env DEBIAN_FRONTEND=noninteractive apt-get install", false},
		"without sudo it says how":     {map[string]string{"id": "echo 1", "apt-get": "", "sudo": "exit 1"}, "userdata", "  sudo apt-get install -y --no-install-recommends", true},
		"without apt-get it says what": {map[string]string{"id": "echo 0"}, "userdata", "cloud-init shellcheck", true},
		"an unknown part is refused":   {root, "userdatum", "usage: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := packages(t, tc.programs, tc.part)
			var exit *exec.ExitError
			if failed := errors.As(err, &exit); failed != tc.fails {
				t.Errorf("error %v, want one: %t", err, tc.fails)
			}
			if !strings.Contains(out, tc.want) {
				t.Errorf("it does not say %q:\n%s", tc.want, out)
			}
		})
	}
}

// What is there already is not installed: not even the list of packages is read.
func TestNothingIsInstalledWhereNothingIsMissing(t *testing.T) {
	programs := map[string]string{"id": "echo 0", "apt-get": "echo it is called; exit 1"}
	for _, name := range []string{"make", "gcc", "node", "npm", "chromium"} {
		programs[name] = ""
	}
	if out, err := packages(t, programs, "test"); err != nil || out != "" {
		t.Errorf("it does something: %v\n%s", err, out)
	}
}
