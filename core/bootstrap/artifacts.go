package bootstrap

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Versions of what the kubelet needs besides itself.
const (
	containerdVersion = "2.3.7"
	runcVersion       = "1.4.3"
	cniVersion        = "1.9.1"
	crictlVersion     = "1.34.0"
)

// Architectures are those of which there are artifacts.
var Architectures = []string{"amd64", "arm64"}

// Artifact is a file that a machine downloads unless its image brings it.
type Artifact struct {
	// Name of what it is, and its version without a leading v.
	Name, Version string
	// Architecture it runs on, as Go names it.
	Architecture string
	// Archive says that it is a tar.gz to be unpacked.
	Archive bool
	// Directory is where it is put.
	Directory string
	// Location is where it is on its own site, as HOST/PATH. Sums is where its site has its
	// SHA-256, alone or in a list.
	Location, Sums string
}

// Artifacts are what a machine of the operating system with this kubelet needs, for each
// architecture. Flatcar's image has containerd and runc.
func Artifacts(system clusterv1alpha1.OperatingSystem, kubelet string) []Artifact {
	const github = "github.com/"
	release := func(project, version, file string) string {
		return github + project + "/releases/download/v" + version + "/" + file
	}
	kubelet = strings.TrimPrefix(kubelet, "v")
	var all []Artifact
	for _, arch := range Architectures {
		binary := "dl.k8s.io/v" + kubelet + "/bin/linux/" + arch + "/kubelet"
		all = append(all, Artifact{
			Name: "kubelet", Version: kubelet, Architecture: arch, Directory: "/opt/bin",
			Location: binary, Sums: binary + ".sha256",
		})
		if system != clusterv1alpha1.OperatingSystemFlatcar {
			archive := release("containerd/containerd", containerdVersion, "containerd-"+containerdVersion+"-linux-"+arch+".tar.gz")
			all = append(all, Artifact{
				Name: "containerd", Version: containerdVersion, Architecture: arch, Archive: true, Directory: "/usr/local",
				Location: archive, Sums: archive + ".sha256sum",
			}, Artifact{
				Name: "runc", Version: runcVersion, Architecture: arch, Directory: "/usr/local/sbin",
				Location: release("opencontainers/runc", runcVersion, "runc."+arch),
				Sums:     release("opencontainers/runc", runcVersion, "runc.sha256sum"),
			})
		}
		plugins := release("containernetworking/plugins", cniVersion, "cni-plugins-linux-"+arch+"-v"+cniVersion+".tgz")
		tools := release("kubernetes-sigs/cri-tools", crictlVersion, "crictl-v"+crictlVersion+"-linux-"+arch+".tar.gz")
		all = append(all, Artifact{
			Name: "cni", Version: cniVersion, Architecture: arch, Archive: true, Directory: "/opt/cni/bin",
			Location: plugins, Sums: plugins + ".sha256",
		}, Artifact{
			Name: "crictl", Version: crictlVersion, Architecture: arch, Archive: true, Directory: "/opt/bin",
			Location: tools, Sums: tools + ".sha256",
		})
	}
	return all
}

// artifactFiles is the list that millwright-bootstrap reads: architecture, name, version, kind,
// directory, URL, URL of the sums, digest; "-" stands for none. What is of the kind image is not
// downloaded. A mirror by plain http may have one architecture only: machines of the other one need
// an image that has everything.
func artifactFiles(m *clusterv1alpha1.Machine, c Config) ([]File, error) {
	base, err := artifactBase(c)
	if err != nil {
		return nil, err
	}
	system := m.Spec.ProviderSpec.Value.OperatingSystem
	all := Artifacts(system, m.Spec.Versions.Kubelet)
	mirrored := pinnedArchitectures(all, c.Digests)
	var lines strings.Builder
	for _, a := range all {
		digest := c.Digests[a.Location]
		if digest == "" && strings.HasPrefix(base, "http:") {
			if a.Name == "crictl" {
				continue
			}
			if len(mirrored) > 0 && !mirrored[a.Architecture] {
				fmt.Fprintln(&lines, a.Architecture, a.Name, a.Version, "image", a.Directory, "-", "-", "-")
				continue
			}
			return nil, fmt.Errorf("artifacts.mirror %s: plain http needs a digest of %s: name a digestsConfigMap that has it, or use https",
				base, a.Location)
		}
		kind := "file"
		if a.Archive {
			kind = "tar"
		}
		fmt.Fprintln(&lines, a.Architecture, a.Name, a.Version, kind, a.Directory, base+a.Location, base+a.Sums, cmp.Or(digest, "-"))
	}
	if system == clusterv1alpha1.OperatingSystemFlatcar {
		for _, arch := range Architectures {
			fmt.Fprintln(&lines, arch, "containerd", "2.0", "image", "-", "-", "-", "-")
		}
	}
	return []File{{Path: "/etc/millwright/artifacts", Content: lines.String()}}, nil
}

// pinnedArchitectures are those of which any artifact has a digest.
func pinnedArchitectures(all []Artifact, digests map[string]string) map[string]bool {
	pinned := map[string]bool{}
	for _, a := range all {
		if digests[a.Location] != "" {
			pinned[a.Architecture] = true
		}
	}
	return pinned
}

// artifactBase is what comes before an artifact's location.
func artifactBase(c Config) (string, error) {
	for location, digest := range c.Digests {
		if !digestPattern.MatchString(digest) {
			return "", fmt.Errorf("artifacts.digestsConfigMap: the digest of %q must be 64 hexadecimal digits in lower case", location)
		}
	}
	if c.ArtifactMirror == "" {
		return "https://", nil
	}
	u, err := parseURL(c.ArtifactMirror, "http", "https")
	if err != nil {
		return "", fmt.Errorf("artifacts.mirror: %w", err)
	}
	return strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/") + "/", nil
}
