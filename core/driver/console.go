package driver

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// AskConsole has the driver asked for what m's VM has written to its console, and returns. Console
// says how far that is; the answer wakes the machine. It comes within the driver's deadline for a
// status, or is a failure: nobody waits longer for a driver that is busy. While a question is under
// way no other is asked. Where another Machine holds the uid it does nothing.
func (d *Driver) AskConsole(m wire.Machine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, mine := d.calls.claim(m)
	if !mine || record.console != nil && record.console.UnderWay {
		return
	}
	s, why := d.connection.Acquire()
	if why != "" {
		record.console = &instance.Console{Failure: notReady(why)}
		return
	}
	defer s.Release()
	asked := &instance.Console{UnderWay: true}
	record.console = asked
	s.Go(func() {
		answer := readConsole(hooks{d}, s, m)
		d.mu.Lock()
		defer d.mu.Unlock()
		// Who was forgotten meanwhile, or came back since, is told nothing.
		if record, held := d.calls.held(m.Key(), m.UID); held && record.console == asked {
			record.console = answer
			d.notifier.enqueue(m.Key())
		}
	})
}

// Console returns what came of AskConsole for the machine of that uid, which holds until it is
// asked again; nil before the first time.
func (d *Driver) Console(machine types.NamespacedName, uid string) *instance.Console {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, held := d.calls.held(machine, uid)
	if !held {
		return nil
	}
	return record.console
}

// readConsole asks for m's console, and waits for the answer.
func readConsole(h hooks, s *connection.Session, m wire.Machine) *instance.Console {
	timeout := s.Capabilities.Deadlines.Status
	// The wait for the driver to have room is part of it.
	ctx, cancel := context.WithTimeout(s.Mutations, timeout)
	defer cancel()
	request := &driverv1alpha1.GetConsoleOutputRequest{
		Meta: s.Meta(), Machine: m.Ref(), Provider: m.Provider(), ProviderId: m.ProviderID, LastKnownState: m.LastKnownState,
	}
	if failure := wire.CheckRequest(request); failure != nil {
		return &instance.Console{Failure: failure}
	}
	var answer *driverv1alpha1.GetConsoleOutputResponse
	failure := h.Call(ctx, s, timeout, func(ctx context.Context) (err error) {
		answer, err = s.Machines.GetConsoleOutput(ctx, request)
		return err
	})
	if failure != nil && failure.Class == instance.Unavailable && ctx.Err() != nil {
		failure = wire.Unavailable("DriverBusy", "the driver had no room for the question in time")
	}
	if failure != nil {
		return &instance.Console{Failure: failure}
	}
	if violations := contract.CheckAnswer(answer); len(violations) > 0 {
		return &instance.Console{Failure: wire.InvalidAnswer(violations.Error())}
	}
	return &instance.Console{Lines: wire.ConsoleLines(request, answer.GetOutput(), m.Hidden)}
}
