package drain

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podServer answers lists of pods, from its cache or for certain, and refuses some evictions.
type podServer struct {
	cached, actual []string
	// terminating are pods with a deletionTimestamp; refusing and gone say how evictions are
	// answered.
	terminating, refusing, gone []string
	// lists says how each list was asked for, evicted what was evicted.
	lists, evicted []string
}

func (s *podServer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		name := strings.Split(r.URL.Path, "/")[6]
		answer := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: 201}
		switch {
		case slices.Contains(s.refusing, name):
			answer.Status, answer.Code, answer.Reason, answer.Message = metav1.StatusFailure, 403, metav1.StatusReasonForbidden, "no"
		case slices.Contains(s.gone, name):
			answer.Status, answer.Code, answer.Reason = metav1.StatusFailure, 404, metav1.StatusReasonNotFound
		default:
			s.evicted = append(s.evicted, name)
		}
		write(w, int(answer.Code), answer)
		return
	}
	query := r.URL.Query()
	s.lists = append(s.lists, query.Get("resourceVersion")+" "+query.Get("fieldSelector"))
	names := s.actual
	if query.Get("resourceVersion") == "0" {
		names = s.cached
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for _, name := range names {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "u"}}
		if slices.Contains(s.terminating, name) {
			pod.DeletionTimestamp = new(metav1.Now())
		}
		list.Items = append(list.Items, pod)
	}
	write(w, http.StatusOK, list)
}

// TestAPassReadsFromTheCacheAndOnceForCertain: pods are read from the API server's cache, and once
// more for certain when nothing seems left. What is refused for one pod keeps nothing from being
// told of the others.
func TestAPassReadsFromTheCacheAndOnceForCertain(t *testing.T) {
	const cache, certain = "0 spec.nodeName=n", " spec.nodeName=n"
	for name, c := range map[string]struct {
		server podServer
		silent bool
		want   Progress
		lists  []string
	}{
		"a pod that the cache shows": {
			server: podServer{cached: []string{"p"}, actual: []string{"p"}},
			want:   Progress{Evicted: []string{"a/p"}}, lists: []string{cache},
		},
		"a pod that the cache does not show": {
			server: podServer{actual: []string{"p"}},
			want:   Progress{Evicted: []string{"a/p"}}, lists: []string{cache, certain},
		},
		"a pod that only the cache shows": {
			server: podServer{cached: []string{"p"}, gone: []string{"p"}}, lists: []string{cache, certain},
		},
		"nothing": {lists: []string{cache, certain}},
		"a pod of a silent Node that the cache does not show": {
			server: podServer{cached: []string{"p"}, actual: []string{"p", "q"}, terminating: []string{"p"}}, silent: true,
			want: Progress{Evicted: []string{"a/q"}, Waiting: []string{"a/p"}}, lists: []string{cache, certain},
		},
		"one that is waited for": {
			server: podServer{cached: []string{"p"}, actual: []string{"p"}, terminating: []string{"p"}},
			want:   Progress{Waiting: []string{"a/p"}}, lists: []string{cache},
		},
		"one that is refused": {
			server: podServer{cached: []string{"p", "q", "r"}, terminating: []string{"r"}, refusing: []string{"q"}},
			want:   Progress{Evicted: []string{"a/p"}, Waiting: []string{"a/r"}, Refused: []Blocker{{Pod: "a/q", Why: "no"}}},
			lists:  []string{cache},
		},
		"one that is refused, on a silent Node": {
			server: podServer{cached: []string{"q"}, refusing: []string{"q"}}, silent: true,
			want: Progress{Refused: []Blocker{{Pod: "a/q", Why: "no"}}}, lists: []string{cache},
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			if c.silent {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
			}
			got, err := drainerOf(t, c.server.serve).Pass(t.Context(), node, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.lists, c.server.lists); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
}
