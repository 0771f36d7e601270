package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Cluster is what all machines of a cluster have in common. Machines name it in
// spec.clusterRef. A change reaches the machines that are made afterwards and
// replaces none; credentials are the exception, they are always those of now. While
// a MachineDeployment, MachineSet or Machine names it, it is not deleted.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cl,categories=millwright
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the first generation of the Cluster API under its original group"
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.providerSpec.value.cloudProvider`
// +kubebuilder:printcolumn:name="InUse",type=string,JSONPath=`.status.conditions[?(@.type=="InUse")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec.apiEndpoints[0].host`
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the machines have in common.
	// +optional
	Spec ClusterSpec `json:"spec,omitzero"`

	// status is what Millwright last saw of the Cluster's use.
	// +optional
	Status InheritedStatus `json:"status,omitzero"`
}

// ClusterList is a list of Clusters.
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}

// ClusterSpec is what all machines of a cluster have in common.
type ClusterSpec struct {
	// clusterNetwork says what addresses and what domain the cluster uses. Machines are
	// told of the domain, and of the ranges that they reach without a proxy.
	// +optional
	ClusterNetwork *ClusterNetwork `json:"clusterNetwork,omitempty"`

	// apiEndpoints are where the cluster's API is served. Machines join by the first.
	// Left out, it is that of ConfigMap kube-public/cluster-info, or the first endpoint
	// of Service kubernetes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	APIEndpoints []APIEndpoint `json:"apiEndpoints,omitempty"`

	// bootstrap says how machines are set up.
	// +optional
	Bootstrap *ClusterBootstrap `json:"bootstrap,omitempty"`

	// credentialsSecretRef names a Secret each of whose keys the driver gets under
	// its name. Secrets of a MachineClass win over it.
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// providerSpec is what machines inherit.
	// +optional
	ProviderSpec *ClusterProviderSpec `json:"providerSpec,omitempty"`
}

// ClusterProviderSpec is what the machines of one cloud inherit.
type ClusterProviderSpec struct {
	// value is what they inherit.
	// +required
	Value ClusterProviderSpecValue `json:"value"`
}

// ClusterProviderSpecValue is what the machines of one cloud inherit.
type ClusterProviderSpecValue struct {
	// cloudProvider is the cloud; machines of others inherit neither spec nor
	// credentials.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must name a driver: lower-case letters, digits and dashes, such as 'openstack'"
	CloudProvider string `json:"cloudProvider"`

	// cloudProviderSpec is merged under that of the machines: what a MachineClass or
	// the Machine sets wins.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProviderSpec runtime.RawExtension `json:"cloudProviderSpec"`
}

// ClusterNetwork says what addresses a cluster uses.
type ClusterNetwork struct {
	// services of the cluster.
	// +optional
	Services *NetworkRanges `json:"services,omitempty"`

	// pods of the cluster.
	// +optional
	Pods *NetworkRanges `json:"pods,omitempty"`

	// serviceDomain is the domain of the cluster's Services, such as "cluster.local".
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceDomain string `json:"serviceDomain,omitempty"`
}

// NetworkRanges are ranges of addresses.
type NetworkRanges struct {
	// cidrBlocks in the form of 10.0.0.0/16.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	CIDRBlocks []CIDR `json:"cidrBlocks"`
}

// CIDR is a range of addresses.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses, such as 10.0.0.0/16"
type CIDR = string

// APIEndpoint is where an API is served.
type APIEndpoint struct {
	// host name or address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// port of the API.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
