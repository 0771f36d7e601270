package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeployment declares how many machines there are to be and from which
// template, as a Deployment does for pods. A change of the template's providerSpec,
// clusterRef or versions replaces the machines step by step; labels, annotations,
// taints and timeouts reach the machines that are there.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=md,categories=millwright
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the first generation of the Cluster API under its original group"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Provider",type=string,priority=1,JSONPath=`.spec.template.spec.providerSpec.value.cloudProvider`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.spec.providerSpec.valueFrom.machineClass.name`
// +kubebuilder:printcolumn:name="Kubelet",type=string,priority=1,JSONPath=`.spec.template.spec.versions.kubelet`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: it becomes the value of a label"
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says how many machines there are to be, made from what, and how
	// changes are rolled out.
	// +required
	Spec MachineDeploymentSpec `json:"spec"`

	// status is what Millwright last saw of the deployment's machines.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitzero"`
}

// MachineDeploymentList is a list of MachineDeployments.
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec says how many machines there are to be, made from what,
// and how changes are rolled out.
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, k in self.template.?metadata.?labels.orValue({}) && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="must carry every label of spec.selector.matchLabels, else the deployment would not find its own Machines",fieldPath=".template.metadata.labels"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, e.operator == 'In' ? e.key in self.template.?metadata.?labels.orValue({}) && has(e.values) && self.template.metadata.labels[e.key] in e.values : e.operator == 'NotIn' ? !(e.key in self.template.?metadata.?labels.orValue({})) || !has(e.values) || !(self.template.metadata.labels[e.key] in e.values) : e.operator == 'Exists' ? e.key in self.template.?metadata.?labels.orValue({}) : !(e.key in self.template.?metadata.?labels.orValue({})))",message="must satisfy every condition of spec.selector.matchExpressions, else the deployment would not find its own Machines",fieldPath=".template.metadata.labels"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.providerSpec.value.network) || !has(self.template.spec.providerSpec.value.network.cidr) || self.template.spec.providerSpec.value.network.cidr.size() == 0 || !has(self.replicas) || self.replicas <= 1",message="must be at most 1: all machines of this template would have the address in its providerSpec.value.network.cidr",fieldPath=".replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.providerSpec.value.network) || !has(self.template.spec.providerSpec.value.network.cidr) || self.template.spec.providerSpec.value.network.cidr.size() == 0 || self.strategy.type != 'RollingUpdate' || has(self.strategy.rollingUpdate) && has(self.strategy.rollingUpdate.maxSurge) && (self.strategy.rollingUpdate.maxSurge == 0 || self.strategy.rollingUpdate.maxSurge == '0%')",message="must be 0, with a maxUnavailable of 1, or the strategy Recreate: old and new machine would both have the address in the template's providerSpec.value.network.cidr",fieldPath=".strategy.rollingUpdate.maxSurge"
type MachineDeploymentSpec struct {
	// replicas is how many machines there are to be. Left out, it is set to 1 (or
	// the annotated minimum of an autoscaler) when the deployment is made, and
	// dropping the field later, to hand it to an autoscaler, keeps the size.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`

	// selector says which Machines belong to this deployment. It cannot be changed
	// and must match the labels of the template.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: Machines made before would be left without a deployment; make a new one instead",reason=FieldValueForbidden
	Selector LabelSelector `json:"selector"`

	// template that the machines are made from. A change of its providerSpec or
	// versions replaces them.
	// +required
	Template MachineTemplateSpec `json:"template"`

	// strategy says how machines of an old template are replaced.
	// +optional
	// +kubebuilder:default={}
	Strategy MachineDeploymentStrategy `json:"strategy,omitzero"`

	// minReadySeconds is how long a machine must have been Ready without
	// interruption to count as available.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds int32 `json:"minReadySeconds"`

	// paused stops a rollout, and keeps a changed template from being rolled out,
	// until it is false again. Scaling works meanwhile, in proportion of what there
	// is of each template.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// rolloutAfter is a time: once it has passed, machines that were made before it
	// are replaced as if the template had changed. `kubectl millwright rollout restart` sets
	// it to now.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// progressDeadlineSeconds is how long a rollout may go without progress before
	// the condition Progressing is False with reason ProgressDeadlineExceeded. The
	// rollout goes on all the same. Time in which it is paused, or in which no
	// manager was there, does not count.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// revisionHistoryLimit is how many MachineSets of former templates are kept
	// after their last machine is gone.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// MachineDeploymentStrategy says how machines of an old template are replaced.
type MachineDeploymentStrategy struct {
	// type of the strategy. RollingUpdate replaces machines step by step within the
	// bounds of rollingUpdate. Recreate makes no new machine before all old ones are
	// gone. OnDelete replaces an old machine when somebody deletes it, once it is
	// gone.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type MachineDeploymentStrategyType `json:"type,omitempty"`

	// rollingUpdate bounds a rolling update. With another strategy there is no surge,
	// and of these fields only deletePolicy counts.
	// +optional
	// +kubebuilder:default={maxSurge:1,maxUnavailable:0}
	RollingUpdate *MachineRollingUpdate `json:"rollingUpdate,omitempty"`

	// remediation bounds how failed and unhealthy machines are replaced.
	// +optional
	Remediation *MachineRemediation `json:"remediation,omitempty"`
}

// MachineDeploymentStrategyType names a strategy.
// +kubebuilder:validation:Enum=RollingUpdate;Recreate;OnDelete
type MachineDeploymentStrategyType string

// The strategies.
const (
	// RollingUpdateStrategy replaces machines step by step.
	RollingUpdateStrategy MachineDeploymentStrategyType = "RollingUpdate"
	// RecreateStrategy makes no new machine before all old ones are gone.
	RecreateStrategy MachineDeploymentStrategyType = "Recreate"
	// OnDeleteStrategy replaces an old machine when somebody deletes it.
	OnDeleteStrategy MachineDeploymentStrategyType = "OnDelete"
)

// MachineRollingUpdate bounds a rolling update.
// +kubebuilder:validation:XValidation:rule="!((self.maxSurge == 0 || self.maxSurge == '0%') && (self.maxUnavailable == 0 || self.maxUnavailable == '0%'))",message="must not be 0 while maxSurge is 0 too, no machine could ever be replaced: set one of them to at least 1",fieldPath=".maxUnavailable"
type MachineRollingUpdate struct {
	// maxSurge is how many machines there may be beyond replicas during a rolling
	// update: a number, or a percentage of replicas, rounded up. Machines that
	// are still being deleted count.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 100000 : string(self).matches('^(0|[1-9][0-9]{0,3})%$')",message="must be a number from 0 to 100000, or a percentage such as '25%'"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is how many machines may be missing from replicas during a
	// rolling update: a number, or a percentage of replicas, rounded down.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 100000 : string(self).matches('^(0|[1-9][0-9]?|100)%$')",message="must be a number from 0 to 100000, or a percentage from '0%' to '100%'"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// deletePolicy decides which machine goes first among those that nothing else
	// tells apart: Random, Newest or Oldest.
	// +optional
	// +kubebuilder:default=Random
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`
}

// MachineDeploymentStatus is what Millwright last saw of a deployment's machines.
type MachineDeploymentStatus struct {
	// replicas is how many Machines there are, of any template, those being
	// deleted included.
	// +optional
	Replicas int32 `json:"replicas"`

	// updatedReplicas is how many Machines are made from the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// readyReplicas is how many Machines are Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is how many Machines have been Ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// unavailableReplicas is how many available machines are missing from replicas.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selector is spec.selector as a string, for autoscalers that use /scale.
	// +optional
	Selector string `json:"selector,omitempty"`

	// lastProgressTime is when the rollout last got on: when it began or was resumed,
	// or a number of machines changed for the better. The progress deadline counts
	// from it.
	// +optional
	LastProgressTime metav1.Time `json:"lastProgressTime,omitzero"`

	// collisionCount is how often the name of a new MachineSet turned out to be
	// taken; the next name is made from it.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions of the deployment: Available, Progressing, ReplicaFailure and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
