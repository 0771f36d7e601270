package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestSkew is how many minor versions a kubelet may be behind the API server. Source: Kubernetes'
// version skew policy.
const oldestSkew = 3

// CheckSkew compares minor versions, as the policy does. It says in tooNew or tooOld, for
// people, what is wrong and what would be right. At most one of them is not empty. A kubelet
// must not be newer than the API server, and not be further behind it than the policy allows. A
// version that cannot be read is an error.
func CheckSkew(kubelet, apiServer string) (tooNew, tooOld string, err error) {
	node, err := version.ParseSemantic(kubelet)
	if err != nil {
		return "", "", fmt.Errorf("spec.versions.kubelet: %w", err)
	}
	server, err := version.ParseGeneric(apiServer)
	if err != nil {
		return "", "", fmt.Errorf("the API server's version: %w", err)
	}
	newest := fmt.Sprintf("%d.%d", server.Major(), server.Minor())
	oldest := fmt.Sprintf("%d.%d", server.Major(), max(int(server.Minor())-oldestSkew, 0))
	switch {
	case minor(node) > minor(server):
		tooNew = fmt.Sprintf("spec.versions.kubelet: %s is newer than the API server: use %s to %s", kubelet, oldest, newest)
	case minor(node)+oldestSkew < minor(server):
		tooOld = fmt.Sprintf("spec.versions.kubelet: %s is further behind the API server than Kubernetes supports: use %s to %s",
			kubelet, oldest, newest)
	}
	return tooNew, tooOld, nil
}

// minor orders versions by major and minor.
func minor(v *version.Version) uint {
	const minorsOfAMajor = 1000
	return v.Major()*minorsOfAMajor + v.Minor()
}
