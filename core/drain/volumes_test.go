package drain

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volumeServer has pods, VolumeAttachments and claims. Each claim's volume is called pv- and the
// claim's name. It evicts pods.
type volumeServer struct {
	attachments []storagev1.VolumeAttachment
	pods        []corev1.Pod
	// forbidden is what cannot be read: claims by name, all pods, all attachments. Claims in gone
	// are not there.
	forbidden, gone []string
	// answers are those to evictions, by the pod's name, where these are not granted.
	answers map[string]int32
	// asked are the requests, in their order, by the last part of their paths; evictions by what
	// they evict.
	asked []string
}

func (s *volumeServer) serve(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if name == "eviction" {
		s.evict(w, path.Base(path.Dir(r.URL.Path)))
		return
	}
	s.asked = append(s.asked, name)
	refuse := func(code int32, reason metav1.StatusReason) {
		write(w, int(code), metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "no",
		})
	}
	switch {
	case slices.Contains(s.forbidden, name):
		refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
	case name == "volumeattachments":
		list := storagev1.VolumeAttachmentList{TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachmentList"}}
		list.Items = s.attachments
		write(w, http.StatusOK, list)
	case name == "pods":
		write(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: s.pods})
	case slices.Contains(s.gone, name):
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	default:
		write(w, http.StatusOK, corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			Spec:     corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
		})
	}
}

func (s *volumeServer) evict(w http.ResponseWriter, pod string) {
	s.asked = append(s.asked, "evict "+pod)
	answer := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}
	if code := s.answers[pod]; code != 0 {
		answer.Status, answer.Code, answer.Message = metav1.StatusFailure, code, "no"
		answer.Reason = map[int32]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		}[code]
	}
	write(w, int(answer.Code), answer)
}

