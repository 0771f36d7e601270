package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSortPods: who is evicted, who is waited for, and who goes with the Node.
func TestSortPods(t *testing.T) {
	now := metav1.Now()
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = &now }
	for name, c := range map[string]struct {
		pod         func(*corev1.Pod)
		unreachable bool
		evict, wait int
	}{
		"a pod":                        {pod: func(*corev1.Pod) {}, evict: 1},
		"a bare pod that is not Ready": {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, evict: 1},
		"one that has ended":           {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		"one that has failed":          {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"a mirror":                     {pod: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }},
		"one of a DaemonSet": {pod: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		}},
		"one of a ReplicaSet": {pod: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}}
		}, evict: 1},
		"one that is terminating":                 {pod: terminating, wait: 1},
		"one that is terminating, and no kubelet": {pod: terminating, unreachable: true},
		"one that nobody has told yet":            {pod: func(*corev1.Pod) {}, unreachable: true, evict: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			c.pod(&pod)
			got := sortPods([]corev1.Pod{pod}, c.unreachable)
			if len(got.evict) != c.evict || len(got.wait) != c.wait {
				t.Errorf("evicts %d, waits for %d; want %d, %d", len(got.evict), len(got.wait), c.evict, c.wait)
			}
		})
	}
}

// TestUnreachable: a Node is unreachable when node-lifecycle has said so, not when it is merely not Ready.
func TestUnreachable(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: false, corev1.ConditionFalse: false, corev1.ConditionUnknown: true} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
		if got := unreachable(node); got != want {
			t.Errorf("Ready %s: %t, want %t", status, got, want)
		}
	}
	if unreachable(&corev1.Node{}) {
		t.Error("a Node without a condition Ready counts as unreachable")
	}
}

// TestProgress: what is done, and how it reads.
func TestProgress(t *testing.T) {
	blocked := []Blocker{{"a/4", "why"}, {"a/2", "why"}, {"a/3", "why"}, {"a/1", "why"}}
	for name, c := range map[string]struct {
		progress        Progress
		done            bool
		blocked, remain string
	}{
		"nothing left":                 {progress: Progress{}, done: true},
		"one just evicted":             {progress: Progress{Evicted: []string{"a/1"}}, remain: "a/1"},
		"one just evicted, no kubelet": {progress: Progress{Evicted: []string{"a/1"}, Unreachable: true}, done: true, remain: "a/1"},
		"one that ends":                {progress: Progress{Waiting: []string{"a/2", "a/1"}}, remain: "a/1, a/2"},
		"many blocked": {
			progress: Progress{Blocked: blocked}, blocked: "pod a/1: why; pod a/2: why; pod a/3: why; and 1 more", remain: "a/1, a/2, a/3, and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.progress.Done(); got != c.done {
				t.Errorf("done %t, want %t", got, c.done)
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
