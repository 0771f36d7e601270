package userdata

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/test/tier"
)

// ignitionProgram is Ignition itself. `make userdata` builds it.
const ignitionProgram = "../../bin/tools/ignition"

// home is that of Flatcar's user core. The user is root here: Ignition writes its files as that
// user, which could not reach a test's folder.
const home = "/home/core"

// provision has Ignition's own fetch and files stages set up the root folder of a machine, as they
// do in the initramfs of its first boot. It returns the folder.
func provision(t *testing.T, data []byte) string {
	t.Helper()
	program, err := filepath.Abs(ignitionProgram)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil || os.Getuid() != 0 {
		t.Fatalf("Ignition runs as root (%v): make %s builds it", err, program)
	}
	root, work := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "etc/passwd"), "core:x:0:0::"+home+":/bin/bash\n", 0o644)
	write(t, filepath.Join(root, "etc/group"), "core:x:0:\n", 0o644)
	write(t, filepath.Join(work, "config"), string(data), 0o600)
	for _, stage := range []string{"fetch", "files"} {
		command := exec.CommandContext(t.Context(), program, "-log-to-stdout", "-platform=file", "-stage="+stage, "-root="+root,
			"-config-cache="+filepath.Join(work, "cache"), "-state-file="+filepath.Join(work, "state"), "-neednet="+filepath.Join(work, "neednet"))
		command.Env = append(os.Environ(), "IGNITION_CONFIG_FILE="+filepath.Join(work, "config"), "IGNITION_SYSTEM_CONFIG_DIR="+work)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("Ignition's stage %s: %v\n%s", stage, err, out)
		}
	}
	return root
}

// readRoot reads what Ignition made of a root folder.
func readRoot(t *testing.T, root string) node {
	t.Helper()
	n := node{files: map[string]file{}, enabled: map[string]bool{}}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		n.files[strings.TrimPrefix(name, root)] = file{string(content), int(info.Mode().Perm())}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n.hostname = strings.TrimSuffix(n.content(t, "/etc/hostname"), "\n")
	keys := home + "/.ssh/authorized_keys.d/ignition"
	n.keys = slices.Collect(strings.Lines(n.files[keys].content))
	for i := range n.keys {
		n.keys[i] = strings.TrimSuffix(n.keys[i], "\n")
	}
	presets := "/etc/systemd/system-preset/20-ignition.preset"
	for line := range strings.Lines(n.files[presets].content) {
		verb, unit, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n.enabled[unit] = verb == "enable"
	}
	for _, name := range []string{"/etc/passwd", "/etc/group", "/etc/.ignition-result.json", keys, presets} {
		delete(n.files, name)
	}
	return n
}

// Ignition's parser, which reads hundreds of generated specs, says what its files stage does.
func TestLIFE2_IgnitionWritesWhatItsParserReads(t *testing.T) {
	tier.Long(t, "it takes Ignition")
	const some = 20
	tried := 0
	for i := 0; i < generated && tried < some; i++ {
		s := specs.Example(i)
		data, err := bootstrap.Render(s.machine, s.config, token)
		if err != nil || s.machine.Spec.ProviderSpec.Value.OperatingSystem != clusterv1alpha1.OperatingSystemFlatcar || slices.ContainsFunc(s.config.Units, isInstance) {
			continue
		}
		tried++
		if diff := compareRoot(ignite(t, data), readRoot(t, provision(t, data))); diff != "" {
			t.Errorf("specs.Example(%d) (-parsed +written):\n%s", i, diff)
		}
	}
	if tried < some {
		t.Errorf("%d specs were tried", tried)
	}
}

// isInstance says whether the unit is one of a template: Ignition asks a running systemd for its
// version then.
func isInstance(u bootstrap.Unit) bool { return strings.Contains(u.Name, "@") }

// compareRoot compares all but the units that do not start.
func compareRoot(parsed, written node) string {
	starts := cmpopts.IgnoreMapEntries(func(_ string, enabled bool) bool { return !enabled })
	return cmp.Diff(parsed, written, cmp.AllowUnexported(node{}, file{}), cmpopts.EquateEmpty(), starts)
}

