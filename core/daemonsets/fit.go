package daemonsets

import (
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeCritical is the priority class of pods that a Node does not work without. Source:
// https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
const nodeCritical = "system-node-critical"

// transientTaints is what keys of taints begin with that the control plane gives a Node for its
// conditions, and takes away by itself.
const transientTaints = "node.kubernetes.io/"

// isCritical says whether Nodes wait for the DaemonSet's pods.
func isCritical(set *appsv1.DaemonSet) bool {
	return set.DeletionTimestamp.IsZero() && set.Spec.Template.Spec.PriorityClassName == nodeCritical
}

// runsOn says whether the DaemonSet controller runs a pod on the Node, now or when the Node's
// transient taints are gone. Source: NodeShouldRunDaemonPod in pkg/controller/daemon of Kubernetes.
func runsOn(set *appsv1.DaemonSet, node *corev1.Node) bool {
	spec := &set.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return false
	}
	// Of a selector that cannot be read the DaemonSet controller, too, takes no notice.
	if fits, _ := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(node); !fits {
		return false
	}
	_, isKeptAway := schedulingv1.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, spec.Tolerations, keepsAway, false)
	return !isKeptAway
}

// keepsAway says whether a taint keeps pods away for longer than its Node's conditions last.
func keepsAway(taint *corev1.Taint) bool {
	return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, transientTaints)
}
