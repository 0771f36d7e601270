package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// shortestMutation is the least time that a mutation is given: with less of the Lease left it is
// not sent, for it would most likely end in doubt.
const shortestMutation = 5 * time.Second

// leaseMargin is how much of the Lease must be left after a mutation: as long as it may take from
// looking at the Lease until the call's deadline runs.
const leaseMargin = time.Second

// What Reserve, StartCreate and StartDelete return, besides *instance.Failure and *HeldError, when
// nothing was started.
var (
	// ErrBusy: a mutation of this uid is under way. Its end wakes the machine.
	ErrBusy = errors.New("a call for this machine is under way")
	// ErrThrottled: as many requests as the driver, or the account, takes are under way. The
	// machine queues and is woken when its turn has come.
	ErrThrottled = errors.New("the driver has as many requests under way as it takes")
)

// HeldError says that a call was not sent because others of the same account were just refused for
// a cause that is none of their machines' fault. The machine is woken when its turn has come;
// Failure is in the cloud's words.
type HeldError struct {
	Failure *instance.Failure
}

// Error names the cause.
func (e *HeldError) Error() string {
	return fmt.Sprintf("held back, since the last call of this account failed: %s", e.Failure)
}

// StartCreate sends CreateMachine and returns. nil means that a call is under way; its end wakes
// the machine, and Collect has the outcome. Anything else means that nothing was sent: ErrBusy,
// ErrThrottled, or an *instance.Failure of class Unavailable (not connected, not ready, or not
// enough of the Lease left; the machine is woken when the driver is back, or a second later),
// *HeldError, SpecInvalid (the request is malformed or too large) or Conflict (another Machine
// holds the uid). An outcome that nobody collected is dropped. The call is part of the trace in
// ctx; it goes on when ctx ends.
func (d *Driver) StartCreate(ctx context.Context, m wire.Machine, userData []byte, tags map[string]string) error {
	request := &driverv1alpha1.CreateMachineRequest{
		Meta:           wire.Meta(d.cfg.ClusterUID, d.cfg.LeaderEpoch()),
		Machine:        m.Ref(),
		Provider:       m.Provider(),
		UserData:       userData,
		LastKnownState: m.LastKnownState,
		Tags:           tags,
	}
	oversized := contract.CheckUserData(userData, d.Capabilities().MaxUserDataBytes)
	if failure := wire.CheckRequest(request, oversized...); failure != nil {
		return failure
	}
	return d.start(ctx, mutation{m, instance.Create, func(ctx context.Context, s *connection.Session) (*driverv1alpha1.Machine, error) {
		answer, err := s.Machines.CreateMachine(ctx, request)
		// A create that succeeds must say what it made: Reader refuses an answer without a machine.
		return answer.GetMachine(), err
	}})
}

// StartDelete sends DeleteMachine and returns, as StartCreate does.
func (d *Driver) StartDelete(ctx context.Context, m wire.Machine) error {
	request := &driverv1alpha1.DeleteMachineRequest{
		Meta:           wire.Meta(d.cfg.ClusterUID, d.cfg.LeaderEpoch()),
		Machine:        m.Ref(),
		Provider:       m.Provider(),
		ProviderId:     m.ProviderID,
		LastKnownState: m.LastKnownState,
	}
	if failure := wire.CheckRequest(request); failure != nil {
		return failure
	}
	return d.start(ctx, mutation{m, instance.Delete, func(ctx context.Context, s *connection.Session) (*driverv1alpha1.Machine, error) {
		answer, err := s.Machines.DeleteMachine(ctx, request)
		return answer.GetMachine(), err
	}})
}

// mutation is a create or delete. call makes it and returns the machine in the driver's answer.
type mutation struct {
	machine   wire.Machine
	operation instance.Operation
	call      func(context.Context, *connection.Session) (*driverv1alpha1.Machine, error)
}

// start begins a mutation in the background, if it may begin now, as a part of the trace in traced.
func (d *Driver) start(traced context.Context, do mutation) error {
	if d.begin(traced, do) {
		return nil
	}
	if err := d.Reserve(do.machine, do.operation); err != nil {
		return err
	}
	if !d.begin(traced, do) {
		return ErrThrottled
	}
	return nil
}

