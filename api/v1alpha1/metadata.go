package v1alpha1

// ObjectMeta is the part of an object's metadata that a template may set.
// +kubebuilder:object:generate=false
type ObjectMeta struct {
	// creationTimestamp is accepted and ignored, so that manifests that were read
	// back from a cluster (`creationTimestamp: null`) apply unchanged.
	// It is a string because nothing ever interprets it: a value that Go could
	// not parse must not keep anybody from reading the object.
	// +optional
	// +nullable
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MaxLength=64
	CreationTimestamp *string `json:"creationTimestamp,omitempty"`

	// labels to set.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations to set.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// LabelValue is the value of a label: at most 63 characters, empty or
// beginning and ending with a letter or digit, with dashes, underscores, dots,
// letters and digits between. An alias, so that maps of it are map[string]string.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",message="a label's value must be empty or begin and end with a letter or digit, with only letters, digits, '-', '_' and '.' between"
type LabelValue = string

// AnnotationValue is the value of an annotation, at most 256 KiB.
// +kubebuilder:validation:MaxLength=262144
type AnnotationValue = string
