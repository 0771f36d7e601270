package machine

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/daemonsets"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// checkDaemonSets looks whether the pods of critical DaemonSets run on the Node.
func (s *machineScope) checkDaemonSets(ctx context.Context, critical *daemonsets.Reader) error {
	waiting, err := critical.Waiting(ctx, s.node)
	if ctx.Err() != nil {
		return err
	}
	s.state.DaemonSets = &lifecycle.DaemonSets{Waiting: strings.Join(waiting, ", ")}
	if err != nil {
		s.state.DaemonSets = &lifecycle.DaemonSets{Error: err.Error()}
	}
	return nil
}

// startupTaints are the taints of the Machine's Node that core takes away once the Node can take
// pods, and does not set there either. The kubelet registers with them: see bootstrap.Config. A
// Machine on its way out has none.
func (u userData) startupTaints(ctx context.Context, m *clusterv1alpha1.Machine) ([]corev1.Taint, error) {
	if !m.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return u.configs.StartupTaints(ctx, m)
}

// withoutTaints returns taints without those that are also among others, by key and effect.
func withoutTaints(taints, others []corev1.Taint) []corev1.Taint {
	if len(others) == 0 {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return hasTaint(others, taintKey(t)) })
}

// hasTaint says whether a taint with this key and effect is among taints; see taintKey.
func hasTaint(taints []corev1.Taint, key string) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return taintKey(t) == key })
}

// isUninitialized says whether a cloud controller has yet to initialise the Node.
func isUninitialized(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == lifecycle.UninitializedTaint })
}

// nodeInfo is what Machines show of what runs on the Node.
func nodeInfo(node *corev1.Node) clusterv1alpha1.NodeInfo {
	said := node.Status.NodeInfo
	return clusterv1alpha1.NodeInfo{
		KubeletVersion: said.KubeletVersion, ContainerRuntimeVersion: said.ContainerRuntimeVersion,
		OSImage: said.OSImage, KernelVersion: said.KernelVersion, Architecture: said.Architecture,
	}
}
