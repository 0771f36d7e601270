package bootstrap

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-dev/millwright/core/bootstrap/template"
)

// Config is what user data needs besides the Machine: the cluster that it joins and the operator's
// choices. core/bootstrap/discovery makes it. The zero value of a field without further words
// leaves out what the field is for.
type Config struct {
	// Server is the API server's URL as machines reach it: https://HOST[:PORT]. Required.
	Server string
	// CABundle is what the API server's certificate is checked with, as PEM. Required.
	CABundle []byte
	// ClientCABundle is what the kubelet checks its clients with, as PEM. Empty: CABundle.
	ClientCABundle []byte
	// ClusterDNS are the addresses of the cluster's DNS. Required.
	ClusterDNS []string
	// ClusterDomain is the domain of Services. Empty: cluster.local.
	ClusterDomain string
	// PodCIDRs and ServiceCIDRs are reached without the proxy.
	PodCIDRs, ServiceCIDRs []string
	// ExternalCloudProvider has the kubelet wait for a cloud controller manager.
	ExternalCloudProvider bool
	// PauseImage is the image of each pod's sandbox. Empty: by the kubelet's version.
	PauseImage string

	// MaxBytes is how long the user data may be, as the cloud takes it. Zero, or more than
	// MaxUserDataBytes: that.
	MaxBytes int

	// HTTPProxy is the URL of the proxy for all that leaves the machine.
	HTTPProxy string
	// NoProxy are hosts, domains and ranges that are reached without it, besides those of the
	// cluster.
	NoProxy []string
	// RegistryMirrors are the URLs of a registry's mirrors, by the registry's HOST[:PORT];
	// "_default" stands for all others.
	RegistryMirrors map[string][]string
	// ArtifactMirror is the URL under which all artifacts are, as MIRROR/HOST/PATH. Empty: their
	// own sites. Plain http needs a digest for each.
	ArtifactMirror string
	// Digests are SHA-256 sums in lower-case hex, by HOST/PATH of the artifact.
	Digests map[string]string
	// KubeletConfiguration is merged over the defaults, as JSON or YAML of
	// kubelet.config.k8s.io/v1beta1.
	KubeletConfiguration []byte
	// StartupTaints are on a Node from its registration until it is fit for pods.
	StartupTaints []corev1.Taint

	// HostCABundle is what the machine itself trusts besides what its image does, as PEM.
	HostCABundle []byte
	// NTPServers are asked for the time, instead of those of the image.
	NTPServers []string
	// Packages are installed before the kubelet starts.
	Packages []string
	// Files and Units are added to the machine's own.
	Files []File
	Units []Unit
	// Templates of files and units are filled in for each machine; nil for none. They are of the
	// machine's operating system. TemplatesFrom names, for people, where they stand.
	Templates     *template.Document
	TemplatesFrom string
	// BlockMetadata keeps pods from the cloud's metadata service.
	BlockMetadata bool
}

// File is a file on the machine. It belongs to root.
type File struct {
	// Path is absolute and clean.
	Path string
	// Content of the file.
	Content string
	// Mode are its permissions. Zero: 0644.
	Mode uint32
}

// Unit is a unit of systemd.
type Unit struct {
	// Name with its suffix, such as "agent.service".
	Name string
	// Content of the unit's file.
	Content string
	// Enabled starts it now and at each boot.
	Enabled bool
}
