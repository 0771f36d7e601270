package bootstrap

import (
	"strings"

	kubeletapis "k8s.io/kubelet/pkg/apis"
)

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