// Flatcar's image has containerd, docker and no packages.
func TestLIFE2_FlatcarGetsTheFilesAndUnits(t *testing.T) {
	tier.Long(t, "it takes Ignition")
	s := allOptions(clusterv1alpha1.OperatingSystemFlatcar)
	data := render(t, s)
	root := provision(t, data)
	n := readRoot(t, root)
	if diff := compareRoot(ignite(t, data), n); diff != "" {
		t.Errorf("Ignition's parser and its files stage (-parsed +written):\n%s", diff)
	}
	for name, mode := range flatcarFiles {
		if f, has := n.files[name]; !has || f.mode != mode {
			t.Errorf("%s has permissions %o, not %o; there: %t", name, f.mode, mode, has)
		}
	}
	for name := range n.files {
		if _, expected := flatcarFiles[name]; !expected {
			t.Errorf("%s is there", name)
		}
	}
	n.check(t, s)
	checkPresets(t, root)
}

// flatcarFiles are the files of a Flatcar machine with everything that is optional.
var flatcarFiles = map[string]int{
	"/etc/kubernetes/bootstrap-kubelet.conf":           0o600,
	"/etc/kubernetes/cloud-config":                     0o600,
	"/etc/kubernetes/pki/ca.crt":                       0o644,
	"/etc/kubernetes/pki/client-ca.crt":                0o644,
	"/var/lib/kubelet/config.yaml":                     0o600,
	"/etc/default/kubelet":                             0o644,
	"/etc/containerd/config.toml":                      0o644,
	"/etc/containerd/certs.d/docker.io/hosts.toml":     0o644,
	"/etc/crictl.yaml":                                 0o644,
	"/etc/modules-load.d/millwright.conf":              0o644,
	"/etc/sysctl.d/99-zz-millwright.conf":              0o644,
	"/etc/systemd/logind.conf.d/zz-millwright.conf":    0o644,
	"/etc/systemd/journald.conf.d/millwright.conf":     0o644,
	"/etc/systemd/timesyncd.conf.d/millwright.conf":    0o644,
	"/etc/systemd/network/05-millwright.network":       0o644,
	"/etc/systemd/resolved.conf.d/millwright.conf":     0o644,
	"/etc/ssl/certs/millwright-0.pem":                  0o644,
	"/etc/flatcar/update.conf":                         0o644,
	"/etc/millwright/api-server":                       0o644,
	"/etc/millwright/artifacts":                        0o644,
	"/etc/millwright/kubelet-version":                  0o644,
	"/etc/millwright/metadata.nft":                     0o644,
	"/etc/millwright/not-before":                       0o644,
	"/etc/millwright/proxy.env":                        0o600,
	"/opt/bin/millwright-bootstrap":                    0o755,
	units + "/containerd.service.d/10-millwright.conf": 0o644,
	units + "/kubelet.service":                         0o644,
	units + "/kubelet.service.d/10-kubeadm.conf":       0o644,
	units + "/kubelet.service.d/20-watchdog.conf":      0o644,
	units + "/millwright-bootstrap.service":            0o644,
	units + "/millwright-cleanup.path":                 0o644,
	units + "/millwright-cleanup.service":              0o644,
	units + "/millwright-metadata.service":             0o644,
	units + "/millwright-report.service":               0o644,
	units + "/own.service":                             0o644,
}

// checkPresets has systemd take up the presets, as it does at the first boot, and looks which units
// will start.
func checkPresets(t *testing.T, root string) {
	t.Helper()
	// Flatcar's own.
	write(t, filepath.Join(root, "usr/lib/systemd/system/containerd.service"), "[Install]\nWantedBy=multi-user.target\n", 0o644)
	run(t, "systemctl", "--root="+root, "preset-all")
	wants, err := os.ReadDir(filepath.Join(root, units, "multi-user.target.wants"))
	if err != nil {
		t.Fatal(err)
	}
	var starting []string
	for _, want := range wants {
		starting = append(starting, want.Name())
	}
	if diff := cmp.Diff([]string{
		"containerd.service", "kubelet.service", "millwright-bootstrap.service", "millwright-cleanup.path", "millwright-metadata.service",
		"millwright-report.service", "own.service",
	}, starting); diff != "" {
		t.Errorf("units that start (-wanted +found):\n%s", diff)
	}
	for _, unit := range []string{"docker.service", "docker.socket"} {
		if target, err := os.Readlink(filepath.Join(root, units, unit)); target != os.DevNull {
			t.Errorf("%s is not masked: %q, %v", path.Join(units, unit), target, err)
		}
	}
}
