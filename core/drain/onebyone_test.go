package drain

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// withoutClaims makes a pod one that has a volume and no claim.
func withoutClaims(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func ordered(order string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{clusterv1alpha1.DrainOrderAnnotation: order} }
}

// TestLIFE10_PodsWithVolumesGoOneAtATime shows what one pass does with the pods of a Node where
// those with volumes go one after the other.
func TestLIFE10_PodsWithVolumesGoOneAtATime(t *testing.T) {
	const none = "volumeattachments"
	attachments := func(volumes ...string) []storagev1.VolumeAttachment {
		var all []storagev1.VolumeAttachment
		for _, v := range volumes {
			all = append(all, attachment(v))
		}
		return all
	}
	started := func(then ...string) []string { return append([]string{"pods", none}, then...) }
	two := []corev1.Pod{user("q", "b"), user("p", "a")}
	for name, c := range map[string]struct {
		server volumeServer
		silent bool
		want   Progress
		fails  string
		asked  []string
	}{
		"the first goes alone": {
			server: volumeServer{attachments: attachments("pv-a", "pv-b"), pods: two},
			want:   Progress{Evicted: []string{"a/p"}, Later: []string{"a/q"}, Next: "pods to end: a/p"}, asked: started("a", "b", "evict p"),
		},
		"with all pods that have none": {
			server: volumeServer{pods: append(two, user("x", "", withoutClaims))},
			want:   Progress{Evicted: []string{"a/x", "a/p"}, Later: []string{"a/q"}, Next: "pods to end: a/p"}, asked: []string{"pods", "evict x", none, "evict p"},
		},
		"the last one leaves nobody to wait": {
			server: volumeServer{pods: two[:1]}, want: Progress{Evicted: []string{"a/q"}}, asked: started("evict q"),
		},
		"the second waits while the first is terminating": {
			server: volumeServer{attachments: attachments("pv-b"), pods: []corev1.Pod{user("p", "a", deleted), user("q", "b")}},
			want:   Progress{Waiting: []string{"a/p"}, Later: []string{"a/q"}, Next: "pods to end: a/p"}, asked: []string{"pods"},
		},
		"also while it is there with nothing that runs": {
			server: volumeServer{pods: []corev1.Pod{user("p", "a", deleted, completed), user("q", "b")}},
			want:   Progress{Later: []string{"a/q"}, Next: "pods to end: a/p"}, asked: []string{"pods"},
		},
		"one without volumes that is terminating holds nobody up": {
			server: volumeServer{pods: []corev1.Pod{user("p", "", deleted, withoutClaims), user("q", "b")}},
			want:   Progress{Waiting: []string{"a/p"}, Evicted: []string{"a/q"}}, asked: started("evict q"),
		},
		"the second waits while the first one's volume is attached": {
			server: volumeServer{attachments: attachments("pv-a", "pv-b"), pods: []corev1.Pod{user("q", "b"), user("r", "c")}},
			want:   Progress{Later: []string{"a/q", "a/r"}, Next: "volumes to be detached: pv-a"}, asked: started("b", "c"),
		},
		"with why it cannot be detached": {
			server: volumeServer{attachments: []storagev1.VolumeAttachment{attachment("pv-a", func(a *storagev1.VolumeAttachment) {
				a.Status.DetachError = &storagev1.VolumeError{Message: "the cloud is away"}
			})}, pods: []corev1.Pod{user("q", "b")}},
			want: Progress{Later: []string{"a/q"}, Next: "volumes to be detached: pv-a: the cloud is away"}, asked: started("b"),
		},
		"a volume that stays with its pod holds nobody up": {
			server: volumeServer{attachments: attachments("pv-a", "pv-b"), pods: []corev1.Pod{user("p", "a", ofDaemonSet), user("q", "b")}},
			want:   Progress{Evicted: []string{"a/q"}}, asked: started("a", "b", "evict q"),
		},
		"nor one that the next pod shares": {
			server: volumeServer{attachments: attachments("pv-b"), pods: two[:1]}, want: Progress{Evicted: []string{"a/q"}}, asked: started("b", "evict q"),
		},
		"nor an inline one, whose pod nobody can tell": {
			server: volumeServer{attachments: attachments(""), pods: two[:1]}, want: Progress{Evicted: []string{"a/q"}}, asked: started("b", "evict q"),
		},
		"where the first is refused the second goes": {
			server: volumeServer{pods: two, answers: map[string]int32{"p": http.StatusForbidden}},
			want:   Progress{Evicted: []string{"a/q"}, Refused: []Blocker{{Pod: "a/p", Why: "no"}}}, asked: started("evict p", "evict q"),
		},
		"where the first is gone the second waits for what it leaves": {
			server: volumeServer{pods: two, answers: map[string]int32{"p": http.StatusNotFound}},
			want:   Progress{Later: []string{"a/q"}, Next: "pods to end: a/p"}, asked: started("evict p"),
		},
		"each order by itself": {
			server: volumeServer{pods: []corev1.Pod{user("p", "a", ordered("1")), user("q", "b"), user("r", "c")}},
			want:   Progress{Evicted: []string{"a/q"}, Later: []string{"a/p", "a/r"}, Next: "pods to end: a/q"}, asked: started("evict q"),
		},
		"ephemeral volumes count": {
			server: volumeServer{pods: []corev1.Pod{user("p", "", withEphemeral), user("q", "", withEphemeral)}},
			want:   Progress{Evicted: []string{"a/p"}, Later: []string{"a/q"}, Next: "pods to end: a/p"}, asked: started("evict p"),
		},
		"of a silent Node all go at once": {
			server: volumeServer{attachments: attachments("pv-x"), pods: two[:1]}, silent: true,
			want: Progress{Evicted: []string{"a/q"}}, asked: []string{"pods", "evict q"},
		},
		"claims that cannot be read": {
			server: volumeServer{attachments: attachments("pv-a"), pods: append(two, user("x", "", withoutClaims)), forbidden: []string{"b"}},
			want:   Progress{Evicted: []string{"a/x"}}, fails: "PersistentVolumeClaim a/b", asked: []string{"pods", "evict x", none, "a", "b"},
		},
		"attachments that cannot be read": {
			server: volumeServer{pods: two, forbidden: []string{none}}, fails: "VolumeAttachments of node n", asked: started(),
		},
		"nothing": {asked: []string{"pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			if c.silent {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			}
			d := drainerOf(t, c.server.serve)
			d.client = uncached{Client: d.client, live: d.live}
			got, err := d.Pass(t.Context(), node, true)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.asked, c.server.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLIFE10_AnEvictionWithoutAnAnswerEndsTheTurn: nobody knows whether the pod goes, so no other
// one with volumes is evicted in this pass.
func TestLIFE10_AnEvictionWithoutAnAnswerEndsTheTurn(t *testing.T) {
	server := volumeServer{pods: []corev1.Pod{user("p", "a"), user("q", "b")}}
	var evictions atomic.Int32
	d := drainerOf(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			evictions.Add(1)
			panic(http.ErrAbortHandler)
		}
		server.serve(w, r)
	})
	d.client = uncached{Client: d.client, live: d.live}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := d.Pass(t.Context(), node, true); err == nil || !strings.Contains(err.Error(), "evict pod a/p") {
		t.Errorf("error %v", err)
	}
	if n := evictions.Load(); n != 1 {
		t.Errorf("%d evictions were asked for", n)
	}
}
