package lifecycle

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// describeNodeInfo is what runs on the Node; nil without one. What is recorded stays where the Node
// has not said it, and while the machine is paused.
func describeNodeInfo(s State, d decision) *clusterv1alpha1.NodeInfo {
	said := s.Node.Info
	switch {
	case d.nodeName == "":
		return nil
	case s.isPaused() || s.Node.Name != d.nodeName || said.KubeletVersion == "":
		return s.Machine.Status.NodeInfo
	}
	return &said
}

// describeKubelet says that the Node's kubelet is another than spec.versions asks for; the zero
// value where it is not, or where nobody knows.
func describeKubelet(s State, info *clusterv1alpha1.NodeInfo) metav1.Condition {
	const typ = clusterv1alpha1.ConditionKubeletVersionMatches
	wanted := s.Machine.KubeletVersion
	if info == nil || wanted == "" || plainVersion(info.KubeletVersion) == plainVersion(wanted) {
		return metav1.Condition{}
	}
	return condition(typ, metav1.ConditionFalse, clusterv1alpha1.ReasonKubeletVersionDiffers, fmt.Sprintf(
		"The Node's kubelet is %s, spec.versions.kubelet is %s.", plainVersion(info.KubeletVersion), plainVersion(wanted)))
}

// plainVersion is a version without the leading v and without build metadata, which says nothing of
// what is newer: https://semver.org/#spec-item-10
func plainVersion(version string) string {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "+")
	return version
}
