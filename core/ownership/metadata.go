package ownership

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Managed lists what on an object comes from its owner, or from a Node's Machine. All lists are
// sorted.
type Managed struct {
	// Labels and Annotations are keys.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// Taints have the form key:effect, which identifies a taint of a Node.
	Taints []string `json:"taints,omitempty"`
}

// ReadManaged reads the object's ManagedAnnotation; nothing if it is absent or cannot be read.
// Nothing is removed from such an object.
func ReadManaged(o metav1.Object) Managed {
	var m Managed
	if json.Unmarshal([]byte(o.GetAnnotations()[clusterv1alpha1.ManagedAnnotation]), &m) != nil {
		return Managed{}
	}
	return m
}

// Write sets the object's ManagedAnnotation. It adds none that would be empty.
func (m Managed) Write(o metav1.Object) {
	annotations := o.GetAnnotations()
	_, recorded := annotations[clusterv1alpha1.ManagedAnnotation]
	raw, err := json.Marshal(m)
	if err != nil || !recorded && string(raw) == "{}" {
		return
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.ManagedAnnotation] = string(raw)
	o.SetAnnotations(annotations)
}

// SyncMetadata merges labels and annotations into the object, three-way: a wanted value is set, a
// managed one that is not wanted any more is removed, and all others stay. It records what is
// managed from then on, and leaves the record of taints. The object's maps are replaced, never
// changed.
func SyncMetadata(o metav1.Object, labels, annotations map[string]string) {
	was := ReadManaged(o)
	// A record that lists itself would change each time. Machines are forgotten one by one, never
	// by a template.
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

// threeWay returns have with want in it, and without what is managed and not wanted.
func threeWay(have, want map[string]string, managed []string) map[string]string {
	merged := maps.Clone(have)
	for _, key := range managed {
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
