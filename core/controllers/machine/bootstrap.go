package machine

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
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

// checkBootstrap checks whether there can be user data for a machine that may yet be created, and
// says how its kubelet fits the API server.
func (r *reconciler) checkBootstrap(s *machineScope) error {
	m := s.machine
	if !m.DeletionTimestamp.IsZero() || m.Status.Phase == clusterv1alpha1.MachinePhaseFailed {
		return nil
	}
	version, err := r.apiServer.current()
	if err != nil {
		return err
	}
	tooNew, tooOld, err := bootstrap.CheckSkew(m.Spec.Versions.Kubelet, version)
	switch {
	case err != nil:
		// The version is the user's to mend.
		tooNew = err.Error()
	case r.EnforceSkew:
		tooNew, tooOld = tooNew+tooOld, ""
	}
	s.state.BootstrapWarning = tooOld
	if m.Status.Phase == clusterv1alpha1.MachinePhaseProvisioned || m.Status.Phase == clusterv1alpha1.MachinePhaseRunning {
		// A providerID alone is not enough: a create that failed half-way may have told it.
		return nil
	}
	if tooNew != "" {
		s.state.BootstrapError = tooNew
		return nil
	}
	if err := bootstrap.Check(m); err != nil {
		s.state.BootstrapError = err.Error()
	}
	return nil
}
