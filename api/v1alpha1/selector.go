package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// LabelSelector says which Machines belong to a set, or are checked. It reads and behaves like
// the selector of a Deployment; it is a type of its own because its strings are
// bounded, without which the API server could not check it against the template.
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="must not be empty, it would select every Machine of the namespace: set matchLabels to labels that the Machines which are meant carry",reason=FieldValueRequired
// +kubebuilder:object:generate=false
type LabelSelector struct {
	// matchLabels are labels that a Machine must carry with exactly these values.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are further conditions on a Machine's labels; all must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is one condition on a Machine's labels.
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : !has(self.values) || self.values.size() == 0",message="operators In and NotIn need at least one value, Exists and DoesNotExist take none",fieldPath=".values"
type LabelSelectorRequirement struct {
	// key of the label that the condition is about.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values that the label is compared with: at least one for In and NotIn, none
	// for Exists and DoesNotExist.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Values []LabelValue `json:"values,omitempty"`
}

// AsSelector returns the selector in the form that matches labels and filters
// lists. An empty selector matches nothing, although the API server should have
// refused it: everything is the more dangerous reading. The error says which
// requirement is malformed, which can only be a key the schema could not check.
func (s *LabelSelector) AsSelector() (labels.Selector, error) {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	requirements := make([]metav1.LabelSelectorRequirement, 0, len(s.MatchExpressions))
	for _, r := range s.MatchExpressions {
		requirements = append(requirements, metav1.LabelSelectorRequirement(r))
	}
	return metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchLabels:      s.MatchLabels,
		MatchExpressions: requirements,
	})
}
