package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Machine is one VM in some cloud and, once it has joined the cluster, one Node.
// It is mostly made by a MachineSet, but also works alone. Deleting it drains the
// Node, then deletes the VM, then the Node; that is safe at any moment.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ma,categories=millwright
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the first generation of the Cluster API under its original group"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.providerSpec.value.cloudProvider`
// +kubebuilder:printcolumn:name="Kubelet",type=string,JSONPath=`.spec.versions.kubelet`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.providerSpec.valueFrom.machineClass.name`
// +kubebuilder:printcolumn:name="ProviderID",type=string,priority=1,JSONPath=`.spec.providerID`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it becomes the machine's host name"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec.providerID) || has(self.spec.providerID) && (self.spec.providerID == oldSelf.spec.providerID || has(self.status) && has(self.status.providerIDAliases) && has(self.status.providerID) && self.spec.providerID in self.status.providerIDAliases + [self.status.providerID])",message="cannot be changed or removed once it is set",fieldPath=".spec.providerID",reason=FieldValueForbidden
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what VM this machine is, and what Node it becomes. What would need
	// another VM cannot be changed: delete the Machine, or change the template of
	// the MachineDeployment that it belongs to.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.providerSpec == oldSelf.providerSpec",message="cannot be changed on a Machine: change the template of its MachineDeployment, which replaces its machines",fieldPath=".providerSpec",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) == has(oldSelf.clusterRef) && (!has(self.clusterRef) || self.clusterRef == oldSelf.clusterRef)",message="cannot be changed on a Machine: change the template of its MachineDeployment, which replaces its machines",fieldPath=".clusterRef",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="has(self.bootstrap) == has(oldSelf.bootstrap) && (!has(self.bootstrap) || self.bootstrap == oldSelf.bootstrap)",message="cannot be changed on a Machine: change the template of its MachineDeployment, which replaces its machines",fieldPath=".bootstrap",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="self.versions == oldSelf.versions",message="cannot be changed on a Machine: change the template of its MachineDeployment, which replaces its machines",fieldPath=".versions",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.machineUID) || (has(self.machineUID) && self.machineUID == oldSelf.machineUID)",message="cannot be changed or removed once it is set: the VM is found by it",fieldPath=".machineUID",reason=FieldValueForbidden
	Spec MachineSpec `json:"spec"`

	// status is what Millwright last saw of the machine.
	// +optional
	// +kubebuilder:default={}
	Status MachineStatus `json:"status,omitzero"`
}

// MachineList is a list of Machines.
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Machine `json:"items"`
}

// MachineStatus is what Millwright last saw of a machine.
type MachineStatus struct {
	// phase sums the machine's life up in a word, for people. Programs read the
	// conditions. A machine of which nothing is known yet is Pending.
	// +optional
	// +kubebuilder:default=Pending
	Phase MachinePhase `json:"phase,omitempty"`

	// conditions of the machine: Ready sums up BootstrapReady, InstanceReady and
	// NodeReady; Drained is there only while the machine is being deleted,
	// KubeletVersionMatches only while its Node's kubelet is not what its spec asks for.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// providerID is the id of the machine's VM as its driver gave it when it was
	// asked by machineUID, namespace and name. While nothing confirms spec.providerID,
	// no Node and no VM is touched for it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// providerIDAliases are other ids of the same VM, by the driver's word. A Node
	// that has one is the machine's, and spec.providerID becomes the Node's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	ProviderIDAliases []string `json:"providerIDAliases,omitempty"`

	// nodeRef names the Node that the VM has become. Absent while there is none.
	// +optional
	NodeRef *corev1.ObjectReference `json:"nodeRef,omitempty"`

	// nodeInfo is what the Node says of what runs on it. Absent while there is no
	// Node. It is as new as the last other change of this status, or newer.
	// +optional
	NodeInfo *NodeInfo `json:"nodeInfo,omitempty"`

	// addresses of the VM, as its cloud reports them.
	// +optional
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`

	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastOperation is what was last asked of the cloud for this machine.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`

	// providerSpec is what the driver is told of this machine where that is more
	// than stands in its spec: with what it inherits from MachineClass and Cluster,
	// and with the driver's defaults as they were when the machine was made. Written
	// down before the cloud is first asked; from then on neither a change of a class
	// nor another default of the driver's reaches the machine. References to Secrets
	// stay references. Of a machine that failed because of what it inherits, before
	// anything was made for it, it is what was refused.
	// +optional
	ProviderSpec *AppliedProviderSpec `json:"providerSpec,omitempty"`

	// lastKnownState is the driver's own memory of this machine, at most 64 KiB.
	// Millwright keeps it and hands it back; it never interprets it.
	// +optional
	LastKnownState []byte `json:"lastKnownState,omitempty"`

	// errorReason and errorMessage say the same as failureReason and
	// failureMessage, for readers of the first generation of this API.
	// +optional
	ErrorReason *string `json:"errorReason,omitempty"`
	// errorMessage says the same as failureMessage.
	// +optional
	ErrorMessage *string `json:"errorMessage,omitempty"`

	// failureReason is there only when the machine is Failed for good, before it
	// had a Node: one word for programs, one of the documented reasons of the
	// condition InstanceReady.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage is there only together with failureReason: the cause in the
	// cloud's own words.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`
}

