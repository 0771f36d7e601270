package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// explainBudgets adds to what blocks pods which PodDisruptionBudgets will never allow their
// eviction. Where budgets cannot be read, the API server's words have to do.
func (d *Drainer) explainBudgets(ctx context.Context, pods []*corev1.Pod, blocked []Blocker) {
	budgets := map[string][]policyv1.PodDisruptionBudget{}
	for i := range blocked {
		at := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return key(p) == blocked[i].Pod })
		if at < 0 {
			continue
		}
		pod := pods[at]
		if _, read := budgets[pod.Namespace]; !read {
			var list policyv1.PodDisruptionBudgetList
			if err := d.live.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
				return
			}
			budgets[pod.Namespace] = list.Items
		}
		if why := neverAllowed(pod, budgets[pod.Namespace]); why != "" {
			blocked[i].Why = strings.TrimSuffix(blocked[i].Why, ".") + ". " + why
		}
	}
}

// neverAllowed says why the budgets of the pod's namespace will never allow its eviction, unless
// somebody changes them; empty where they may.
func neverAllowed(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	var mine []*policyv1.PodDisruptionBudget
	for i := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budgets[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			mine = append(mine, &budgets[i])
		}
	}
	if len(mine) > 1 {
		names := make([]string, 0, len(mine))
		for _, b := range mine {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		return "Its PodDisruptionBudgets are " + strings.Join(names, ", ") + ": the API server evicts no pod that has several, so delete all but one."
	}
	if len(mine) == 0 {
		return ""
	}
	s := &mine[0].Status
	if s.ObservedGeneration != mine[0].Generation || s.ExpectedPods == 0 || s.DesiredHealthy < s.ExpectedPods {
		return ""
	}
	return fmt.Sprintf("PodDisruptionBudget %s wants %d of its %d pods to be healthy, so it never allows an eviction: let it be content with fewer, or run more.",
		mine[0].Name, s.DesiredHealthy, s.ExpectedPods)
}