// attachment is one of a PersistentVolume, or where that is empty of an inline volume.
func attachment(volume string, change ...func(*storagev1.VolumeAttachment)) storagev1.VolumeAttachment {
	a := storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume}}
	if volume != "" {
		a.Spec.Source.PersistentVolumeName = &volume
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// user is a pod that uses a claim.
func user(name, claim string, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "config"}, {Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func ofDaemonSet(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
}

func completed(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func deleted(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func withEphemeral(p *corev1.Pod) {
	p.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
}

// TestLIFE9_WhichVolumesCount shows which of a Node's volumes have to be detached.
func TestLIFE9_WhichVolumesCount(t *testing.T) {
	both := []storagev1.VolumeAttachment{attachment("pv-b"), attachment("pv-a")}
	attachments := []string{"volumeattachments"}
	looked := func(claims ...string) []string { return append([]string{"volumeattachments", "pods"}, claims...) }
	for name, c := range map[string]struct {
		server  volumeServer
		skipped bool
		want    string
		fails   string
		asked   []string
	}{
		"none is attached": {server: volumeServer{pods: []corev1.Pod{user("p", "a")}}, asked: attachments},
		"those of pods that are gone are named in order": {
			server: volumeServer{attachments: both}, want: "pv-a; pv-b", asked: looked(),
		},
		"three are named": {
			server: volumeServer{attachments: append([]storagev1.VolumeAttachment{attachment("pv-d"), attachment("pv-e"), attachment("pv-c")}, both...)},
			want:   "pv-a; pv-b; pv-c; and 2 more", asked: looked(),
		},
		"with why they cannot be detached": {
			server: volumeServer{attachments: []storagev1.VolumeAttachment{attachment("pv-a", func(a *storagev1.VolumeAttachment) {
				a.Status.DetachError = &storagev1.VolumeError{Message: "the cloud is away"}
			})}}, want: "pv-a: the cloud is away", asked: looked(),
		},
		"one that is being detached counts": {
			server: volumeServer{attachments: []storagev1.VolumeAttachment{attachment("pv-a", func(a *storagev1.VolumeAttachment) {
				a.DeletionTimestamp, a.Finalizers = new(metav1.Now()), []string{"external-attacher/csi"}
			})}}, want: "pv-a", asked: looked(),
		},
		"an inline one counts": {
			server: volumeServer{attachments: []storagev1.VolumeAttachment{attachment("")}}, want: "VolumeAttachment csi-", asked: looked(),
		},
		"one of a DaemonSet's pod does not": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", ofDaemonSet)}}, want: "pv-b", asked: looked("a"),
		},
		"nor one of a static pod": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", func(p *corev1.Pod) {
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			})}}, want: "pv-b", asked: looked("a"),
		},
		"nor one of a pod that comes back": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{
				user("p", "a", tolerating(replicated, corev1.Toleration{Key: unschedulable, Operator: exists})),
			}}, want: "pv-b", asked: looked("a"),
		},
		"nor one of a pod that has ended": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", completed)}}, want: "pv-b", asked: looked("a"),
		},
		"one of a pod that has ended because it was evicted does": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", completed, deleted)}}, want: "pv-a; pv-b", asked: looked(),
		},
		"one of a pod that is still there does": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", deleted), user("q", "b")}}, want: "pv-a; pv-b", asked: looked(),
		},
		"also one that such a pod shares with a DaemonSet's": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", ofDaemonSet), user("q", "a", deleted)}}, want: "pv-a; pv-b", asked: looked(),
		},
		"an ephemeral one of a DaemonSet's pod does not": {
			server: volumeServer{attachments: []storagev1.VolumeAttachment{attachment("pv-p-data")}, pods: []corev1.Pod{user("p", "", ofDaemonSet, withEphemeral)}},
			asked:  looked("p-data"),
		},
		"a claim that is gone is of no volume": {
			server: volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a", ofDaemonSet)}, gone: []string{"a"}}, want: "pv-a; pv-b", asked: looked("a"),
		},
		"claims that cannot be read are told of, and all others are read": {
			server: volumeServer{
				attachments: both, pods: []corev1.Pod{user("p", "a", ofDaemonSet), user("q", "b", ofDaemonSet)}, forbidden: []string{"a"},
			},
			want: "pv-a", fails: "PersistentVolumeClaim a/a", asked: looked("a", "b"),
		},
		"unless no volume is left that could be theirs": {
			server: volumeServer{
				attachments: both[:1], pods: []corev1.Pod{user("p", "a", ofDaemonSet), user("q", "b", ofDaemonSet)}, forbidden: []string{"a"},
			}, asked: looked("a", "b"),
		},
		"so are attachments": {
			server: volumeServer{forbidden: []string{"volumeattachments"}}, fails: "VolumeAttachments of node n", asked: attachments,
		},
		"where the drain was skipped, those of pods that are left do not count": {
			server:  volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a"), user("q", "b", ofDaemonSet)}},
			skipped: true, asked: looked("a", "b"),
		},
		"those of pods that are terminating do": {
			server:  volumeServer{attachments: both, pods: []corev1.Pod{user("p", "a"), user("q", "b", deleted)}},
			skipped: true, want: "pv-b", asked: looked("a"),
		},
		"and those of pods that are gone, but no inline ones": {
			server: volumeServer{attachments: append(both, attachment(""))}, skipped: true, want: "pv-a; pv-b", asked: looked(),
		},
		"pods that cannot be read are told of": {
			server: volumeServer{attachments: both, forbidden: []string{"pods"}}, want: "pv-a; pv-b", fails: "pods of node n", asked: looked(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drainerOf(t, c.server.serve)
			d.client = uncached{Client: d.client, live: d.live}
			got, err := d.Attached(t.Context(), "n", c.skipped)
			if got != c.want {
				t.Errorf("%q is attached, want %q", got, c.want)
			}
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
			if diff := cmp.Diff(c.asked, c.server.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// uncached lists from the API server what the Drainer takes from its cache.
type uncached struct {
	client.Client
	live client.Reader
}

func (c uncached) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return c.live.List(ctx, list)
}
