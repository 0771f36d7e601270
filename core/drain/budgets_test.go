package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBudgetsThatNeverAllowAnEvictionAreNamed: waiting helps with others.
func TestBudgetsThatNeverAllowAnEvictionAreNamed(t *testing.T) {
	budget := func(name, app string, desired, expected int32) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
			Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DesiredHealthy: desired, ExpectedPods: expected},
		}
	}
	stale := budget("stale", "web", 2, 2)
	stale.Generation = 2
	broken := budget("broken", "web", 2, 2)
	broken.Spec.Selector.MatchLabels = map[string]string{"no label at all!": ""}
	for name, c := range map[string]struct {
		budgets []policyv1.PodDisruptionBudget
		want    string
	}{
		"none":                       {},
		"another application's":      {budgets: []policyv1.PodDisruptionBudget{budget("db", "db", 2, 2)}},
		"one that can be kept":       {budgets: []policyv1.PodDisruptionBudget{budget("web", "web", 1, 2)}},
		"one that wants all":         {[]policyv1.PodDisruptionBudget{budget("web", "web", 2, 2)}, "PodDisruptionBudget web wants 2 of its 2 pods"},
		"one that wants more":        {[]policyv1.PodDisruptionBudget{budget("web", "web", 3, 2)}, "wants 3 of its 2 pods"},
		"one that has not been read": {budgets: []policyv1.PodDisruptionBudget{stale}},
		"one without pods":           {budgets: []policyv1.PodDisruptionBudget{budget("web", "web", 0, 0)}},
		"one that nobody can read":   {budgets: []policyv1.PodDisruptionBudget{broken}},
		"two": {
			[]policyv1.PodDisruptionBudget{budget("b", "web", 1, 2), budget("db", "db", 1, 2), budget("a", "web", 1, 2)}, "Its PodDisruptionBudgets are a, b:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
			if got := neverAllowed(pod, c.budgets); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
