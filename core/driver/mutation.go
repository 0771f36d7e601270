package driver

import (
	"context"
	"crypto/rand"
	"time"

	"go.opentelemetry.io/otel/trace"

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

// StartCreate sends CreateMachine and returns. nil means that a call is under way; its end wakes
// the machine, and Collect has the outcome. Anything else means that nothing was sent: ErrBusy,
// ErrThrottled, or an *instance.Failure of class Unavailable (not connected, not ready, or not
// enough of the Lease left; the machine is woken when the driver is back, or a second later),
// *HeldError, SpecInvalid (the request is malformed or too large) or Conflict (another Machine
// holds the uid). An outcome that nobody collected is dropped. The call is part of the trace in
// ctx; it goes on when ctx ends.
func (d *Driver) StartCreate(ctx context.Context, m Machine, userData []byte, tags map[string]string) error {
	request := &driverv1alpha1.CreateMachineRequest{
		Meta:           d.meta(),
		Machine:        ref(m),
		Provider:       provider(m),
		UserData:       userData,
		LastKnownState: m.LastKnownState,
		Tags:           tags,
	}
	violations := append(contract.CheckRequest(request), contract.CheckUserData(userData, d.Capabilities().MaxUserDataBytes)...)
	if len(violations) > 0 {
		return invalidRequest(violations)
	}
	return d.start(ctx, mutation{m, instance.Create, func(ctx context.Context, s *session) (*driverv1alpha1.Machine, error) {
		answer, err := s.machines.CreateMachine(ctx, request)
		// A create that succeeds must say what it made: reader refuses an answer without a machine.
		return answer.GetMachine(), err
	}})
}

// StartDelete sends DeleteMachine and returns, as StartCreate does.
func (d *Driver) StartDelete(ctx context.Context, m Machine) error {
	request := &driverv1alpha1.DeleteMachineRequest{
		Meta:           d.meta(),
		Machine:        ref(m),
		Provider:       provider(m),
		ProviderId:     m.ProviderID,
		LastKnownState: m.LastKnownState,
	}
	if violations := contract.CheckRequest(request); len(violations) > 0 {
		return invalidRequest(violations)
	}
	return d.start(ctx, mutation{m, instance.Delete, func(ctx context.Context, s *session) (*driverv1alpha1.Machine, error) {
		answer, err := s.machines.DeleteMachine(ctx, request)
		return answer.GetMachine(), err
	}})
}

// mutation is a create or delete. call makes it and returns the machine in the driver's answer.
type mutation struct {
	machine   Machine
	operation instance.Operation
	call      func(context.Context, *session) (*driverv1alpha1.Machine, error)
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
// call under way, and the driver is there: Reserve has seen to the former, and a driver that goes
// away takes all turns back.
func (d *Driver) begin(traced context.Context, do mutation) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := do.machine
	if !d.limiter.Begin(callerOf(m), keyOf(m, do.operation), d.cfg.Clock.Now()) {
		return false
	}
	record := d.calls[m.UID]
	record.underWay, record.outcome = true, nil
	s := d.session
	ctx := trace.ContextWithSpanContext(s.mutations, trace.SpanContextFromContext(traced))
	s.calls.Go(func() {
		d.finish(m, d.mutate(ctx, s, do))
	})
	return true
}

// mutate makes the call and waits for its end.
func (d *Driver) mutate(ctx context.Context, s *session, do mutation) instance.Outcome {
	m, op := do.machine, do.operation
	outcome := instance.Outcome{Operation: op, Started: d.cfg.Clock.Now()}
	// The deadline runs from now on. A process that is stopped while it looks at its Lease, and may
	// have lost it meanwhile, finds the deadline passed and sends nothing.
	timeout := s.caps.Deadlines.Mutation
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	left, failure := d.leaseAllows(timeout)
	if failure != nil {
		outcome.Ended, outcome.Failure = d.cfg.Clock.Now(), failure
		return outcome
	}
	deadline, _ := ctx.Deadline()
	ctx, cut := context.WithDeadline(ctx, deadline.Add(left-timeout))
	defer cut()
	ctx, request := trackSent(ctx)
	answer, err := do.call(ctx, s)
	outcome.Ended = d.cfg.Clock.Now()
	if err != nil {
		outcome.Failure = d.reader(s).failure(d.name, err, request.sent.Load())
		d.log.Info("mutation failed", "operation", op, "machine", m.key(), "uid", m.UID,
			"class", outcome.Failure.Class, "reason", outcome.Failure.Reason, "message", outcome.Failure.Message)
		if outcome.Failure.Class == instance.StaleEpoch {
			d.cfg.LeadershipLost()
		}
		return outcome
	}
	if op == instance.Delete && answer == nil {
		return outcome
	}
	outcome.Instance, outcome.Failure = d.reader(s).machine(m, answer)
	return outcome
}

// finish keeps the outcome for Collect and wakes the machine.
func (d *Driver) finish(m Machine, outcome instance.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recordOutcome(m, outcome)
	record := d.calls[m.UID]
	record.underWay = false
	if !record.dropped {
		d.keep(record, m, outcome)
	}
	record.dropped = false
	if record.free {
		delete(d.calls, m.UID)
	}
	d.notifier.enqueue(record.machine)
	d.wakeCallers()
}

// recordOutcome tells the limiter how m's call ended. Call it with the lock held.
func (d *Driver) recordOutcome(m Machine, o instance.Outcome) {
	class := "OK"
	if o.Failure != nil {
		class = string(o.Failure.Class)
	}
	d.metrics.mutations.WithLabelValues(d.name, string(o.Operation), class).Inc()
	was, is := d.limiter.Done(callerOf(m), o.Started, o.Ended, o.Failure)
	if is != nil && was == nil {
		d.log.Info("calls of an account are held back", "operation", o.Operation,
			"class", is.Class, "reason", is.Reason, "message", is.Message)
	}
	if is == nil && was != nil {
		d.log.Info("calls of an account succeed again", "operation", o.Operation, "class", was.Class)
	}
	open := d.limiter.OpenBreakers()
	for _, class := range instance.BreakerClasses() {
		d.metrics.breakers.WithLabelValues(d.name, string(class)).Set(float64(open[class]))
	}
}

// keep keeps an outcome, which is a poll, too. Call it with the lock held.
func (d *Driver) keep(record *callRecord, m Machine, outcome instance.Outcome) {
	record.outcome = &outcome
	pause := d.cfg.Polling.Interval
	if outcome.Instance != nil {
		pause = max(pause, outcome.Instance.PollAfter)
		d.schedule.found(m.UID, poll{began: outcome.Started, ended: outcome.Ended, instance: outcome.Instance})
	}
	d.schedule.recordAnswer(m.UID, outcome.Ended, outcome.Instance)
	record.nextPoll = outcome.Ended.Add(pause)
	if outcome.Operation == instance.Delete && outcome.Instance == nil && outcome.Failure == nil {
		// Nothing is left to poll, however long its Machine takes to hear of it.
		d.schedule.untrack(m.UID)
	}
}

// leaseAllows is how long a mutation that starts now may take, at most timeout, or why none may
// start.
func (d *Driver) leaseAllows(timeout time.Duration) (time.Duration, *instance.Failure) {
	if d.cfg.MutationBudget == nil {
		return timeout, nil
	}
	latest, leading := d.cfg.MutationBudget()
	if !leading {
		return 0, unavailable("NotLeading", "this process does not lead")
	}
	left := latest.Sub(d.cfg.Clock.Now()) - leaseMargin
	if left < min(timeout, shortestMutation) {
		return 0, unavailable("LeaseExpiring", "too little of the leader's Lease is left for a call")
	}
	return min(timeout, left), nil
}

func (d *Driver) meta() *driverv1alpha1.RequestMeta {
	return &driverv1alpha1.RequestMeta{
		RequestId:   rand.Text(),
		ClusterUid:  d.cfg.ClusterUID,
		LeaderEpoch: d.cfg.LeaderEpoch(),
	}
}

func (d *Driver) reader(s *session) reader {
	return reader{clusterUID: d.cfg.ClusterUID, prefix: s.caps.ProviderIDPrefix}
}

func ref(m Machine) *driverv1alpha1.MachineRef {
	return &driverv1alpha1.MachineRef{Namespace: m.Namespace, Name: m.Name, Uid: m.UID}
}

func provider(m Machine) *driverv1alpha1.ProviderContext {
	return &driverv1alpha1.ProviderContext{ProviderSpec: m.Spec, Secrets: m.Secrets}
}

// invalidRequest is terminal for the spec: the same request would break the same rule.
func invalidRequest(violations contract.Violations) *instance.Failure {
	reason := contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID)
	if violations.TooLarge() {
		reason = contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_REQUEST_TOO_LARGE)
	}
	return &instance.Failure{
		Class:   instance.SpecInvalid,
		Reason:  conditionReason(reason),
		Message: bounded(violations.Error(), maxMessage),
	}
}
