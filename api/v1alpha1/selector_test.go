package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestAsSelector(t *testing.T) {
	in := LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"cpu", "gpu"}}
	absent := LabelSelectorRequirement{Key: "legacy", Operator: metav1.LabelSelectorOpDoesNotExist}
	for _, test := range []struct {
		name     string
		selector LabelSelector
		labels   labels.Set
		matches  bool
	}{
		{"empty selects nothing, not everything", LabelSelector{}, labels.Set{"a": "b"}, false},
		{"empty selects nothing without labels either", LabelSelector{}, labels.Set{}, false},
		{"label", LabelSelector{MatchLabels: map[string]string{"a": "b"}}, labels.Set{"a": "b", "c": "d"}, true},
		{"label of another value", LabelSelector{MatchLabels: map[string]string{"a": "b"}}, labels.Set{"a": "c"}, false},
		{"expression", LabelSelector{MatchExpressions: []LabelSelectorRequirement{in}}, labels.Set{"tier": "gpu"}, true},
		{"expression of another value", LabelSelector{MatchExpressions: []LabelSelectorRequirement{in}}, labels.Set{"tier": "tpu"}, false},
		{"all expressions must hold", LabelSelector{MatchExpressions: []LabelSelectorRequirement{in, absent}}, labels.Set{"tier": "gpu", "legacy": ""}, false},
		{"labels and expressions", LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []LabelSelectorRequirement{in}}, labels.Set{"a": "b", "tier": "cpu"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			selector, err := test.selector.AsSelector()
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches(test.labels); got != test.matches {
				t.Errorf("%q matches %v: got %v, want %v", selector, test.labels, got, test.matches)
			}
		})
	}
}

func TestAsSelectorNamesWhatIsWrong(t *testing.T) {
	for name, selector := range map[string]LabelSelector{
		"key":      {MatchLabels: map[string]string{"not a key": "b"}},
		"operator": {MatchExpressions: []LabelSelectorRequirement{{Key: "a", Operator: "Is"}}},
		"values":   {MatchExpressions: []LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := selector.AsSelector(); err == nil {
				t.Errorf("accepted as %q", got)
			}
		})
	}
}
