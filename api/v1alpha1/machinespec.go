package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachineTemplateSpec is what a MachineDeployment or MachineSet makes its
// Machines from.
type MachineTemplateSpec struct {
	// metadata of the Machines made from this template. Its labels must match the
	// selector; they also become labels of the Nodes.
	// +optional
	ObjectMeta `json:"metadata,omitzero"`

	// spec of the Machines made from this template.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.machineUID)",message="is set by Millwright on each Machine: remove it from the template",fieldPath=".machineUID",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="!has(self.providerID)",message="is set by Millwright on each Machine: remove it from the template",fieldPath=".providerID",reason=FieldValueForbidden
	Spec MachineSpec `json:"spec"`
}

// MachineSpec says what VM a Machine is to be, and what Node that VM is to become.
type MachineSpec struct {
	// metadata of the Node: its labels and annotations win over those that the
	// Machine itself carries.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitzero"`

	// taints that the Node registers with.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`

	// providerSpec says which cloud the VM is made in, and how.
	// +required
	ProviderSpec ProviderSpec `json:"providerSpec"`

	// clusterRef names the Cluster, in the same namespace, whose providerSpec and
	// credentials the machine inherits. Left out, it inherits none.
	// +optional
	ClusterRef *LocalReference `json:"clusterRef,omitempty"`

	// versions of what runs on the machine.
	// +required
	Versions MachineVersions `json:"versions"`

	// bootstrap brings user data of one's own. Left out, Millwright renders it.
	// +optional
	Bootstrap *MachineBootstrap `json:"bootstrap,omitempty"`

	// nodeDrainTimeout bounds how long a deletion waits for the pods of the Node
	// to be evicted, for example "30m" or "1h30m"; when it is over, the VM goes
	// with whatever still runs on it. At least 1s, at most 8760h. Defaults to the
	// manager's setting, which is 2h unless the operator chose otherwise.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && self != '' && duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be hours, minutes and seconds between 1s and 8760h, such as '30m' or '1h30m'"
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout bounds how long a deletion waits for volumes of drained
	// pods to be detached from the Node, for example "10m". When it is over, the VM goes
	// with the volumes that are still attached. "0s" waits without end; at most 8760h.
	// Defaults to the manager's setting, which is 10m unless the operator chose otherwise.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && self != '' && duration(self) <= duration('8760h')",message="must be hours, minutes and seconds up to 8760h, such as '10m' or '1h30m', or '0s' for no limit"
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeStartupTimeout bounds how long the VM may take to become a Ready Node,
	// from when its cloud has accepted it, and a Node that was deleted to come back;
	// for example "20m". Then the Machine is Failed and its MachineSet replaces it.
	// The time stands still while it could not be seen whether there is a Node. "0s"
	// waits for ever; at most 8760h. Defaults to the manager's setting, which is 20m
	// unless the operator chose otherwise.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && self != '' && duration(self) <= duration('8760h')",message="must be hours, minutes and seconds up to 8760h, such as '20m' or '1h30m', or '0s' for no limit"
	NodeStartupTimeout *metav1.Duration `json:"nodeStartupTimeout,omitempty"`

	// providerID names the VM in its cloud, byte for byte as the Node's
	// spec.providerID does. Set once by Millwright as soon as the cloud tells it;
	// not allowed in a template. One that comes from elsewhere, such as a backup,
	// counts for nothing until the driver has confirmed it: see status.providerID.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID *string `json:"providerID,omitempty"`

	// machineUID identifies this machine towards its cloud for good: whatever the
	// cloud holds for the machine is marked with it, and a create that is repeated
	// with the same machineUID never makes a second VM. Unlike metadata.uid it
	// survives a backup and restore. Set once by Millwright, mostly when the
	// Machine is created, and never changed; not allowed in a template.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$')",message="must be letters, digits and dashes, such as a UUID"
	MachineUID *string `json:"machineUID,omitempty"`
}

// MachineBootstrap is user data of one's own.
type MachineBootstrap struct {
	// dataSecretName names a Secret, in the same namespace, whose key "value" or
	// "userData" is the machine's user data. Where that has <<BOOTSTRAP_TOKEN>> or
	// <<MACHINE_NAME>>, also URL-encoded, the machine gets its own there. The Secret is
	// read when the VM is made; a change of it afterwards replaces no machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be a Secret's name, such as 'my-user-data'"
	DataSecretName string `json:"dataSecretName"`
}

