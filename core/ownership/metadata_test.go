package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

func TestMetadataIsMergedThreeWay(t *testing.T) {
	type values = map[string]string
	const note = clusterv1alpha1.ManagedAnnotation
	for _, tc := range []struct {
		name                           string
		labels, annotations            values
		wantLabels, wantAnnotations    values
		resultLabels, resultAnnotation values
	}{
		{
			name:       "on a new object all that is wanted is set and noted",
			wantLabels: values{"b": "1", "a": "2"}, wantAnnotations: values{"c": "3"},
			resultLabels:     values{"b": "1", "a": "2"},
			resultAnnotation: values{"c": "3", note: `{"labels":["a","b"],"annotations":["c"]}`},
		}, {
			name:       "what was ours goes, what is foreign stays",
			labels:     values{"ours": "1", "foreign": "2"},
			wantLabels: values{"new": "3"}, annotations: values{note: `{"labels":["ours"]}`},
			resultLabels:     values{"foreign": "2", "new": "3"},
			resultAnnotation: values{note: `{"labels":["new"]}`},
		}, {
			name:   "a value of ours that somebody changed is set back",
			labels: values{"ours": "theirs"}, wantLabels: values{"ours": "1"}, annotations: values{note: `{"labels":["ours"]}`},
			resultLabels: values{"ours": "1"}, resultAnnotation: values{note: `{"labels":["ours"]}`},
		}, {
			name:   "an object without a note loses nothing",
			labels: values{"old": "1"}, annotations: values{"x": "y"},
			resultLabels: values{"old": "1"}, resultAnnotation: values{"x": "y"},
		}, {
			name:   "nor does one whose note nobody can read",
			labels: values{"old": "1"}, annotations: values{note: "nonsense"},
			resultLabels: values{"old": "1"}, resultAnnotation: values{note: "nonsense"},
		}, {
			name:   "a note among what is wanted is not taken for one",
			labels: values{}, wantAnnotations: values{"c": "3", note: "x"},
			resultLabels: values{}, resultAnnotation: values{"c": "3", note: `{"annotations":["c"]}`},
		}, {
			name:   "the last thing of ours goes, and the taints' note stays",
			labels: values{"ours": "1"}, annotations: values{note: `{"labels":["ours"],"taints":["t:NoSchedule"]}`},
			resultLabels: values{}, resultAnnotation: values{note: `{"taints":["t:NoSchedule"]}`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := &metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}
			for range 2 {
				SyncMetadata(o, tc.wantLabels, tc.wantAnnotations)
				diff := cmp.Diff(tc.resultLabels, o.Labels) + cmp.Diff(tc.resultAnnotation, o.Annotations)
				if diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}
