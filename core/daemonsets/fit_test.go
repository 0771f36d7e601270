package daemonsets

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCriticalIsWhatNodesDoNotWorkWithout(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	for name, c := range map[string]struct {
		class   string
		deleted *metav1.Time
		want    bool
	}{
		"of the class":                    {class: nodeCritical, want: true},
		"of the cluster's class":          {class: "system-cluster-critical"},
		"of none":                         {},
		"of the class and on its way out": {class: nodeCritical, deleted: &deleted},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.DaemonSet{}
			set.Spec.Template.Spec.PriorityClassName, set.DeletionTimestamp = c.class, c.deleted
			if got := isCritical(set); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestADaemonSetIsAwaitedOnlyWhereItRuns(t *testing.T) {
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	requires := func(key string, operator corev1.NodeSelectorOperator) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator}}}},
		}}}
	}
	for name, c := range map[string]struct {
		pod    corev1.PodSpec
		taints []corev1.Taint
		want   bool
	}{
		"a plain one":                         {want: true},
		"for this Node":                       {pod: corev1.PodSpec{NodeName: "n"}, want: true},
		"for another Node":                    {pod: corev1.PodSpec{NodeName: "other"}},
		"by a label that the Node has":        {pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}, want: true},
		"by another value":                    {pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "slow"}}},
		"by an affinity that fits":            {pod: corev1.PodSpec{Affinity: requires("disk", corev1.NodeSelectorOpExists)}, want: true},
		"by one that does not":                {pod: corev1.PodSpec{Affinity: requires("gpu", corev1.NodeSelectorOpExists)}},
		"by one that cannot be read":          {pod: corev1.PodSpec{Affinity: requires("disk", "Resembles")}},
		"kept away by a taint":                {taints: []corev1.Taint{{Key: "dedicated", Effect: noSchedule}}},
		"that tolerates it":                   {pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, taints: []corev1.Taint{{Key: "dedicated", Effect: noSchedule}}, want: true},
		"not kept away by a preference":       {taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectPreferNoSchedule}}, want: true},
		"nor by what the Node's state brings": {taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: noExecute}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			set, node := &appsv1.DaemonSet{}, &corev1.Node{}
			set.Spec.Template.Spec = c.pod
			node.Name, node.Labels, node.Spec.Taints = "n", map[string]string{"disk": "fast"}, c.taints
			if got := runsOn(set, node); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