// ProviderSpec holds the cloud's part of a MachineSpec.
// +kubebuilder:validation:XValidation:rule="has(self.valueFrom) || has(self.value.cloudProvider)",message="name the cloud, unless valueFrom names a MachineClass",fieldPath=".value.cloudProvider",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="has(self.valueFrom) || has(self.value.cloudProviderSpec)",message="say what the VM is made from, unless valueFrom names a MachineClass",fieldPath=".value.cloudProviderSpec",reason=FieldValueRequired
type ProviderSpec struct {
	// value is the cloud's part itself. With valueFrom it holds what a MachineClass
	// does not: the operating system, and what this machine has otherwise.
	// +required
	Value ProviderSpecValue `json:"value"`

	// valueFrom takes the cloud and its spec from elsewhere.
	// +optional
	ValueFrom *ProviderSpecSource `json:"valueFrom,omitempty"`
}

// ProviderSpecSource says where the cloud and its spec come from.
type ProviderSpecSource struct {
	// machineClass names the MachineClass, in the same namespace, whose provider and
	// providerSpec the machine is made from.
	// +required
	MachineClass LocalReference `json:"machineClass"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ProviderSpecValue says which cloud the VM is made in, and how.
type ProviderSpecValue struct {
	// cloudProvider is the name under which the operator registered the cloud's
	// driver, such as "openstack". While there is no such driver, the Machine says
	// so in its condition InstanceReady. Required unless valueFrom names a
	// MachineClass; if both say it, they must agree.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must name a driver: lower-case letters, digits and dashes, such as 'openstack'"
	CloudProvider string `json:"cloudProvider,omitempty"`

	// cloudProviderSpec is what the driver makes the VM from. Its fields are the
	// driver's own; an error in them is refused when it is applied, or stands in the
	// Machine's condition InstanceReady. Required unless valueFrom names a
	// MachineClass. What it leaves out comes from the class, then from the Cluster:
	// objects are merged, lists and all else are replaced.
	//
	// A string may be given as {value: …}, {configMapKeyRef: {name, key}} or, in
	// fields that the driver marks as secret, {secretKeyRef: {name, key}}.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProviderSpec runtime.RawExtension `json:"cloudProviderSpec,omitzero"`

	// operatingSystem of the VM's image; it decides how the machine is set up on
	// its first boot.
	// +required
	OperatingSystem OperatingSystem `json:"operatingSystem"`

	// operatingSystemSpec are settings of the operating system.
	// +optional
	OperatingSystemSpec OperatingSystemSpec `json:"operatingSystemSpec,omitzero"`

	// overwriteCloudConfig is put on the machine as /etc/kubernetes/cloud-config, for
	// what reads such a file there. Only root may read it; whoever may read the
	// Machine can read it, too: no secret belongs in it.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	OverwriteCloudConfig string `json:"overwriteCloudConfig,omitempty"`

	// network is the machine's address, where nothing hands one out, its DNS servers and
	// the family of its Node's address. Left out, the machine asks by DHCP.
	// +optional
	Network MachineNetwork `json:"network,omitzero"`

	// sshPublicKeys may log in to the machine. They are put on it when it is
	// created.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SSHPublicKeys []SSHPublicKey `json:"sshPublicKeys,omitempty"`
}

// MachineNetwork is how a machine's only network interface is set up.
// +kubebuilder:validation:XValidation:rule="!has(self.cidr) || self.cidr.size() == 0 || has(self.gateway) && self.gateway.size() > 0",message="is needed beside cidr: a machine with a fixed address learns no route by DHCP",fieldPath=".gateway",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || self.gateway.size() == 0 || has(self.cidr) && self.cidr.size() > 0",message="is needed beside gateway, such as 192.168.1.10/24: with DHCP the gateway comes from there",fieldPath=".cidr",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.cidr) || !has(self.gateway) || !isCIDR(self.cidr) || !isIP(self.gateway) || ip(self.gateway).family() == cidr(self.cidr).ip().family()",message="must be of the same IP family as cidr",fieldPath=".gateway"
type MachineNetwork struct {
	// cidr is the machine's address and the length of its network's prefix, such as
	// 192.168.1.10/24. It goes to the network interface whose name begins with en or eth;
	// with it, the machine asks for no address by DHCP. Two machines must not have the
	// same, so a template with it is for one machine: replicas of at most 1, and a
	// strategy without a surge.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || isCIDR(self)",message="must be an address with the length of its network's prefix, such as 192.168.1.10/24"
	CIDR string `json:"cidr,omitempty"`

	// gateway of the machine's default route. It goes together with cidr.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || isIP(self)",message="must be an IP address, such as 192.168.1.1"
	Gateway string `json:"gateway,omitempty"`

	// dns are the machine's DNS servers.
	// +optional
	DNS MachineDNS `json:"dns,omitzero"`

	// ipFamily of the Node's address. Of a dual-stack machine the first one is that of
	// its primary address; the other address reaches the Node by a cloud controller
	// manager alone. Left out, the kubelet chooses, and beside a cloud controller manager
	// the family of the cluster's DNS server counts.
	// +optional
	// +kubebuilder:validation:Enum="";IPv4;IPv6;IPv4+IPv6;IPv6+IPv4
	IPFamily IPFamily `json:"ipFamily,omitempty"`
}

// MachineDNS says whom a machine asks for names.
type MachineDNS struct {
	// servers that systemd-resolved asks instead of those that DHCP names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Servers []IPAddress `json:"servers,omitempty"`
}

// IPFamily names one IP family, or both with the primary one first.
type IPFamily string

// The families.
const (
	IPv4Family     IPFamily = "IPv4"
	IPv6Family     IPFamily = "IPv6"
	IPv4IPv6Family IPFamily = "IPv4+IPv6"
	IPv6IPv4Family IPFamily = "IPv6+IPv4"
)

// OperatingSystem names an operating system that Millwright can set up.
// +kubebuilder:validation:Enum=ubuntu;flatcar
type OperatingSystem string

// The operating systems.
const (
	// OperatingSystemUbuntu is Ubuntu, or plain Debian, set up by cloud-init.
	OperatingSystemUbuntu OperatingSystem = "ubuntu"

	// OperatingSystemFlatcar is Flatcar Container Linux, set up by Ignition.
	OperatingSystemFlatcar OperatingSystem = "flatcar"
)

// OperatingSystemSpec are settings of the operating system.
type OperatingSystemSpec struct {
	// distUpgradeOnBoot asks for all packages to be upgraded on the first boot, and
	// for a reboot if they need one. Flatcar has no packages and ignores it.
	// +optional
	DistUpgradeOnBoot bool `json:"distUpgradeOnBoot,omitempty"`

	// disableAutoUpdate keeps the operating system from updating itself: a machine
	// that is replaced by a newer image needs no updates.
	// +optional
	DisableAutoUpdate bool `json:"disableAutoUpdate,omitempty"`
}

// SSHPublicKey is one line of an authorized_keys file.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=16384
type SSHPublicKey = string

// MachineVersions are the versions of what runs on a machine.
type MachineVersions struct {
	// kubelet is the version of Kubernetes that the machine runs, such as "1.30.3".
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-[0-9A-Za-z-]+([.][0-9A-Za-z-]+)*)?([+][0-9A-Za-z-]+([.][0-9A-Za-z-]+)*)?$')",message="must be a version of Kubernetes with major, minor and patch, such as '1.30.3'"
	Kubelet string `json:"kubelet"`
}

// Taint keeps pods away from a Node that do not tolerate it.
type Taint struct {
	// key of the taint, a name with an optional prefix, such as "example.com/dedicated".
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be a name of at most 63 letters, digits, '-', '_' and '.', with an optional DNS prefix and '/', such as 'example.com/dedicated'"
	Key string `json:"key"`

	// value of the taint.
	// +optional
	Value LabelValue `json:"value,omitempty"`

	// effect on pods that do not tolerate the taint: NoSchedule, PreferNoSchedule
	// or NoExecute.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
}

// NodeTaint returns the taint as a Node carries it.
func (t Taint) NodeTaint() corev1.Taint {
	return corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
}
