package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterBootstrap says how machines are set up. A field that is left out is looked for elsewhere:
// the manager's flags, the cluster itself, a default.
type ClusterBootstrap struct {
	// caBundle is what machines check the API server's certificate with, as PEM.
	// Left out, it is that of ConfigMap kube-public/cluster-info, or of
	// kube-root-ca.crt.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	CABundle string `json:"caBundle,omitempty"`

	// clientCABundle is what kubelets check their clients with, as PEM. Left out, it
	// is the one that the API server checks its own with.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	ClientCABundle string `json:"clientCABundle,omitempty"`

	// clusterDNS are the addresses of the cluster's DNS. Left out, they are those of
	// the cluster's own configuration of kubelets, of Service kube-dns, or the tenth
	// address of the Services' range.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	ClusterDNS []IPAddress `json:"clusterDNS,omitempty"`

	// externalCloudProvider has kubelets wait for a cloud controller manager.
	// +optional
	ExternalCloudProvider *bool `json:"externalCloudProvider,omitempty"`

	// pauseImage is the image of each pod's sandbox. Left out, it is the one that
	// kubeadm takes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	PauseImage string `json:"pauseImage,omitempty"`

	// httpProxy is the URL of the proxy for all that leaves a machine, such as
	// "http://proxy.example.com:3128".
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be a URL, such as http://proxy.example.com:3128"
	HTTPProxy string `json:"httpProxy,omitempty"`

	// noProxy are hosts, domains and ranges of addresses that machines reach without
	// the proxy, besides the cluster's own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NoProxy []HostPattern `json:"noProxy,omitempty"`

	// registryMirrors are URLs of mirrors by the registry's host, such as
	// "docker.io"; "_default" stands for all others.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	RegistryMirrors map[string]RegistryMirrors `json:"registryMirrors,omitempty"`

	// artifacts say where machines download from what their image does not bring.
	// +optional
	Artifacts *ArtifactSources `json:"artifacts,omitempty"`

	// kubeletConfiguration is a KubeletConfiguration of kubelet.config.k8s.io/v1beta1,
	// merged over the defaults. Who may call the kubelet and what its certificates
	// are cannot be changed.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	KubeletConfiguration runtime.RawExtension `json:"kubeletConfiguration,omitzero"`

	// hostCABundle is what a machine itself trusts besides what its image does, as PEM.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	HostCABundle string `json:"hostCABundle,omitempty"`

	// ntpServers are asked for the time, instead of those of the image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	NTPServers []HostPattern `json:"ntpServers,omitempty"`

	// packages are installed before the kubelet starts, as NAME or NAME=VERSION.
	// Flatcar has none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Packages []PackageName `json:"packages,omitempty"`

	// files are put on each machine, owned by root. None replaces one of Millwright's.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Files []BootstrapFile `json:"files,omitempty"`

	// units of systemd are put on each machine. None replaces one of Millwright's.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Units []BootstrapUnit `json:"units,omitempty"`

	// startupTaints are on a Node from its registration until it is fit for pods;
	// Millwright removes them then.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=16
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// blockMetadata keeps pods from the cloud's metadata service, which serves user
	// data, too. Pods of the host's network, and networks by eBPF, go past it.
	// +optional
	BlockMetadata bool `json:"blockMetadata,omitempty"`
}

// ArtifactSources say where machines download from.
type ArtifactSources struct {
	// mirror is the URL under which every artifact is, as mirror/HOST/PATH. Plain
	// http needs digests.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https']",message="must be a URL, such as https://mirror.example.com/artifacts"
	Mirror string `json:"mirror,omitempty"`

	// digestsConfigMap names a ConfigMap, in the same namespace, whose key
	// "sha256sums" has a line "SHA256  HOST/PATH" for each artifact. One that it
	// leaves out is checked with the sum that lies beside it.
	// +optional
	DigestsConfigMap *LocalReference `json:"digestsConfigMap,omitempty"`
}

// BootstrapFile is a file on a machine.
type BootstrapFile struct {
	// path of the file, absolute.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must be absolute, such as /etc/example.conf"
	Path string `json:"path"`

	// content of the file.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Content string `json:"content,omitempty"`

	// permissions in octal, such as "0600". Default: "0644".
	// +optional
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="self.matches('^0?[0-7]{3}$')",message="must be permissions in octal, such as '0644'"
	Permissions string `json:"permissions,omitempty"`
}

// BootstrapUnit is a unit of systemd.
type BootstrapUnit struct {
	// name of the unit with its suffix, such as "agent.service".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// content of the unit's file.
	// +required
	// +kubebuilder:validation:MaxLength=32768
	Content string `json:"content"`

	// enabled starts it on the first boot and on each one after.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// IPAddress is an IPv4 or IPv6 address.
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.96.0.10"
type IPAddress = string

// HostPattern is a host, a domain or a range of addresses.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type HostPattern = string

// PackageName is a package of the operating system.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type PackageName = string

// RegistryMirrors are URLs of a registry's mirrors, the first to be asked first.
// +listType=atomic
// +kubebuilder:validation:MaxItems=16
type RegistryMirrors []MirrorURL

// MirrorURL is the URL of a registry's mirror.
// +kubebuilder:validation:MaxLength=1024
type MirrorURL = string
