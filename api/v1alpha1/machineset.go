package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineSet keeps a number of Machines made from one template. It is mostly
// made by a MachineDeployment, but also works alone. Labels, annotations, taints
// and timeouts of its template reach the machines that are there; any other change
// of it affects only machines made afterwards.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=ms,categories=millwright
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the first generation of the Cluster API under its original group"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Provider",type=string,priority=1,JSONPath=`.spec.template.spec.providerSpec.value.cloudProvider`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.spec.providerSpec.valueFrom.machineClass.name`
// +kubebuilder:printcolumn:name="Kubelet",type=string,priority=1,JSONPath=`.spec.template.spec.versions.kubelet`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it becomes the value of a label"
type MachineSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says how many Machines there are to be, and made from what.
	// +required
	Spec MachineSetSpec `json:"spec"`

	// status is what Millwright last saw of the set's Machines.
	// +optional
	Status MachineSetStatus `json:"status,omitzero"`
}

// MachineSetList is a list of MachineSets.
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineSet `json:"items"`
}

// MachineSetSpec says how many Machines there are to be, and made from what.
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, k in self.template.?metadata.?labels.orValue({}) && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="must carry every label of spec.selector.matchLabels, else the set would not find its own Machines",fieldPath=".template.metadata.labels"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, e.operator == 'In' ? e.key in self.template.?metadata.?labels.orValue({}) && has(e.values) && self.template.metadata.labels[e.key] in e.values : e.operator == 'NotIn' ? !(e.key in self.template.?metadata.?labels.orValue({})) || !has(e.values) || !(self.template.metadata.labels[e.key] in e.values) : e.operator == 'Exists' ? e.key in self.template.?metadata.?labels.orValue({}) : !(e.key in self.template.?metadata.?labels.orValue({})))",message="must satisfy every condition of spec.selector.matchExpressions, else the set would not find its own Machines",fieldPath=".template.metadata.labels"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.providerSpec.value.network) || !has(self.template.spec.providerSpec.value.network.cidr) || self.template.spec.providerSpec.value.network.cidr.size() == 0 || !has(self.replicas) || self.replicas <= 1",message="must be at most 1: all machines of this template would have the address in its providerSpec.value.network.cidr",fieldPath=".replicas"
type MachineSetSpec struct {
	// replicas is how many Machines there are to be. Left out, it is set to 1 when
	// the set is made, and dropping the field later keeps the size.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`

	// selector says which Machines belong to this set. It cannot be changed and
	// must match the labels of the template.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: Machines made before would be left without a set; make a new one instead",reason=FieldValueForbidden
	Selector LabelSelector `json:"selector"`

	// template that new Machines are made from.
	// +required
	Template MachineTemplateSpec `json:"template"`

	// minReadySeconds is how long a machine must have been Ready without
	// interruption to count as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds int32 `json:"minReadySeconds"`

	// deletePolicy decides which machine goes first among those that nothing else
	// tells apart: Random, Newest or Oldest.
	// +optional
	// +kubebuilder:default=Random
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`

	// remediation bounds how failed and unhealthy machines are replaced.
	// +optional
	Remediation *MachineRemediation `json:"remediation,omitempty"`
}

// MachineRemediation bounds how failed and unhealthy machines are replaced.
type MachineRemediation struct {
	// maxInFlight is how many replacements may be under way at once: a number, or a
	// percentage of replicas, rounded up. Left out, it is 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 1 && int(self) <= 100000 : string(self).matches('^([1-9][0-9]?|100)%$')",message="must be a number from 1 to 100000, or a percentage from '1%' to '100%'"
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`
}

// DeletePolicy decides which machine goes first when a set gets smaller, among
// machines that nothing else tells apart.
// +kubebuilder:validation:Enum=Random;Newest;Oldest
type DeletePolicy string

// The delete policies.
const (
	// DeletePolicyRandom prefers no machine, which spreads the ages.
	DeletePolicyRandom DeletePolicy = "Random"
	// DeletePolicyNewest deletes the youngest machine first.
	DeletePolicyNewest DeletePolicy = "Newest"
	// DeletePolicyOldest deletes the oldest machine first.
	DeletePolicyOldest DeletePolicy = "Oldest"
)

// MachineSetStatus is what Millwright last saw of a set's Machines.
type MachineSetStatus struct {
	// replicas is how many Machines there are, those being deleted included.
	// +optional
	Replicas int32 `json:"replicas"`

	// fullyLabeledReplicas is how many Machines carry all labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas"`

	// readyReplicas is how many Machines are Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is how many Machines have been Ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selector is spec.selector as a string, for autoscalers that use /scale.
	// +optional
	Selector string `json:"selector,omitempty"`

	// nextIndex is a number that ends no Machine's name yet: those below it are
	// used up, also by Machines that are gone, so that no name is ever used twice.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NextIndex int64 `json:"nextIndex,omitempty"`

	// remediation is there while failed machines were replaced in vain.
	// +optional
	Remediation *MachineSetRemediation `json:"remediation,omitempty"`

	// conditions of the set: Available; ReplicaFailure, RemediationAllowed, Frozen
	// and Paused are there only while something is in the way.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineSetRemediation is how often failed machines of a set were replaced since
// one came up. The pause before the next doubles each time.
type MachineSetRemediation struct {
	// attempts is how often machines were replaced in vain.
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempts int32 `json:"attempts"`

	// newest is when the newest machine was created that was there at the last
	// attempt. As soon as one that was created later is available, this all ends.
	// +optional
	Newest metav1.Time `json:"newest,omitzero"`
}
