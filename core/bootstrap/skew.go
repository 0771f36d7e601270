package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestSkew is how many minor versions a kubelet may be behind the API server. Source: Kubernetes'
// version skew policy.
const oldestSkew = 3

// Skew says how a kubelet's version fits an API server's.
type Skew string

// The skews.
const (
	// Supported by Kubernetes' version skew policy.
	Supported Skew = "Supported"
	// TooNew: a kubelet must not be newer than the API server.
	TooNew Skew = "TooNew"
	// TooOld: further behind the API server than the policy allows.
	TooOld Skew = "TooOld"
)

// CheckSkew compares minor versions, as the policy does. words say, for people, what is wrong and
// what would be right; they are empty for Supported. A version that cannot be read is an error.
func CheckSkew(kubelet, apiServer string) (skew Skew, words string, err error) {
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
		return TooNew, fmt.Sprintf("spec.versions.kubelet: %s is newer than the API server: use %s to %s", kubelet, oldest, newest), nil
	case minor(node)+oldestSkew < minor(server):
		return TooOld, fmt.Sprintf("spec.versions.kubelet: %s is further behind the API server than Kubernetes supports: use %s to %s",
			kubelet, oldest, newest), nil
	}
	return Supported, "", nil
}

// minor orders versions by major and minor.
func minor(v *version.Version) uint {
	const minorsOfAMajor = 1000
	return v.Major()*minorsOfAMajor + v.Minor()
}
