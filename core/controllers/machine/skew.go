package machine

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/bootstrap"
)

// versionKept is how long the API server's version is taken as known: it changes when the control
// plane is upgraded.
const versionKept = time.Minute

// apiServer knows the version of the API server that the Nodes talk to. It is safe for concurrent
// use.
type apiServer struct {
	discovery discovery.ServerVersionInterface
	clock     clock.PassiveClock

	mu      sync.Mutex
	version string
	read    time.Time
}

// current returns the version as it was within the last minute. While it cannot be read, the last
// one holds.
func (a *apiServer) current() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if a.version != "" && now.Sub(a.read) < versionKept {
		return a.version, nil
	}
	info, err := a.discovery.ServerVersion()
	if err != nil && a.version == "" {
		return "", fmt.Errorf("read the API server's version: %w", err)
	}
	if err == nil {
		a.version = info.GitVersion
	}
	a.read = now
	return a.version, nil
}

// checkSkew holds the kubelet's version against the API server's: refused is why such a machine is
// not made, warning what is to be said about one that is made all the same. Both are empty for a
// version that Kubernetes supports.
func (r *reconciler) checkSkew(kubelet string) (refused, warning string, err error) {
	version, err := r.apiServer.current()
	if err != nil {
		return "", "", err
	}
	tooNew, tooOld, err := bootstrap.CheckSkew(kubelet, version)
	if err != nil {
		return err.Error(), "", nil //nolint:nilerr // the version is the user's to mend; the condition says so
	}
	if r.enforceSkew {
		return tooNew + tooOld, "", nil
	}
	return tooNew, tooOld, nil
}
