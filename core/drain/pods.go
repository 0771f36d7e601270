package drain

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sorting is what a pass does with the pods of a Node.
type sorting struct {
	evict, wait []*corev1.Pod
}

// sortPods decides for each pod of a Node whether it is evicted, waited for, or left alone.
func sortPods(pods []corev1.Pod) sorting {
	var s sorting
	for i := range pods {
		pod := &pods[i]
		switch {
		case leftAlone(pod):
		case pod.DeletionTimestamp == nil:
			s.evict = append(s.evict, pod)
		default:
			s.wait = append(s.wait, pod)
		}
	}
	return s
}

// leftAlone says whether the pod goes with its Node.
func leftAlone(pod *corev1.Pod) bool {
	if hasEnded(pod) {
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
