package drain

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sorting is what a pass does with the pods of a Node.
type sorting struct {
	evict, wait []*corev1.Pod
}

// sortPods decides for each pod of a Node whether it is evicted, waited for, or left alone.
func sortPods(pods []corev1.Pod, unreachable bool) sorting {
	var s sorting
	for i := range pods {
		pod := &pods[i]
		switch {
		case leftAlone(pod):
		case pod.DeletionTimestamp == nil:
			s.evict = append(s.evict, pod)
		case !unreachable:
			s.wait = append(s.wait, pod)
		}
	}
	return s
}

// leftAlone says whether the pod goes with its Node.
func leftAlone(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	controller := metav1.GetControllerOf(pod)
	return controller != nil && controller.Kind == "DaemonSet"
}

// unreachable says whether no kubelet reports for the Node: node-lifecycle says so once its lease has run out.
func unreachable(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}
