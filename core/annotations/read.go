package annotations

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// IsOn says whether the object carries the annotation with any value but "false".
func IsOn(o metav1.Object, annotation string) bool {
	value, ok := o.GetAnnotations()[annotation]
	return ok && value != "false"
}

// IsPaused says whether somebody asked for the object to be left alone.
func IsPaused(o metav1.Object) bool {
	return IsOn(o, clusterv1alpha1.PausedAnnotation)
}

// IsPreserved says whether the Machine is to be kept after it has failed.
func IsPreserved(o metav1.Object) bool {
	return IsOn(o, clusterv1alpha1.PreserveMachineAnnotation)
}

// IsMarkedForDeletion says whether the Machine is to go first when its set gets smaller. Any value
// counts.
func IsMarkedForDeletion(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[clusterv1alpha1.DeleteMachineAnnotation]
	return ok
}

// DrainsOneByOne says whether the drain evicts pods with volumes one at a time. A value that cannot
// be read asks for nothing.
func DrainsOneByOne(o metav1.Object) bool {
	return o.GetAnnotations()[clusterv1alpha1.DrainPodsWithVolumesAnnotation] == clusterv1alpha1.DrainOneAtATime
}

// SkipsDrain says whether the Machine is to be deleted without a drain. Any value counts.
func SkipsDrain(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[clusterv1alpha1.ExcludeNodeDrainingAnnotation]
	return ok
}

// SkipsVolumes says whether the deletion of the Machine waits for no volume. Any value counts.
func SkipsVolumes(o metav1.Object) bool {
	_, ok := o.GetAnnotations()[clusterv1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation]
	return ok
}

// Priority is the Machine's among its set's; 0 if there is none, or none that can be read.
func Priority(o metav1.Object) int32 {
	return integer(o, clusterv1alpha1.MachinePriorityAnnotation)
}

// Hooks lists, for people, the annotations whose keys begin with the prefix, and the owners that
// their values name; empty for none.
func Hooks(o metav1.Object, prefix string) string {
	var hooks []string
	for key, owner := range o.GetAnnotations() {
		switch {
		case !strings.HasPrefix(key, prefix):
		case owner == "":
			hooks = append(hooks, key+", which names no owner")
		default:
			hooks = append(hooks, key+" of "+owner)
		}
	}
	slices.Sort(hooks)
	return strings.Join(hooks, "; ")
}

// InitialReplicas is the size of a deployment or set that has no spec.replicas: its autoscaler's
// minimum if that is annotated, else 1.
func InitialReplicas(o metav1.Object) int32 {
	if _, ok := o.GetAnnotations()[clusterv1alpha1.NodeGroupMinSizeAnnotation]; !ok {
		return 1
	}
	return max(integer(o, clusterv1alpha1.NodeGroupMinSizeAnnotation), 0)
}

// IsAutoscaled says whether cluster-autoscaler is given sizes for the deployment or set.
func IsAutoscaled(o metav1.Object) bool {
	_, hasMin := o.GetAnnotations()[clusterv1alpha1.NodeGroupMinSizeAnnotation]
	_, hasMax := o.GetAnnotations()[clusterv1alpha1.NodeGroupMaxSizeAnnotation]
	return hasMin || hasMax
}

// integer is 0 if the annotation is absent or no integer.
func integer(o metav1.Object, annotation string) int32 {
	value, ok := o.GetAnnotations()[annotation]
	if !ok {
		return 0 // Nearly always. An error of ParseInt would be allocated.
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}
