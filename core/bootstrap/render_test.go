package bootstrap

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// readCloudConfig reads user data back, strictly.
func readCloudConfig(t testing.TB, data []byte) cloudConfig {
	t.Helper()
	var read cloudConfig
	if !strings.HasPrefix(string(data), header) {
		t.Fatalf("the user data begins with %.20q", data)
	}
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// contentOf returns the content of one file, which must be there once.
func contentOf(t testing.TB, files []writeFile, path string) string {
	t.Helper()
	var found []string
	for _, f := range files {
		if f.Path == path {
			found = append(found, f.Content)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s is there %d times", path, len(found))
	}
	return found[0]
}

func TestLIFE2_UbuntuGetsWhatANodeNeeds(t *testing.T) {
	data, err := Render(worker(), cluster(), token)
	if err != nil {
		t.Fatal(err)
	}
	read := readCloudConfig(t, data)
	if read.Hostname != "worker-1" || !read.PackageUpgrade || !read.PackageRebootIfRequired || len(read.SSHAuthorizedKeys) != 1 {
		t.Errorf("the cloud-config says %+v", read)
	}
	for path, want := range map[string]string{
		"/etc/kubernetes/bootstrap-kubelet.conf":           "token: " + token,
		"/etc/kubernetes/pki/ca.crt":                       "BEGIN CERTIFICATE",
		"/etc/kubernetes/pki/client-ca.crt":                "BEGIN CERTIFICATE",
		"/var/lib/kubelet/config.yaml":                     "serverTLSBootstrap: true",
		"/etc/default/kubelet":                             `KUBELET_EXTRA_ARGS="--hostname-override=worker-1 --node-labels=a=,b=2,topology.kubernetes.io/zone=z"`,
		"/etc/millwright/kubelet-version":                  "1.36.3\n",
		"/etc/millwright/artifacts":                        "amd64 kubelet 1.36.3 file /opt/bin https://dl.k8s.io/v1.36.3/bin/linux/amd64/kubelet",
		"/etc/containerd/config.toml":                      `sandbox = "registry.k8s.io/pause:3.10.2"`,
		"/etc/systemd/system/containerd.service":           "ExecStart=/usr/local/bin/containerd",
		"/etc/systemd/system/kubelet.service":              "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
		"/etc/systemd/system/millwright-bootstrap.service": "Type=oneshot",
		"/etc/systemd/system/millwright-cleanup.path":      "kubelet-client-current.pem",
		"/etc/modules-load.d/millwright.conf":              "br_netfilter",
		"/etc/sysctl.d/99-zz-millwright.conf":              "vm.overcommit_memory = 1",
		"/etc/systemd/logind.conf.d/zz-millwright.conf":    "InhibitDelayMaxSec=45",
		"/opt/bin/millwright-bootstrap":                    "#!/bin/bash",
	} {
		if got := contentOf(t, read.WriteFiles, path); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, got)
		}
	}
	for _, f := range read.WriteFiles {
		secret := strings.Contains(f.Content, token)
		if secret != (f.Path == kubeconfigPath) || secret && f.Permissions != "0600" {
			t.Errorf("%s of mode %s: holds the token: %t", f.Path, f.Permissions, secret)
		}
	}
}

// A kubelet before 1.32 does not answer systemd's watchdog, which would kill it again and again.
func TestLIFE2_OnlyAKubeletThatAnswersHasAWatchdog(t *testing.T) {
	for kubelet, want := range map[string]bool{"1.30.3": false, "v1.31.14": false, "1.32.0": true, "v1.36.3": true} {
		data, err := Render(worker(func(m *clusterv1alpha1.Machine) { m.Spec.Versions.Kubelet = kubelet }), cluster(), token)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), "WatchdogSec="); got != want {
			t.Errorf("kubelet %s has a watchdog: %t", kubelet, got)
		}
	}
}

// TestRenderRefuses: what cannot be rendered is named.
func TestRenderRefuses(t *testing.T) {
	var many []string
	for range 8 {
		// It cannot be compressed to much less than three quarters.
		noise := make([]byte, 12<<10)
		_, _ = rand.Read(noise)
		many = append(many, "ssh-rsa "+base64.StdEncoding.EncodeToString(noise))
	}
	for name, c := range map[string]struct {
		machine *clusterv1alpha1.Machine
		names   string
	}{
		"another system":          {worker(func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.OperatingSystem = "plan9" }), "plan9"},
		"a name with a space":     {worker(func(m *clusterv1alpha1.Machine) { m.Name = "a b" }), "a b"},
		"a name of 64 characters": {worker(func(m *clusterv1alpha1.Machine) { m.Name = strings.Repeat("n", 64) }), "at most 63"},
		"a label that breaks out": {worker(func(m *clusterv1alpha1.Machine) { m.Labels["x"] = `y" --v=9` }), `x=y`},
		"a taint without effect":  {worker(func(m *clusterv1alpha1.Machine) { m.Spec.Taints[0].Effect = "" }), "example.com/gpu"},
		"a key of two lines": {worker(func(m *clusterv1alpha1.Machine) {
			m.Spec.ProviderSpec.Value.SSHPublicKeys = []string{"a", "b\nruncmd: []"}
		}), "sshPublicKeys[1]"},
		"too much": {worker(func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.SSHPublicKeys = many }), "fewer files"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := Render(c.machine, cluster(), token)
			if err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, want one that names %q", err, c.names)
			}
			if data != nil {
				t.Errorf("%d bytes besides the error", len(data))
			}
			if err := Check(c.machine, cluster()); name != "too much" && (err == nil || !strings.Contains(err.Error(), c.names)) {
				t.Errorf("the check says %v, want an error that names %q", err, c.names)
			}
		})
	}
}

