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

// What Reserve, StartCreate and StartDelete return, besides *instance.Failure and *HeldError, when
// nothing was started.
var (
	// ErrBusy: a mutation of this uid is under way. Its end wakes the machine.
	ErrBusy = errors.New("a call for this machine is under way")
	// ErrThrottled: as many requests as the driver, or the account, takes are under way. The
	// machine queues and is woken when its turn has come.
	ErrThrottled = errors.New("the driver has as many requests under way as it takes")
)

// HeldError says that a call was not sent because others of the same account were just refused.
// The cause of that was no fault of their machines. The machine is woken when its turn has
// come. Failure is in the cloud's words.
type HeldError struct {
	Failure *instance.Failure
}

// Error names the cause.
func (e *HeldError) Error() string {
	return fmt.Sprintf("held back, since the last call of this account failed: %s", e.Failure)
}

// callRecord is what is known of a uid's mutations, and whose uid it is.
type callRecord struct {
	// machine holds the uid. It is zero where the machine was forgotten while its call was under
	// way: whoever comes next holds the uid.
	machine  types.NamespacedName
	underWay bool
	outcome  *instance.Outcome
	// dropped: nobody is to have the outcome of the call under way.
	dropped bool
	// nextPoll is when the last mutation's answer wants the machine to be polled.
	nextPoll time.Time
	// console is what the driver was asked last about the VM's console; nil for nothing yet.
	console *instance.Console
}

// callRecords are those of all uids.
type callRecords map[string]*callRecord

// claim returns the record of m's uid if m holds it, or comes first to hold it. Of two Machines
// with one uid, as a copied manifest makes them, the second must never touch the first one's VM.
func (r callRecords) claim(m wire.Machine) (record *callRecord, mine bool) {
	record, known := r[m.UID]
	if !known {
		record = &callRecord{}
		r[m.UID] = record
	}
	if record.machine == (types.NamespacedName{}) {
		record.machine = m.Key()
	}
	return record, record.machine == m.Key()
}

// held returns the record of a uid if the machine holds it.
func (r callRecords) held(machine types.NamespacedName, uid string) (*callRecord, bool) {
	record, known := r[uid]
	return record, known && record.machine == machine
}

// leaseCheck is when a machine that was refused for want of a Lease asks again; the Lease is
// renewed every few seconds.
const leaseCheck = time.Second

// Who may call. The controller of Machines comes here when the Machine is neither paused nor
// another system's, and lifecycle waits for nothing: no backoff, no call under way, no lost state.
// Before a create its prepare has had copies of Secrets kept and, while nothing can exist yet, the
// spec checked. Who waits for that check stands in preparation.waiting. The collector of orphans
// comes by StartDelete alone. What holds a call back after that is here and in limiter/turns.go.

// Reserve sets a request aside for the machine's next mutation: call it before writing down an
// intent, so that the call follows the intent at once instead of queueing behind it. If Reserve
// returns nil, the request is set aside for 30 s, unless the driver goes away or others of the
// account are refused meanwhile. Calling again renews it. Errors are those of StartCreate, but
// the request itself is not checked.
func (d *Driver) Reserve(m wire.Machine, op instance.Operation) error {
	_, tooLate := d.cfg.leaseAllows(d.Capabilities().Deadlines.Mutation)
	d.mu.Lock()
	defer d.mu.Unlock()
	record, mine := d.calls.claim(m)
	if !mine {
		return uidTaken(record.machine)
	}
	if record.underWay {
		return ErrBusy
	}
	if why := d.Unready(); why != "" {
		d.wait(m, time.Time{})
		return notReady(why)
	}
	if tooLate != nil {
		d.wait(m, d.cfg.Clock.Now().Add(leaseCheck))
		return tooLate
	}
	turn, refusal := d.limiter.Ask(callerOf(m), keyOf(m, op), d.cfg.Clock.Now())
	signal(d.changed)
	if turn {
		return nil
	}
	if refusal != nil {
		return &HeldError{Failure: refusal}
	}
	return ErrThrottled
}

// StartCreate sends CreateMachine and returns. nil means that a call is under way; its end wakes
// the machine, and Collect has the outcome. Anything else means that nothing was sent: ErrBusy,
// ErrThrottled, *HeldError or an *instance.Failure. A failure of class Unavailable means not
// connected, not ready, or not enough of the Lease left. The machine is then woken when the
// driver is back, or a second later. Class SpecInvalid means that the request is malformed or
// too large. Class Conflict means that another Machine holds the uid. An outcome that nobody
// collected is dropped. The call is part of the trace in ctx; it goes on when ctx ends.
func (d *Driver) StartCreate(ctx context.Context, m wire.Machine, userData []byte, tags map[string]string) error {
	request := &driverv1alpha1.CreateMachineRequest{
		Meta:           wire.Meta(d.cfg.ClusterUID, d.cfg.LeaderEpoch()),
		Machine:        m.Ref(),
		Provider:       m.Provider(),
		UserData:       userData,
		LastKnownState: m.LastKnownState,
		Tags:           contract.FitTags(tags, d.Capabilities().Tags),
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
	d.poller.CallBegan(m.UID)
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
	d.poller.CallEnded(m.UID)
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
	d.metrics.recordCall(d.name, o, d.limiter.OpenBreakers())
}

// Progress is how far a machine's mutation is.
type Progress string

// The stages of a mutation.
const (
	// Idle: none is under way and none has ended that was not collected.
	Idle Progress = "Idle"
	// UnderWay: its outcome is open.
	UnderWay Progress = "UnderWay"
	// Ended: the outcome came with this answer, and comes only once.
	Ended Progress = "Ended"
)

// Collect returns how far the mutation of the machine with that uid is. With Ended it hands the
// outcome over, once.
func (d *Driver) Collect(machine types.NamespacedName, uid string) (instance.Outcome, Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, held := d.calls.held(machine, uid)
	if !held {
		return instance.Outcome{}, Idle
	}
	if record.underWay {
		return instance.Outcome{}, UnderWay
	}
	if record.outcome == nil {
		return instance.Outcome{}, Idle
	}
	outcome := *record.outcome
	record.outcome = nil
	return outcome, Ended
}
