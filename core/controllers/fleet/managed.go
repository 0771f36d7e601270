package fleet

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Managed says what on an object comes from the object above it. All lists are sorted.
type Managed struct {
	// Labels and Annotations are keys.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// Taints are of the form key:effect, which is what tells the taints of a Node apart.
	Taints []string `json:"taints,omitempty"`
}

// ReadManaged reads what the object says of itself. An object that says nothing, or nothing that can be read, has
// nothing that could be removed from it.
func ReadManaged(o metav1.Object) Managed {
	var m Managed
	if json.Unmarshal([]byte(o.GetAnnotations()[clusterv1alpha1.ManagedAnnotation]), &m) != nil {
		return Managed{}
	}
	return m
}

// Write notes m on the object. To an object that manages nothing, and never did, nothing is added.
func (m Managed) Write(o metav1.Object) {
	annotations := o.GetAnnotations()
	_, noted := annotations[clusterv1alpha1.ManagedAnnotation]
	raw, err := json.Marshal(m)
	if err != nil || !noted && string(raw) == "{}" {
		return
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.ManagedAnnotation] = string(raw)
	o.SetAnnotations(annotations)
}

// SyncMetadata brings the object's labels and annotations up to what is wanted, three-way: a wanted value is set, one that
// was ours and is not wanted any more is removed, and what is somebody else's stays. It notes what is ours from then on,
// and leaves the object's Taints note as it is. The object is changed only where something differs, its maps never.
func SyncMetadata(o metav1.Object, labels, annotations map[string]string) {
	was := ReadManaged(o)
	// The note would say something else each time, and who is to be forgotten is said of one Machine at a time.
	for _, never := range []string{clusterv1alpha1.ManagedAnnotation, clusterv1alpha1.ForgetAnnotation} {
		if _, ok := annotations[never]; ok {
			annotations = maps.Clone(annotations)
			delete(annotations, never)
		}
	}
	o.SetLabels(threeWay(o.GetLabels(), labels, was.Labels))
	o.SetAnnotations(threeWay(o.GetAnnotations(), annotations, was.Annotations))
	now := Managed{Labels: keys(labels), Annotations: keys(annotations), Taints: was.Taints}
	if !slices.Equal(was.Labels, now.Labels) || !slices.Equal(was.Annotations, now.Annotations) {
		now.Write(o)
	}
}

// threeWay returns have with want in it and without what is only ours.
func threeWay(have, want map[string]string, ours []string) map[string]string {
	merged := maps.Clone(have)
	for _, key := range ours {
		if _, wanted := want[key]; !wanted {
			delete(merged, key)
		}
	}
	if merged == nil && len(want) > 0 {
		merged = map[string]string{}
	}
	maps.Copy(merged, want)
	return merged
}

func keys(of map[string]string) []string {
	return slices.Sorted(maps.Keys(of))
}
