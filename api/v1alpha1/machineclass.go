package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachineClass is what many machines are made from: a cloud, a spec for it, and
// the credentials to use. Machines name it in spec.providerSpec.valueFrom. A change
// reaches the machines that are made afterwards and replaces none; credentials are
// the exception, they are always those of now. While a MachineDeployment, MachineSet
// or Machine names it, it is not deleted.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=machineclasses,shortName=mc,categories=millwright
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the first generation of the Cluster API under its original group"
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.provider`
// +kubebuilder:printcolumn:name="InstanceType",type=string,JSONPath=`.nodeTemplate.instanceType`
// +kubebuilder:printcolumn:name="InUse",type=string,JSONPath=`.status.conditions[?(@.type=="InUse")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Region",type=string,priority=1,JSONPath=`.nodeTemplate.region`
// +kubebuilder:printcolumn:name="Zone",type=string,priority=1,JSONPath=`.nodeTemplate.zone`
type MachineClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// provider is the name under which the operator registered the cloud's driver,
	// such as "openstack".
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must name a driver: lower-case letters, digits and dashes, such as 'openstack'"
	Provider string `json:"provider"`

	// providerSpec is what the driver makes VMs from, in the form of a Machine's
	// cloudProviderSpec. What a Machine sets itself wins.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderSpec runtime.RawExtension `json:"providerSpec"`

	// secretRef names a Secret each of whose keys the driver gets under its name. Its
	// key "userData", if there is one, is the user data of machines that bring none of
	// their own; see spec.bootstrap of Machines.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// credentialsSecretRef names another such Secret, which wins over secretRef.
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// nodeTemplate describes the Nodes that VMs of this class become, for those
	// who plan with them, such as an autoscaler.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`

	// status is what Millwright last saw of the class's use.
	// +optional
	Status InheritedStatus `json:"status,omitzero"`
}

// MachineClassList is a list of MachineClasses.
// +kubebuilder:object:root=true
type MachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineClass `json:"items"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the Secret; that of the object if left out. Another one is read
	// only if the operator allows it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// NodeTemplate describes a Node before there is one.
type NodeTemplate struct {
	// capacity of the Node, such as cpu, memory and the count of GPUs.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Capacity map[string]resource.Quantity `json:"capacity,omitempty"`

	// instanceType as in the label node.kubernetes.io/instance-type.
	// +optional
	InstanceType LabelValue `json:"instanceType,omitempty"`

	// region as in the label topology.kubernetes.io/region.
	// +optional
	Region LabelValue `json:"region,omitempty"`

	// zone as in the label topology.kubernetes.io/zone.
	// +optional
	Zone LabelValue `json:"zone,omitempty"`

	// architecture as in the label kubernetes.io/arch, such as "amd64".
	// +optional
	Architecture LabelValue `json:"architecture,omitempty"`
}

// InheritedStatus is what Millwright last saw of the use of a MachineClass or
// Cluster.
type InheritedStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: InUse.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// protectedSecrets are Secrets on which an earlier version has left a
	// finalizer, and which the manager may not change. Copies of Secrets are
	// kept instead.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ProtectedSecrets []SecretReference `json:"protectedSecrets,omitempty"`
}
