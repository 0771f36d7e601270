package machine

import (
	"context"
	"errors"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// dataSecretName names the Secret with the Machine's own user data; empty for none.
func (s *machineScope) dataSecretName() string {
	if own := s.machine.Spec.Bootstrap; own != nil {
		return own.DataSecretName
	}
	return ""
}

// readOwn reads the user data that a machine brings itself, for a create that is about to be sent.
// What is missing becomes the state's BootstrapError, and ready is false. It comes before a request
// is set aside: a machine that lacks its Secret keeps none from others.
func (u userData) readOwn(ctx context.Context, s *machineScope, step lifecycle.Step) (ready bool, err error) {
	if step.Do != lifecycle.Create {
		return true, nil
	}
	err = u.read(ctx, s)
	if failure, is := errors.AsType[*instance.Failure](err); is {
		s.state.BootstrapError, s.provision.awaitsUserData = failure.Message, true
		if s.dataSecretName() != "" {
			s.state.BootstrapError = "spec.bootstrap.dataSecretName: " + failure.Message
		}
		return false, nil
	}
	return err == nil, err
}

// read reads the user data that a machine brings itself. The operator's rules are asked before,
// also where the spec refers to no Secret.
func (u userData) read(ctx context.Context, s *machineScope) error {
	p := &s.provision
	name, checked := s.dataSecretName(), p.checked
	if name != "" && !checked.Passed() {
		known, err := schemaOf(s.driver, s.driverRequest())
		if err != nil {
			return err
		}
		if checked, err = u.specs.Check(ctx, p.effective, known); err != nil {
			return err
		}
	}
	own, err := checked.UserData(ctx, name)
	p.userData = own
	return err
}

// readConsole has the driver asked for the VM's console. What the Machine's own Secret holds is to
// be taken out of it: where that cannot be read, nothing of the console is shown.
func (u userData) readConsole(ctx context.Context, s *machineScope) error {
	request := s.driverRequest()
	if s.dataSecretName() != "" {
		err := u.read(ctx, s)
		if failure, is := errors.AsType[*instance.Failure](err); is {
			s.state.Driver.Console = &instance.Console{Failure: failure}
			return nil
		}
		if err != nil {
			return err
		}
		request.Hidden = s.provision.userData.Bytes()
	}
	s.driver.AskConsole(request)
	s.observeConsole()
	return nil
}
