package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineHealthCheck says when Machines of its namespace count as unhealthy. Their
// MachineSets replace those that do, a few at a time: see spec.remediation there. Several
// may select the same Machine: it is replaced when one of them says so.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mhc,categories=millwright
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the first generation of the Cluster API under its original group"
// +kubebuilder:printcolumn:name="Expected",type=integer,JSONPath=`.status.expectedMachines`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.currentHealthy`
// +kubebuilder:printcolumn:name="MaxUnhealthy",type=string,JSONPath=`.spec.maxUnhealthy`
// +kubebuilder:printcolumn:name="Allowed",type=string,JSONPath=`.status.conditions[?(@.type=="RemediationAllowed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="RemediationAllowed")].message`
type MachineHealthCheck struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which Machines are checked, and by what.
	// +required
	Spec MachineHealthCheckSpec `json:"spec"`

	// status is what Millwright last saw of the Machines that are checked.
	// +optional
	Status MachineHealthCheckStatus `json:"status,omitzero"`
}

// MachineHealthCheckList is a list of MachineHealthChecks.
// +kubebuilder:object:root=true
type MachineHealthCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineHealthCheck `json:"items"`
}

// MachineHealthCheckSpec says which Machines are checked, and by what.
// +kubebuilder:validation:XValidation:rule="has(self.nodeStartupTimeout) || has(self.unhealthyNodeConditions) && self.unhealthyNodeConditions.size() > 0 || has(self.unhealthyMachineConditions) && self.unhealthyMachineConditions.size() > 0",message="must not be empty, nothing would ever be unhealthy: set it, unhealthyMachineConditions or nodeStartupTimeout",fieldPath=".unhealthyNodeConditions",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnhealthy) || !has(self.unhealthyRange)",message="must not be set beside maxUnhealthy: set one of them",fieldPath=".unhealthyRange"
type MachineHealthCheckSpec struct {
	// selector says by their labels which Machines are checked.
	// +required
	Selector LabelSelector `json:"selector"`

	// unhealthyNodeConditions are conditions of a Node. A machine whose Node has one of
	// them for its timeout is unhealthy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	UnhealthyNodeConditions []UnhealthyCondition `json:"unhealthyNodeConditions,omitempty"`

	// unhealthyMachineConditions are conditions of the Machine itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(c, !(c.type in ['HealthCheckSucceeded', 'OwnerRemediated']))",message="must not have the conditions that health checks themselves set: HealthCheckSucceeded and OwnerRemediated"
	UnhealthyMachineConditions []UnhealthyCondition `json:"unhealthyMachineConditions,omitempty"`

	// nodeStartupTimeout is how long a VM that runs may be without a Node. A machine has
	// such a limit of its own, too; the shorter one counts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && self != '' && duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be hours, minutes and seconds between 1s and 8760h, such as '10m'"
	NodeStartupTimeout *metav1.Duration `json:"nodeStartupTimeout,omitempty"`

	// maxUnhealthy is how many of the machines that should be healthy may be unhealthy: a
	// number, or a percentage, rounded down. With more none is replaced. Left out, there
	// is no limit but the manager's --max-unhealthy.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 100000 : string(self).matches('^(0|[1-9][0-9]?|100)%$')",message="must be a number from 0 to 100000, or a percentage from '0%' to '100%'"
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`

	// unhealthyRange is how many machines have to be unhealthy for any to be replaced, the
	// least and the most, such as "[1-3]". It stands in place of maxUnhealthy.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\[[0-9]{1,6}-[0-9]{1,6}\\\\]$') && int(self.substring(1, self.indexOf('-'))) <= int(self.substring(self.indexOf('-') + 1, self.size() - 1))",message="must be the least and the most number of unhealthy machines, such as '[1-3]'"
	UnhealthyRange string `json:"unhealthyRange,omitempty"`
}

// UnhealthyCondition is a condition that makes a machine unhealthy when it lasts.
type UnhealthyCondition struct {
	// type of the condition, such as Ready.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// status that is unhealthy: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// timeout is for how long. Time in which nobody could have seen the condition change
	// does not count.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && self != '' && duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be hours, minutes and seconds between 1s and 8760h, such as '5m'"
	Timeout metav1.Duration `json:"timeout"`
}

// MachineHealthCheckStatus is what Millwright last saw of the Machines that are checked.
type MachineHealthCheckStatus struct {
	// expectedMachines is how many machines should be healthy: those that are selected,
	// without those that are coming up, being deleted, paused or another system's.
	// +optional
	ExpectedMachines int32 `json:"expectedMachines"`

	// currentHealthy is how many of them are healthy.
	// +optional
	CurrentHealthy int32 `json:"currentHealthy"`

	// unhealthyMachines are machines that are unhealthy, the first 32 by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	UnhealthyMachines []UnhealthyMachine `json:"unhealthyMachines,omitempty"`

	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: RemediationAllowed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// UnhealthyMachine is a machine that a health check found unhealthy.
type UnhealthyMachine struct {
	// name of the Machine.
	// +required
	Name string `json:"name"`

	// reason of its condition HealthCheckSucceeded.
	// +required
	Reason string `json:"reason"`

	// remediation is the reason of its condition OwnerRemediated: WaitingForRemediation
	// where its set is to replace it, else why it is spared.
	// +required
	Remediation string `json:"remediation"`
}
