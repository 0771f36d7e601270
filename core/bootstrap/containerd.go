package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// certsPath is where containerd looks for a registry's mirrors.
const certsPath = "/etc/containerd/certs.d"

// containerdFiles are containerd's configuration, which is of version 3 and so needs containerd 2,
// and the mirrors of registries. Credentials are not there: imagePullSecrets have them.
func containerdFiles(m *clusterv1alpha1.Machine, c Config) ([]File, error) {
	image, err := pauseImage(m, c)
	if err != nil {
		return nil, err
	}
	files := []File{{Path: "/etc/containerd/config.toml", Content: fmt.Sprintf(containerdConfig, tomlString(image), tomlString(certsPath))}}
	for _, host := range slices.Sorted(maps.Keys(c.RegistryMirrors)) {
		if host != "_default" && !hostPattern.MatchString(host) {
			return nil, fmt.Errorf("registryMirrors[%q]: the key must be a registry's host[:port], or _default", host)
		}
		content, err := hostsFile(c.RegistryMirrors[host])
		if err != nil {
			return nil, fmt.Errorf("registryMirrors[%q]: %w", host, err)
		}
		files = append(files, File{Path: path.Join(certsPath, host, "hosts.toml"), Content: content})
	}
	return files, nil
}

const containerdConfig = `version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %s

[plugins."io.containerd.cri.v1.images".registry]
config_path = %s

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true
`

// pauseImage is what the operator chose, else what kubeadm of the kubelet's version would take.
func pauseImage(m *clusterv1alpha1.Machine, c Config) (string, error) {
	if c.PauseImage != "" {
		if !imagePattern.MatchString(c.PauseImage) {
			return "", fmt.Errorf("pauseImage %q: must be an image's name with tag or digest, such as registry.k8s.io/pause:3.10.1", c.PauseImage)
		}
		return c.PauseImage, nil
	}
	kubelet, err := version.ParseSemantic(m.Spec.Versions.Kubelet)
	if err != nil {
		return "", fmt.Errorf("spec.versions.kubelet: %w", err)
	}
	if kubelet.AtLeast(version.MajorMinor(1, 36)) {
		return "registry.k8s.io/pause:3.10.2", nil
	}
	return "registry.k8s.io/pause:3.10.1", nil
}

// hostsFile asks the mirrors one after the other, then the registry itself. containerd refuses a
// mirror that is named twice.
func hostsFile(mirrors []string) (string, error) {
	var b strings.Builder
	for i, mirror := range mirrors {
		if slices.Contains(mirrors[:i], mirror) {
			continue
		}
		u, err := parseURL(mirror, "http", "https")
		if err != nil {
			return "", fmt.Errorf("[%d]: %w", i, err)
		}
		fmt.Fprintf(&b, "[host.%s]\ncapabilities = [\"pull\", \"resolve\"]\n", tomlString(mirror))
		if hasAPIPath(u) {
			b.WriteString("override_path = true\n")
		}
	}
	return b.String(), nil
}

// hasAPIPath says whether the URL already has the registry API's path, as a proxy's does that
// serves several registries: containerd would add it once more.
func hasAPIPath(u *url.URL) bool {
	return u.Path == "/v2" || strings.HasPrefix(u.Path, "/v2/")
}

// tomlString quotes a text without control characters. JSON's strings are TOML's then.
func tomlString(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}