// begin uses the machine's turn; false where it has none. Whoever has one holds its uid and has no
// call under way: Reserve has seen to that.
func (d *Driver) begin(traced context.Context, do mutation) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, why := d.connection.Acquire()
	if why != "" {
		return false
	}
	defer s.Release()
	m := do.machine
	if !d.limiter.Begin(callerOf(m), keyOf(m, do.operation), d.cfg.Clock.Now()) {
		return false
	}
	record := d.calls[m.UID]
	record.underWay, record.outcome = true, nil
	ctx := trace.ContextWithSpanContext(s.Mutations, trace.SpanContextFromContext(traced))
	s.Go(func() { d.finish(m, d.send(ctx, s, do)) })
	return true
}

// send makes the call and waits for its end.
func (d *Driver) send(ctx context.Context, s *connection.Session, do mutation) instance.Outcome {
	m, op := do.machine, do.operation
	outcome := instance.Outcome{Operation: op, Started: d.cfg.Clock.Now()}
	// The deadline runs from now on. A process that is stopped while it looks at its Lease, and may
	// have lost it meanwhile, finds the deadline passed and sends nothing.
	timeout := s.Capabilities.Deadlines.Mutation
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	left, failure := d.cfg.leaseAllows(timeout)
	if failure != nil {
		outcome.Ended, outcome.Failure = d.cfg.Clock.Now(), failure
		return outcome
	}
	deadline, _ := ctx.Deadline()
	ctx, cut := context.WithDeadline(ctx, deadline.Add(left-timeout))
	defer cut()
	var answer *driverv1alpha1.Machine
	outcome.Failure = s.Call(ctx, func(ctx context.Context) (err error) {
		answer, err = do.call(ctx, s)
		return err
	})
	outcome.Ended = d.cfg.Clock.Now()
	if outcome.Failure != nil {
		d.log.Info("mutation failed", "operation", op, "machine", m.Key(), "uid", m.UID,
			"class", outcome.Failure.Class, "reason", outcome.Failure.Reason, "message", outcome.Failure.Message)
		if outcome.Failure.Class == instance.StaleEpoch {
			d.cfg.LeadershipLost()
		}
		return outcome
	}
	if op == instance.Delete && answer == nil {
		return outcome
	}
	outcome.Instance, outcome.Failure = s.Reader().Machine(m, answer)
	return outcome
}

// finish keeps the outcome for Collect and wakes the machine.
func (d *Driver) finish(m wire.Machine, outcome instance.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recordOutcome(m, outcome)
	record := d.calls[m.UID]
	record.underWay = false
	if !record.dropped {
		d.poller.Record(m.UID, outcome)
		pause := d.cfg.Polling.Interval
		if outcome.Instance != nil {
			pause = max(pause, outcome.Instance.PollAfter)
		}
		record.outcome, record.nextPoll = &outcome, outcome.Ended.Add(pause)
	}
	record.dropped = false
	if record.machine == (types.NamespacedName{}) {
		delete(d.calls, m.UID)
	} else {
		d.notifier.enqueue(record.machine)
	}
	signal(d.changed)
}

// recordOutcome tells the limiter how m's call ended. Call it with the lock held.
func (d *Driver) recordOutcome(m wire.Machine, o instance.Outcome) {
	was, is := d.limiter.Done(callerOf(m), o.Started, o.Ended, o.Failure)
	if is != nil && was == nil {
		d.log.Info("calls of an account are held back", "operation", o.Operation,
			"class", is.Class, "reason", is.Reason, "message", is.Message)
	}
	if is == nil && was != nil {
		d.log.Info("calls of an account succeed again", "operation", o.Operation, "class", was.Class)
	}
	d.metrics.ended(d.name, o, d.limiter.OpenBreakers())
}

// leaseAllows is how long a mutation that starts now may take, at most timeout, or why none may
// start.
func (c Config) leaseAllows(timeout time.Duration) (time.Duration, *instance.Failure) {
	if c.MutationBudget == nil {
		return timeout, nil
	}
	latest, leading := c.MutationBudget()
	if !leading {
		return 0, wire.Unavailable("NotLeading", "this process does not lead")
	}
	left := latest.Sub(c.Clock.Now()) - leaseMargin
	if left < min(timeout, shortestMutation) {
		return 0, wire.Unavailable("LeaseExpiring", "too little of the leader's Lease is left for a call")
	}
	return min(timeout, left), nil
}