// NodeInfo is what a Node's kubelet says of what runs on the Node: a part of the Node's
// status.nodeInfo, under the same names.
type NodeInfo struct {
	// kubeletVersion is the version of the kubelet that runs, such as "v1.36.3". Where it
	// differs from spec.versions.kubelet, the condition KubeletVersionMatches says so.
	// +optional
	KubeletVersion string `json:"kubeletVersion,omitempty"`

	// containerRuntimeVersion names the container runtime, such as "containerd://2.3.1".
	// +optional
	ContainerRuntimeVersion string `json:"containerRuntimeVersion,omitempty"`

	// osImage is the operating system, as its /etc/os-release names it.
	// +optional
	OSImage string `json:"osImage,omitempty"`

	// kernelVersion is what `uname -r` says.
	// +optional
	KernelVersion string `json:"kernelVersion,omitempty"`

	// architecture of the machine, such as "amd64".
	// +optional
	Architecture string `json:"architecture,omitempty"`
}

// AppliedProviderSpec is what a driver is told of a machine.
type AppliedProviderSpec struct {
	// cloudProvider is the name of the driver.
	// +required
	CloudProvider string `json:"cloudProvider"`

	// cloudProviderSpec is what the VM is made from.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProviderSpec runtime.RawExtension `json:"cloudProviderSpec"`
}

// MachinePhase sums a machine's life up in a word.
// +kubebuilder:validation:Enum=Pending;Provisioning;Provisioned;Running;Updating;Deleting;Failed;Unknown
type MachinePhase string

// The phases of a Machine. A machine goes from Pending to Running in the order
// in which they stand here; Deleting and Failed can come at any time.
const (
	// MachinePhasePending means that nothing has been asked of the cloud yet.
	MachinePhasePending MachinePhase = "Pending"
	// MachinePhaseProvisioning is written before the cloud is first asked to
	// create the VM: from here on there may be one.
	MachinePhaseProvisioning MachinePhase = "Provisioning"
	// MachinePhaseProvisioned means that the VM runs and is expected to join.
	MachinePhaseProvisioned MachinePhase = "Provisioned"
	// MachinePhaseRunning means that the VM runs and has a Node. Whether that
	// Node is Ready stands in the condition NodeReady.
	MachinePhaseRunning MachinePhase = "Running"
	// MachinePhaseUpdating means that the VM is being changed in place.
	MachinePhaseUpdating MachinePhase = "Updating"
	// MachinePhaseDeleting means that the Machine is on its way out.
	MachinePhaseDeleting MachinePhase = "Deleting"
	// MachinePhaseFailed means that this machine will never work; its MachineSet
	// replaces it.
	MachinePhaseFailed MachinePhase = "Failed"
	// MachinePhaseUnknown means that what has become of the VM cannot be told
	// now; nothing is done to it until it can.
	MachinePhaseUnknown MachinePhase = "Unknown"
)

// LastOperation is what was last asked of a cloud for a machine.
type LastOperation struct {
	// type of the operation: Create, Update or Delete.
	// +required
	Type OperationType `json:"type"`

	// state of the operation: Processing, Succeeded or Failed.
	// +required
	State OperationState `json:"state"`

	// description says how it went, in the cloud's own words where there are any.
	// +optional
	Description string `json:"description,omitempty"`

	// lastUpdateTime is when type, state or description last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`
}

// OperationType is what was asked of a cloud.
// +kubebuilder:validation:Enum=Create;Update;Delete
type OperationType string

// What can be asked of a cloud for a machine.
const (
	OperationCreate OperationType = "Create"
	OperationUpdate OperationType = "Update"
	OperationDelete OperationType = "Delete"
)

// OperationState is how far an operation has come.
// +kubebuilder:validation:Enum=Processing;Succeeded;Failed
type OperationState string

// How far an operation can have come. Failed operations are tried again unless
// the machine's phase is Failed too.
const (
	OperationProcessing OperationState = "Processing"
	OperationSucceeded  OperationState = "Succeeded"
	OperationFailed     OperationState = "Failed"
)
