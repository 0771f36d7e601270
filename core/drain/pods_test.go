package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const (
	unschedulable = "node.kubernetes.io/unschedulable"
	exists        = corev1.TolerationOpExists
)

func replicated(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}
}

// tolerating makes a pod one that tolerates something.
func tolerating(pod func(*corev1.Pod), t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		pod(p)
		p.Spec.Tolerations = []corev1.Toleration{{Key: "other", Operator: exists}, t}
	}
}

// TestSortPods: who is evicted, who is waited for, and who goes with the Node.
func TestSortPods(t *testing.T) {
	now := metav1.Now()
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = &now }
	for name, c := range map[string]struct {
		pod         func(*corev1.Pod)
		evict, wait int
	}{
		"one that asks to be skipped": {pod: func(p *corev1.Pod) { p.Labels = map[string]string{clusterv1alpha1.DrainLabel: "skip"} }},
		"one that is to end by itself": {
			pod: func(p *corev1.Pod) { p.Labels = map[string]string{clusterv1alpha1.DrainLabel: "wait-completed"} }, wait: 1,
		},

		"a pod":                        {pod: func(*corev1.Pod) {}, evict: 1},
		"a bare pod that is not Ready": {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, evict: 1},
		"one with local data":          {pod: withoutClaims, evict: 1},
		"one that has ended":           {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		"one that has failed":          {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"a mirror":                     {pod: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }},
		"one of a DaemonSet": {pod: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		}},
		"one of a ReplicaSet":                   {pod: replicated, evict: 1},
		"one that is terminating":               {pod: terminating, wait: 1},
		"one that comes back":                   {pod: tolerating(replicated, corev1.Toleration{Key: unschedulable, Operator: exists})},
		"one that tolerates everything":         {pod: tolerating(replicated, corev1.Toleration{Operator: exists})},
		"one that tolerates what keeps it away": {pod: tolerating(replicated, corev1.Toleration{Operator: exists, Effect: "NoSchedule"})},
		"one that tolerates the taint's value":  {pod: tolerating(replicated, corev1.Toleration{Key: unschedulable})},
		"one that comes back, terminating": {pod: func(p *corev1.Pod) {
			tolerating(replicated, corev1.Toleration{Key: unschedulable, Operator: exists})(p)
			terminating(p)
		}},
		"one that tolerates another value": {
			pod: tolerating(replicated, corev1.Toleration{Key: unschedulable, Operator: "Equal", Value: "x"}), evict: 1,
		},
		"one that tolerates another effect": {
			pod: tolerating(replicated, corev1.Toleration{Key: unschedulable, Operator: exists, Effect: "NoExecute"}), evict: 1,
		},
		"one that tolerates another taint": {
			pod: tolerating(replicated, corev1.Toleration{Key: "node.kubernetes.io/not-ready", Operator: exists}), evict: 1,
		},
		"one that tolerates it, but has nobody who makes it again": {
			pod: tolerating(func(*corev1.Pod) {}, corev1.Toleration{Key: unschedulable, Operator: exists}), evict: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			c.pod(&pod)
			got := sortPods([]corev1.Pod{pod}, false)
			if len(got.evict) != c.evict || len(got.wait) != c.wait {
				t.Errorf("evicts %d, waits for %d; want %d, %d", len(got.evict), len(got.wait), c.evict, c.wait)
			}
		})
	}
}

// TestPodsGoInTheirOrder: those with the lowest order, and the others once these are gone.
func TestPodsGoInTheirOrder(t *testing.T) {
	now := metav1.Now()
	pod := func(name string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		change(&p)
		return p
	}
	ordered := func(order string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{clusterv1alpha1.DrainOrderAnnotation: order} }
	}
	critical := pod("critical", func(p *corev1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) })
	first, plain, typo := pod("first", ordered("-1")), pod("plain", func(*corev1.Pod) {}), pod("typo", ordered("soon"))
	ending := pod("ending", func(p *corev1.Pod) { p.DeletionTimestamp = &now })
	for name, c := range map[string]struct {
		pods         []corev1.Pod
		silent       bool
		evict, later string
	}{
		"one that goes first":            {pods: []corev1.Pod{critical, plain, first}, evict: "first", later: "critical plain"},
		"an order that cannot be read":   {pods: []corev1.Pod{plain, typo, critical}, evict: "plain typo", later: "critical"},
		"one before them has yet to end": {pods: []corev1.Pod{ending, critical}, later: "critical"},
		"nothing else is left":           {pods: []corev1.Pod{critical}, evict: "critical"},
		"nobody ends those before":       {pods: []corev1.Pod{ending, critical, first}, silent: true, evict: "critical first"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sortPods(c.pods, c.silent)
			names := func(pods []*corev1.Pod) string {
				var all []string
				for _, p := range pods {
					all = append(all, p.Name)
				}
				return strings.Join(all, " ")
			}
			if names(s.evict) != c.evict || names(s.later) != c.later {
				t.Errorf("evicted are %q, later %q; want %q, %q", names(s.evict), names(s.later), c.evict, c.later)
			}
		})
	}
}

// TestSilent: a Node is silent when node-lifecycle has said so, not when it is merely not Ready.
func TestSilent(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
		if got := Silent(node); got != want {
			t.Errorf("Ready %s: %t, want %t", status, got, want)
		}
	}
	if Silent(&corev1.Node{}) {
		t.Error("a Node without a condition Ready counts as silent")
	}
}

// TestProgress: what is done, and how it reads.
func TestProgress(t *testing.T) {
	blocked := []Blocker{{"a/4", "why"}, {"a/2", "why"}, {"a/3", "why"}, {"a/1", "why"}}
	for name, c := range map[string]struct {
		progress                 Progress
		done, terminating        bool
		blocked, refused, remain string
	}{
		"nothing left":        {progress: Progress{}, done: true, terminating: true},
		"one just evicted":    {progress: Progress{Evicted: []string{"a/1"}}, terminating: true, remain: "a/1"},
		"one that ends":       {progress: Progress{Waiting: []string{"a/2", "a/1"}}, terminating: true, remain: "a/1, a/2"},
		"one that goes later": {progress: Progress{Later: []string{"a/5"}, Waiting: []string{"a/6"}}, remain: "a/5, a/6"},
		"one refused": {
			progress: Progress{Refused: []Blocker{{"a/3", "why"}}, Waiting: []string{"a/4"}}, refused: "pod a/3: why", remain: "a/3, a/4",
		},
		"many blocked": {
			progress: Progress{Blocked: blocked}, blocked: "pod a/1: why; pod a/2: why; pod a/3: why; and 1 more", remain: "a/1, a/2, a/3, and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.progress.Done(); got != c.done {
				t.Errorf("done %t, want %t", got, c.done)
			}
			if got := c.progress.Terminating(); got != c.terminating {
				t.Errorf("only terminating pods are left %t, want %t", got, c.terminating)
			}
			if got := c.progress.RefusedBy(); got != c.refused {
				t.Errorf("refused by %q, want %q", got, c.refused)
			}
			if got := c.progress.BlockedBy(); got != c.blocked {
				t.Errorf("blocked by %q, want %q", got, c.blocked)
			}
			if got := c.progress.Remaining(); got != c.remain {
				t.Errorf("remaining %q, want %q", got, c.remain)
			}
		})
	}
}
