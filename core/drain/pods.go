package drain

import (
	"math"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// sorting is what a pass does with the pods of a Node.
type sorting struct {
	// evict are evicted now, wait are waited for, and later are evicted when those before them are
	// gone.
	evict, wait, later []*corev1.Pod
}

// sortPods decides for each pod of a Node whether it is evicted, waited for, or left alone. Only
// pods with the lowest order of all that are left are evicted. Of a Node that is silent all are:
// nobody is there to end those that others wait for.
func sortPods(pods []corev1.Pod, silent bool) sorting {
	var s sorting
	lowest := int64(math.MaxInt64)
	for i := range pods {
		if !leftAlone(&pods[i]) {
			lowest = min(lowest, orderOf(&pods[i]))
		}
	}
	for i := range pods {
		pod := &pods[i]
		switch {
		case leftAlone(pod):
		case pod.DeletionTimestamp != nil || pod.Labels[clusterv1alpha1.DrainLabel] == clusterv1alpha1.DrainWaitCompleted:
			s.wait = append(s.wait, pod)
		case silent || orderOf(pod) == lowest:
			s.evict = append(s.evict, pod)
		default:
			s.later = append(s.later, pod)
		}
	}
	return s
}

// criticalOrder is the order of pods that others may depend on until they have ended, unless they
// have one of their own.
const criticalOrder = 1000

// systemCriticalPriority is the least priority of a pod that the cluster depends on. Source:
// SystemCriticalPriority in pkg/apis/scheduling of Kubernetes.
const systemCriticalPriority = 2_000_000_000

// orderOf says when the pod is evicted: after all with a lower order are gone.
func orderOf(pod *corev1.Pod) int64 {
	if order, err := strconv.ParseInt(pod.Annotations[clusterv1alpha1.DrainOrderAnnotation], 10, 32); err == nil {
		return order
	}
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCriticalPriority {
		return criticalOrder
	}
	return 0
}

// leftAlone says whether the pod goes with its Node.
func leftAlone(pod *corev1.Pod) bool {
	if hasEnded(pod) {
		return true
	}
	if pod.Labels[clusterv1alpha1.DrainLabel] == clusterv1alpha1.DrainSkip {
		return true
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	controller := metav1.GetControllerOf(pod)
	return controller != nil && (controller.Kind == "DaemonSet" || toleratesCordon(pod))
}

// hasEnded says whether no container of the pod runs any more, or will.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// cordon is the taint that the control plane gives a Node that is cordoned.
var cordon = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// toleratesCordon says whether the scheduler may place the pod on a Node that is cordoned. A
// toleration without a key, or without an effect, is one of all keys, or of all effects.
func toleratesCordon(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &cordon, false)
	})
}

// Silent says whether node-lifecycle hears nothing of the Node's kubelet: the kubelet's Lease has
// run out. That says nothing of why: after an outage of the API server it is so for Nodes that
// live.
func Silent(node *corev1.Node) bool {
	return ReadyCondition(node).Status == corev1.ConditionUnknown
}

// ReadyCondition is the Node's condition Ready; the zero value where it has none.
func ReadyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}
