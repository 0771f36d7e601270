package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObjectMetaDeepCopy(t *testing.T) {
	original := func() *ObjectMeta {
		return &ObjectMeta{
			CreationTimestamp: new("2019-02-18T18:10:57Z"),
			Labels:            map[string]string{"a": "b"},
			Annotations:       map[string]string{"c": "d"},
		}
	}
	m := original()
	copied := m.DeepCopy()
	if diff := cmp.Diff(m, copied); diff != "" {
		t.Errorf("the copy differs (-original +copy):\n%s", diff)
	}
	*copied.CreationTimestamp = "never"
	copied.Labels["a"] = "changed"
	copied.Annotations["c"] = "changed"
	if diff := cmp.Diff(original(), m); diff != "" {
		t.Errorf("changing the copy changed the original (-before +after):\n%s", diff)
	}
}

func TestLabelSelectorDeepCopy(t *testing.T) {
	original := func() *LabelSelector {
		return &LabelSelector{
			MatchLabels: map[string]string{"a": "b"},
			MatchExpressions: []LabelSelectorRequirement{
				{Key: "c", Operator: metav1.LabelSelectorOpIn, Values: []string{"d"}},
				{Key: "e", Operator: metav1.LabelSelectorOpExists},
			},
		}
	}
	s := original()
	copied := s.DeepCopy()
	if diff := cmp.Diff(s, copied); diff != "" {
		t.Errorf("the copy differs (-original +copy):\n%s", diff)
	}
	copied.MatchLabels["a"] = "changed"
	copied.MatchExpressions[0].Values[0] = "changed"
	copied.MatchExpressions[1].Key = "changed"
	if diff := cmp.Diff(original(), s); diff != "" {
		t.Errorf("changing the copy changed the original (-before +after):\n%s", diff)
	}
}

// TestDeepCopyOfNothing wants nil to stay nil: an empty map instead would be a
// difference, and a rollout of machines for nothing.
func TestDeepCopyOfNothing(t *testing.T) {
	if copied := (*ObjectMeta)(nil).DeepCopy(); copied != nil {
		t.Errorf("nil ObjectMeta: %v", copied)
	}
	if copied := (*LabelSelector)(nil).DeepCopy(); copied != nil {
		t.Errorf("nil LabelSelector: %v", copied)
	}
	if diff := cmp.Diff(&ObjectMeta{}, (&ObjectMeta{}).DeepCopy()); diff != "" {
		t.Errorf("empty ObjectMeta (-original +copy):\n%s", diff)
	}
	if diff := cmp.Diff(&LabelSelector{}, (&LabelSelector{}).DeepCopy()); diff != "" {
		t.Errorf("empty LabelSelector (-original +copy):\n%s", diff)
	}
}
