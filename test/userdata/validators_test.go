package userdata

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/test/tier"
)

// systems that can be set up.
var systems = []clusterv1alpha1.OperatingSystem{clusterv1alpha1.OperatingSystemUbuntu, clusterv1alpha1.OperatingSystemFlatcar}

// allOptions is a machine with all that is optional.
func allOptions(system clusterv1alpha1.OperatingSystem) spec {
	m := &clusterv1alpha1.Machine{}
	m.Name, m.Spec.Versions.Kubelet = "worker-1", "1.36.3"
	value := &m.Spec.ProviderSpec.Value
	value.OperatingSystem, value.SSHPublicKeys = system, []string{"ssh-ed25519 AAAA me"}
	value.OperatingSystemSpec = clusterv1alpha1.OperatingSystemSpec{DistUpgradeOnBoot: true, DisableAutoUpdate: true}
	value.OverwriteCloudConfig = "[Global]\n"
	value.Network = clusterv1alpha1.MachineNetwork{CIDR: "192.168.1.10/24", Gateway: "192.168.1.1", DNS: clusterv1alpha1.MachineDNS{Servers: []string{"192.168.1.2"}}}
	return spec{machine: m, config: bootstrap.Config{
		Server: "https://api.example.com:6443", CABundle: authority(), HostCABundle: authority(), ClusterDNS: []string{"10.96.0.10"},
		HTTPProxy: "http://proxy.example.com:3128", NTPServers: []string{"ntp.example.com"}, BlockMetadata: true,
		KubeletConfiguration: []byte("{maxPods: 42, clusterDomain: cluster.local}"),
		RegistryMirrors:      map[string][]string{"docker.io": {"https://mirror.example.com"}},
		Units:                []bootstrap.Unit{{Name: "own.service", Content: "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", Enabled: true}},
	}}
}

// everything is its user data.
func everything(t *testing.T, system clusterv1alpha1.OperatingSystem) []byte {
	t.Helper()
	return render(t, allOptions(system))
}

func render(t *testing.T, s spec) []byte {
	t.Helper()
	data, err := bootstrap.Render(s.machine, s.config, token)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// boot is what a first boot makes of it.
func boot(t *testing.T, system clusterv1alpha1.OperatingSystem, data []byte) node {
	t.Helper()
	if system == clusterv1alpha1.OperatingSystemFlatcar {
		return ignite(t, data)
	}
	return cloudInit(t, map[int][]byte{0: data})[0]
}

func TestLIFE2_CloudInitAcceptsTheCloudConfig(t *testing.T) {
	tier.Long(t, "it takes cloud-init")
	file := filepath.Join(t.TempDir(), "user-data")
	if err := os.WriteFile(file, everything(t, clusterv1alpha1.OperatingSystemUbuntu), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "cloud-init", "schema", "--config-file", file)
}

func TestLIFE2_ScriptsPassShellcheck(t *testing.T) {
	tier.Long(t, "it takes shellcheck")
	for _, system := range systems {
		dir, scripts := t.TempDir(), []string{}
		for name, f := range boot(t, system, everything(t, system)).files {
			if !strings.HasPrefix(f.content, "#!") {
				continue
			}
			if f.mode != 0o755 {
				t.Errorf("%s cannot be run: %o", name, f.mode)
			}
			script := filepath.Join(dir, path.Base(name))
			if err := os.WriteFile(script, []byte(f.content), 0o600); err != nil {
				t.Fatal(err)
			}
			scripts = append(scripts, script)
		}
		if len(scripts) == 0 {
			t.Fatalf("%s: there is no script", system)
		}
		run(t, "shellcheck", append([]string{"--severity=style"}, scripts...)...)
	}
}

// Units are verified in a root that has systemd's own, and stands for what they run.
func TestLIFE2_SystemdAcceptsTheUnits(t *testing.T) {
	tier.Long(t, "it takes systemd-analyze")
	for _, system := range systems {
		t.Run(string(system), func(t *testing.T) {
			root := t.TempDir()
			vendor := filepath.Join(root, "usr/lib/systemd/system")
			if err := os.CopyFS(vendor, os.DirFS("/usr/lib/systemd/system")); err != nil {
				t.Fatalf("%v: install Debian's package systemd", err)
			}
			var names []string
			for name, f := range boot(t, system, everything(t, system)).files {
				write(t, filepath.Join(root, name), f.content, os.FileMode(f.mode))
				if path.Dir(name) == units {
					names = append(names, filepath.Join(root, name))
				}
			}
			for _, program := range []string{"opt/bin/kubelet", "usr/local/bin/containerd", "usr/bin/containerd", "bin/rm", "usr/sbin/nft", "bin/true"} {
				write(t, filepath.Join(root, program), "#!/bin/sh\n", 0o755)
			}
			if system == clusterv1alpha1.OperatingSystemFlatcar {
				write(t, filepath.Join(vendor, "containerd.service"), "[Service]\nExecStart=/usr/bin/containerd --config ${CONTAINERD_CONFIG}\n", 0o644)
			}
			slices.Sort(names)
			out, err := exec.CommandContext(t.Context(), "systemd-analyze",
				append([]string{"verify", "--man=no", "--generators=no", "--recursive-errors=no", "--root=" + root}, names...)...).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("systemd says: %v\n%s", err, out)
			}
		})
	}
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
