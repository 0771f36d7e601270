package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	serverversion "k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/bootstrap/discovery"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// apiServer knows the version of the API server that the Nodes talk to. It is safe for concurrent
// use.
type apiServer struct {
	discovery serverversion.ServerVersionInterface
	clock     clock.PassiveClock
	version   discovery.Answer[string]
}

// current returns the version as it was within the last minute: it changes when the control plane
// is upgraded.
func (a *apiServer) current() (string, error) {
	return a.version.Get(a.clock.Now(), func(*string) (string, error) {
		info, err := a.discovery.ServerVersion()
		if err != nil {
			return "", fmt.Errorf("read the API server's version: %w", err)
		}
		return info.GitVersion, nil
	})
}

// checkBootstrap checks whether there can be user data for a machine that may yet be created, and
// says how its kubelet fits the API server.
func (r *reconciler) checkBootstrap(ctx context.Context, s *machineScope) error {
	m := s.machine
	if !m.DeletionTimestamp.IsZero() || m.Status.Phase == clusterv1alpha1.MachinePhaseFailed || r.Workload == nil {
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
	switch m.Status.Phase {
	case clusterv1alpha1.MachinePhaseProvisioned, clusterv1alpha1.MachinePhaseRunning, clusterv1alpha1.MachinePhaseUpdating:
		// A providerID alone is not enough: a create that failed half-way may have told it.
		return nil
	default:
	}
	if tooNew != "" {
		s.state.BootstrapError = tooNew
		return nil
	}
	return r.userData.check(ctx, s)
}

// BootstrapConfigs finds what user data needs besides the Machine. A discovery.IncompleteError is
// shown to the user; after any other error it is asked again. Each reconcile asks for the start-up
// taints, which are part of the Config: those of a Machine that runs wait for no other API server.
type BootstrapConfigs interface {
	Config(context.Context, *clusterv1alpha1.Machine) (bootstrap.Config, error)
	StartupTaints(context.Context, *clusterv1alpha1.Machine) ([]corev1.Taint, error)
}

// userData renders the user data of Machines. What the user has to mend becomes the state's
// BootstrapError: lifecycle shows it, and tries again later.
type userData struct {
	configs BootstrapConfigs
	// specs reads what users bring themselves.
	specs *specresolver.Resolver
	// tokens are in the cluster of the Nodes.
	tokens tokenClient
}

// check checks whether there can be user data, and reads no Secret for it. Of a machine that may
// bring its own that shows at its create: see readOwn.
func (u userData) check(ctx context.Context, s *machineScope) error {
	if s.dataSecretName() != "" || s.provision.mayBringUserData() {
		return nil
	}
	config, err := u.configs.Config(ctx, s.machine)
	if err == nil {
		err = asIncomplete(bootstrap.Check(s.machine, config))
	}
	return s.takeBootstrapError(err)
}

// forCreate returns the user data for a create that is about to be sent, with the machine's
// bootstrap token; none for a delete. Where it is not ready, the state's BootstrapError says why.
func (u userData) forCreate(ctx context.Context, s *machineScope, step lifecycle.Step) (data []byte, ready bool, err error) {
	if step.Do != lifecycle.Create {
		return nil, true, nil
	}
	own := s.provision.userData
	limit := int(min(s.driver.Capabilities().MaxUserDataBytes, bootstrap.MaxUserDataBytes))
	if s.state.Machine.Nodeless {
		data, err = renderNodeless(s.machine, own, limit)
		return data, err == nil, s.takeBootstrapError(asIncomplete(err))
	}
	var config bootstrap.Config
	if own == nil {
		if config, err = u.configs.Config(ctx, s.machine); err != nil {
			return nil, false, s.takeBootstrapError(err)
		}
	}
	before := s.state.TokenState()
	token, ready, err := u.tokens.forCreate(ctx, s, step, own.NeedsToken())
	hasTokenChanged := (s.state.TokenState() == lifecycle.TokenNotNeeded) != (before == lifecycle.TokenNotNeeded)
	if err != nil || !ready || hasTokenChanged {
		// The status has to say whether there is a token before the create is sent.
		return nil, false, err
	}
	config.MaxBytes = limit
	if own != nil {
		data, err = own.Render(s.machine, limit, token)
	} else {
		data, err = bootstrap.Render(s.machine, config, token)
	}
	return data, err == nil, s.takeBootstrapError(asIncomplete(err))
}

// renderNodeless returns the user data of a machine that joins no cluster: its own, or none.
func renderNodeless(m *clusterv1alpha1.Machine, own *bootstrap.UserData, limit int) ([]byte, error) {
	switch {
	case own == nil:
		return nil, nil
	case own.NeedsToken():
		return nil, fmt.Errorf("the user data wants a bootstrap token, and the manager runs with --workload-kubeconfig=none: take %s out of it", bootstrap.TokenPlaceholder)
	}
	return own.Render(m, limit, "")
}

// asIncomplete makes an error of rendering the user's to mend.
func asIncomplete(err error) error {
	if err == nil {
		return nil
	}
	return &discovery.IncompleteError{Message: err.Error()}
}

// takeBootstrapError returns the error, unless the user has to mend it.
func (s *machineScope) takeBootstrapError(err error) error {
	if incomplete, is := errors.AsType[*discovery.IncompleteError](err); is {
		s.state.BootstrapError = incomplete.Error()
		return nil
	}
	return err
}
