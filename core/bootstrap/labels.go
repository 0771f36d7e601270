package bootstrap

import (
	"maps"
	"strings"

	kubeletapis "k8s.io/kubelet/pkg/apis"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// NodeLabels are the labels of the Machine's Node: the Machine's own, and over them those for the
// Node.
func NodeLabels(m *clusterv1alpha1.Machine) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, m.Labels)
	maps.Copy(labels, m.Spec.Metadata.Labels)
	return labels
}

// KubeletLabel says whether a kubelet may set the label on its own Node: every one outside the
// namespaces kubernetes.io and k8s.io, and in these the ones that kubelets are known to need.
// Source: the kubelet's ValidateKubeletFlags and the admission plugin NodeRestriction.
func KubeletLabel(key string) bool {
	namespace, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return true
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if namespace == reserved || strings.HasSuffix(namespace, "."+reserved) {
			return kubeletapis.IsKubeletLabel(key)
		}
	}
	return true
}
