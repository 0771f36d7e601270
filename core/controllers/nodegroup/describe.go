package nodegroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// The annotations that cluster-autoscaler reads, by the names of its provider clusterapi. Those of
// cpu and memory go together: without both it does not scale from zero.
const (
	cpu      = clusterv1alpha1.CapacityCPUAnnotation
	memory   = clusterv1alpha1.CapacityMemoryAnnotation
	disk     = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
	maxPods  = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	gpuType  = "capacity.cluster-autoscaler.kubernetes.io/gpu-type"
	gpuCount = "capacity.cluster-autoscaler.kubernetes.io/gpu-count"
	labels   = "capacity.cluster-autoscaler.kubernetes.io/labels"
	taints   = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// all are those that this package writes.
var all = []string{cpu, memory, disk, maxPods, gpuType, gpuCount, labels, taints}

// gpus are the resources that are GPUs.
var gpus = []string{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"}

// isWanted says whether the deployment lacks what the autoscaler needs: nobody has written it, or
// this package has for another template. of tells templates apart.
func isWanted(md *clusterv1alpha1.MachineDeployment, of string) bool {
	if was, ours := md.Annotations[clusterv1alpha1.CapacityOfAnnotation]; ours {
		return was != of
	}
	_, hasCPU := md.Annotations[cpu]
	_, hasMemory := md.Annotations[memory]
	return !hasCPU && !hasMemory
}

// mirrorPause has the autoscaler leave alone a deployment that it takes part in and that is paused.
// It says whether it has changed annotations. What somebody else has written stays.
func mirrorPause(md *clusterv1alpha1.MachineDeployment) (changed bool) {
	const key, ours = clusterv1alpha1.ClusterAPIPausedAnnotation, clusterv1alpha1.PausedAnnotation
	was, isThere := md.Annotations[key]
	switch isWanted := annotations.IsAutoscaled(md) && annotations.IsPaused(md); {
	case isWanted && !isThere:
		metav1.SetMetaDataAnnotation(&md.ObjectMeta, key, ours)
	case !isWanted && isThere && was == ours:
		delete(md.Annotations, key)
	default:
		return false
	}
	return true
}

// identify tells apart what is asked about: the driver, and the spec with all that it inherits.
func identify(provider string, spec []byte) string {
	sum := sha256.Sum256([]byte(provider + "\n" + string(spec)))
	return hex.EncodeToString(sum[:8])
}

// describe writes a template into the annotations of a deployment. What was ours and is not said
// any more goes. A value that somebody has written stays.
func describe(md *clusterv1alpha1.MachineDeployment, t *driverv1alpha1.InstanceTemplate, of string) {
	_, ours := md.Annotations[clusterv1alpha1.CapacityOfAnnotation]
	said := valuesOf(t)
	for _, key := range all {
		if _, taken := md.Annotations[key]; taken && !ours {
			continue
		}
		delete(md.Annotations, key)
		if said[key] != "" {
			metav1.SetMetaDataAnnotation(&md.ObjectMeta, key, said[key])
		}
	}
	metav1.SetMetaDataAnnotation(&md.ObjectMeta, clusterv1alpha1.CapacityOfAnnotation, of)
}

// valuesOf returns the values of annotations; empty for those that a template does not speak of.
func valuesOf(t *driverv1alpha1.InstanceTemplate) map[string]string {
	capacity := t.GetCapacity()
	values := map[string]string{
		cpu: capacity["cpu"], memory: capacity["memory"], disk: capacity["ephemeral-storage"], maxPods: capacity["pods"],
		labels: labelsOf(t), taints: taintsOf(t),
	}
	for _, gpu := range gpus {
		if count := capacity[gpu]; count != "" && count != "0" {
			values[gpuType], values[gpuCount] = gpu, count
			break
		}
	}
	return values
}

// labelsOf is a list key=value,…, those that every Node has of itself included.
func labelsOf(t *driverv1alpha1.InstanceTemplate) string {
	of := maps.Clone(t.GetLabels())
	if of == nil {
		of = map[string]string{}
	}
	for key, value := range map[string]string{
		corev1.LabelArchStable: t.GetArchitecture(), corev1.LabelOSStable: t.GetOperatingSystem(), corev1.LabelInstanceTypeStable: t.GetInstanceType(),
	} {
		of[key] = cmp.Or(of[key], value)
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if of[key] != "" {
			words = append(words, key+"="+of[key])
		}
	}
	return strings.Join(words, ",")
}

// taintsOf is a list key=value:effect,….
func taintsOf(t *driverv1alpha1.InstanceTemplate) string {
	var words []string
	for _, taint := range t.GetTaints() {
		if effect, known := taintEffects[taint.GetEffect()]; known {
			words = append(words, fmt.Sprintf("%s=%s:%s", taint.GetKey(), taint.GetValue(), effect))
		}
	}
	return strings.Join(words, ",")
}

var taintEffects = map[driverv1alpha1.TaintEffect]corev1.TaintEffect{
	driverv1alpha1.TaintEffect_TAINT_EFFECT_NO_SCHEDULE:        corev1.TaintEffectNoSchedule,
	driverv1alpha1.TaintEffect_TAINT_EFFECT_PREFER_NO_SCHEDULE: corev1.TaintEffectPreferNoSchedule,
	driverv1alpha1.TaintEffect_TAINT_EFFECT_NO_EXECUTE:         corev1.TaintEffectNoExecute,
}