// A condition is read by more people than a password is meant for.
func TestNoErrorTellsAPassword(t *testing.T) {
	err := Check(worker(), cluster(func(c *Config) { c.Server = "https://user:hidden@api.example.com:6443" }))
	if err == nil || !strings.Contains(err.Error(), "api.example.com") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v, want one that names the server without its password", err)
	}
}

// TestKubeletLabel follows NodeRestriction. TestOwnFilesReplaceNone: Ignition ends with an error at
// two files or units of one name, so that no machine would boot.
func TestOwnFilesReplaceNone(t *testing.T) {
	flatcar := worker(func(m *clusterv1alpha1.Machine) {
		m.Spec.ProviderSpec.Value.OperatingSystem = clusterv1alpha1.OperatingSystemFlatcar
	})
	unit := func(name string) Config {
		c := cluster()
		c.Packages = nil
		c.Units = []Unit{{Name: name, Content: "[Service]\nExecStart=/bin/true\n"}}
		return c
	}
	host := unit("agent.service")
	host.Files = []File{{Path: "/etc/hostname", Content: "a"}}
	for name, c := range map[string]struct {
		config Config
		names  string
	}{
		"the host's name":        {host, "/etc/hostname"},
		"the image's containerd": {unit("containerd.service"), "containerd.service"},
		"the image's docker":     {unit("docker.socket"), "docker.socket"},
		"Millwright's kubelet":   {unit("kubelet.service"), "kubelet.service"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(flatcar, c.config); err == nil || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), "is there already") {
				t.Errorf("error %v, want one that names %s", err, c.names)
			}
		})
	}
	if err := Check(flatcar, unit("agent.service")); err != nil {
		t.Error(err)
	}
}

func TestKubeletLabel(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "example.com/a": true, "notkubernetes.io/a": true,
		"kubernetes.io/hostname": true, "topology.kubernetes.io/zone": true, "node.kubernetes.io/x": true, "a.kubelet.kubernetes.io/x": true,
		"node-role.kubernetes.io/worker": false, "kubernetes.io/x": false, "k8s.io/x": false, "cluster.k8s.io/x": false,
		"node-restriction.kubernetes.io/x": false,
	} {
		if got := KubeletLabel(key); got != want {
			t.Errorf("%s: %t, want %t", key, got, want)
		}
	}
}

// User data that is too long is compressed, as cloud-init and Ignition read it.
func TestLIFE2_LongUserDataIsCompressed(t *testing.T) {
	for _, system := range []clusterv1alpha1.OperatingSystem{clusterv1alpha1.OperatingSystemUbuntu, clusterv1alpha1.OperatingSystemFlatcar} {
		t.Run(string(system), func(t *testing.T) {
			m := worker(func(m *clusterv1alpha1.Machine) { m.Spec.ProviderSpec.Value.OperatingSystem = system })
			plain, err := Render(m, cluster(), token)
			if err != nil {
				t.Fatal(err)
			}
			short, err := Render(m, cluster(func(c *Config) { c.MaxBytes = 16 << 10 }), token)
			if err != nil {
				t.Fatal(err)
			}
			if len(short) > 16<<10 || len(short) >= len(plain) {
				t.Errorf("%d bytes became %d", len(plain), len(short))
			}
			if got := decompress(t, short); !bytes.Equal(got, plain) {
				t.Errorf("what is compressed is other user data: %.40q", got)
			}
			if again, _ := Render(m, cluster(func(c *Config) { c.MaxBytes = 16 << 10 }), token); !bytes.Equal(again, short) {
				t.Error("the same machine gave other bytes")
			}
			_, err = Render(m, cluster(func(c *Config) { c.MaxBytes = 1 << 10 }), token)
			if err == nil || !strings.Contains(err.Error(), "/opt/bin/millwright-bootstrap (") {
				t.Errorf("error %v, want one that names the largest files", err)
			}
		})
	}
}

// decompress undoes what cloud-init, or Ignition with its stub, undoes.
func decompress(t *testing.T, data []byte) []byte {
	t.Helper()
	if data[0] == '{' {
		var stub struct {
			Ignition struct {
				Config struct {
					Replace struct{ Source, Compression string }
				}
			}
		}
		if err := json.Unmarshal(data, &stub); err != nil || stub.Ignition.Config.Replace.Compression != "gzip" {
			t.Fatalf("the stub is %.100q, %v", data, err)
		}
		var err error
		if data, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(stub.Ignition.Config.Replace.Source, "data:;base64,")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
