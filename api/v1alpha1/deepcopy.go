package v1alpha1

import (
	"maps"
	"slices"
)

// The generator of the other DeepCopy functions knows no maps whose values are
// an alias; LabelValue has to be one for maps of it to be map[string]string. The
// two types that hold such maps are therefore copied by hand. A nil map stays nil.

// DeepCopyInto copies m into out, which must not be nil.
func (m *ObjectMeta) DeepCopyInto(out *ObjectMeta) {
	*out = *m
	if m.CreationTimestamp != nil {
		created := *m.CreationTimestamp
		out.CreationTimestamp = &created
	}
	out.Labels = maps.Clone(m.Labels)
	out.Annotations = maps.Clone(m.Annotations)
}

// DeepCopy returns a copy that shares nothing with m; nil for nil.
func (m *ObjectMeta) DeepCopy() *ObjectMeta {
	if m == nil {
		return nil
	}
	out := new(ObjectMeta)
	m.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies s into out, which must not be nil.
func (s *LabelSelector) DeepCopyInto(out *LabelSelector) {
	*out = *s
	out.MatchLabels = maps.Clone(s.MatchLabels)
	out.MatchExpressions = slices.Clone(s.MatchExpressions)
	for i := range out.MatchExpressions {
		out.MatchExpressions[i].Values = slices.Clone(s.MatchExpressions[i].Values)
	}
}

// DeepCopy returns a copy that shares nothing with s; nil for nil.
func (s *LabelSelector) DeepCopy() *LabelSelector {
	if s == nil {
		return nil
	}
	out := new(LabelSelector)
	s.DeepCopyInto(out)
	return out
}
