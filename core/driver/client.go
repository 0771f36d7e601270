package driver

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver/limiter"
	"github.com/millwright-dev/millwright/core/driver/schema"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/proto/redact"
	"github.com/millwright-dev/millwright/transport"
	"github.com/millwright-dev/millwright/transport/tracing"
)

// Driver is the client of one driver. Its methods return at once, whether the driver is there or
// not, and are safe for use by several goroutines.
type Driver struct {
	name          string
	cfg           Config
	connector     connector
	notifier      *notifier
	statusChanges *statusChanges
	metrics       *metrics
	log           logr.Logger
	// wakeup tells the poller that something is due before what it waits for.
	wakeup chan struct{}

	mu sync.Mutex
	// session is nil while the driver is away; why says why it can take no calls, empty when it
	// can. since is from when on it has, or has not, been able to.
	session *session
	why     string
	since   time.Time
	caps    Capabilities
	// schema and schemaTrouble are the session's; they outlast it. reached says that there was one.
	// prepared is what was asked of this session.
	reached       bool
	schema        *schema.Schema
	schemaTrouble string
	prepared      map[string]*preparation
	limiter       *limiter.Limiter
	schedule      *pollSchedule
	// next is what the poller waits for; zero while it waits for nothing but a wakeup.
	next  time.Time
	calls map[string]*callRecord
}

// callRecord is what is known of a uid's mutations, and whose uid it is.
type callRecord struct {
	// machine holds the uid, unless it is free.
	machine  types.NamespacedName
	underWay bool
	outcome  *instance.Outcome
	// free: the machine was forgotten while its call was under way; whoever comes next holds the
	// uid.
	free bool
	// dropped: nobody is to have the outcome of the call under way.
	dropped bool
	// nextPoll is when the last mutation's answer wants the machine to be polled.
	nextPoll time.Time
}

// notConnected is all that machines are told of a driver that is away: why is for the log, since it
// changes while a driver restarts, and each change would be a write to every machine.
const notConnected = "the driver is not connected"

// leaseCheck is when a machine that was refused for want of a Lease asks again; the Lease is
// renewed every few seconds.
const leaseCheck = time.Second

func newDriver(cfg Config, target Target, notifier *notifier, statusChanges *statusChanges, m *metrics) (*Driver, error) {
	log := cfg.Log.WithValues("driver", target.Name)
	told := &redact.Memory{}
	way, err := transport.Parse(target.Address, transport.Options{
		Log: slog.New(logr.ToSlogHandler(log)), Clean: func(text string) string { return told.Of(nil).Text(text) },
	})
	if err != nil {
		return nil, err
	}
	caps := capabilitiesOf(nil, nil, cfg)
	m.setUp(target.Name, false)
	return &Driver{
		name: target.Name,
		cfg:  cfg,
		connector: connector{
			target: target, transport: way, cfg: cfg, intercept: []grpc.UnaryClientInterceptor{
				redacting(told, m.meter(target.Name, log, cfg.Clock)), tracing.Client(cfg.Tracing, target.Name),
			},
		},
		notifier:      notifier,
		statusChanges: statusChanges,
		metrics:       m,
		log:           log,
		wakeup:        make(chan struct{}, 1),
		why:           notConnected,
		since:         cfg.Clock.Now(),
		caps:          caps,
		limiter:       limiter.New(caps.MaxConcurrentRequests, cfg.CredentialRetry),
		schedule:      newPollSchedule(cfg.Polling),
		calls:         map[string]*callRecord{},
		prepared:      map[string]*preparation{},
	}, nil
}

// Name is the driver's, and the cloudProvider that it serves.
func (d *Driver) Name() string { return d.name }

// Unready says, for people and in stable words, why the driver takes no calls now; empty when it
// does.
func (d *Driver) Unready() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unreadyReason()
}

// Capabilities are what the driver said of itself when it was last reached; they outlast its
// absence.
func (d *Driver) Capabilities() Capabilities {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.caps
}

// Reserve sets a request aside for the machine's next mutation: call it before writing down an
// intent, so that the call follows the intent at once instead of queueing behind it. nil means that
// it is set aside for 30 s, unless the driver goes away or others of the account are refused
// meanwhile; calling again renews it. Errors are those of StartCreate, but the request itself is
// not checked.
func (d *Driver) Reserve(m Machine, op instance.Operation) error {
	_, tooLate := d.leaseAllows(d.Capabilities().Deadlines.Mutation)
	d.mu.Lock()
	defer d.mu.Unlock()
	record, mine := d.claim(m)
	if !mine {
		return uidTaken(record.machine)
	}
	if record.underWay {
		return ErrBusy
	}
	if why := d.unreadyReason(); why != "" {
		d.wait(m, time.Time{})
		return unavailable("DriverNotReady", why)
	}
	if tooLate != nil {
		d.wait(m, d.cfg.Clock.Now().Add(leaseCheck))
		return tooLate
	}
	turn, refusal := d.limiter.Ask(callerOf(m), keyOf(m, op), d.cfg.Clock.Now())
	d.wakeCallers()
	if turn {
		return nil
	}
	if refusal != nil {
		return &HeldError{Failure: refusal}
	}
	return ErrThrottled
}

// Collect returns how far the mutation of the machine with that uid is. With Ended it hands the
// outcome over, once.
func (d *Driver) Collect(machine types.NamespacedName, uid string) (instance.Outcome, Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, held := d.held(machine, uid)
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

// Track has the machine polled until Untrack, and wakes it when what is found changes. Calling it
// again replaces what the driver is told and the pace; a quicker pace takes effect at once. After a
// create or delete the first poll waits as long as its answer asked for. Where another Machine
// holds the uid it does nothing.
func (d *Driver) Track(m Machine, pace Pace) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, mine := d.claim(m)
	if !mine {
		return
	}
	d.notifyPoller(d.schedule.track(m, pace, d.cfg.Clock.Now(), record.nextPoll))
}

// Untrack ends Track and drops the observation. Without Track it does nothing.
func (d *Driver) Untrack(machine types.NamespacedName, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.held(machine, uid); held {
		d.schedule.untrack(uid)
	}
}

// Observed returns what the last poll found; false before the first one.
func (d *Driver) Observed(machine types.NamespacedName, uid string) (instance.Observation, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.held(machine, uid); !held {
		return instance.Observation{}, false
	}
	return d.schedule.observed(uid)
}

// Forget drops everything known of a machine and gives its uid up; call it when the machine is
// gone. A call under way goes on and keeps the uid busy until it ends. Where the machine does not
// hold the uid it does nothing.
func (d *Driver) Forget(machine types.NamespacedName, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, held := d.held(machine, uid)
	if !held {
		return
	}
	d.schedule.untrack(uid)
	d.limiter.Drop(limiter.Caller{Namespace: machine.Namespace, Name: machine.Name, UID: uid})
	record.outcome, record.free, record.dropped = nil, true, true
	if !record.underWay {
		delete(d.calls, uid)
	}
	d.wakeCallers()
}

// claim returns the record of m's uid if m holds it, or comes first to hold it. Of two Machines
// with one uid, as a copied manifest makes them, the second must never touch the first one's VM.
// Call it with the lock held.
func (d *Driver) claim(m Machine) (record *callRecord, mine bool) {
	record, known := d.calls[m.UID]
	if !known {
		record = &callRecord{free: true}
		d.calls[m.UID] = record
	}
	if record.free {
		record.machine, record.free = m.key(), false
	}
	return record, record.machine == m.key()
}

// held returns the record of a uid if the machine holds it. Call it with the lock held.
func (d *Driver) held(machine types.NamespacedName, uid string) (*callRecord, bool) {
	record, known := d.calls[uid]
	return record, known && !record.free && record.machine == machine
}

// unreadyReason says why no call can be taken now; empty when one can. Call it with the lock held.
func (d *Driver) unreadyReason() string {
	// A connection that broke without serve having noticed yet: serve will, and wakes who waits
	// when it is ready anew.
	if d.why == "" && !d.session.connected() {
		return notConnected
	}
	return d.why
}

// wait has m woken when the driver is back; at until at the latest, unless that is zero. Call it
// with the lock held.
func (d *Driver) wait(m Machine, until time.Time) {
	d.limiter.Wait(callerOf(m), until)
	d.wakeCallers()
}

// wakeCallers wakes those whose turn to call has come, and has the poller ask again in time. Call
// it after each change to the limiter, with the lock held.
func (d *Driver) wakeCallers() {
	now := d.cfg.Clock.Now()
	for _, who := range d.limiter.Next(now) {
		d.notifier.enqueue(types.NamespacedName{Namespace: who.Namespace, Name: who.Name})
	}
	if due := d.limiter.Due(now); !due.IsZero() {
		d.notifyPoller(due)
	}
}

func callerOf(m Machine) limiter.Caller {
	return limiter.Caller{Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

func keyOf(m Machine, op instance.Operation) limiter.Key {
	return limiter.Key{Account: Account(m), Operation: op}
}

// notifyPoller tells the poller of something that is due at an instant. Call it with the lock held.
func (d *Driver) notifyPoller(at time.Time) {
	if !d.next.IsZero() && !at.Before(d.next) {
		return
	}
	select {
	case d.wakeup <- struct{}{}:
	default:
	}
}

// unavailable is the failure of a call that was never sent.
func unavailable(reason, message string) *instance.Failure {
	return &instance.Failure{Class: instance.Unavailable, Reason: reason, Message: message}
}

// uidTaken is the failure of a machine whose uid is another's.
func uidTaken(holder types.NamespacedName) *instance.Failure {
	return nameTaken(fmt.Sprintf("spec.machineUID is that of Machine %s, whose VM this one must not touch", holder))
}

func nameTaken(message string) *instance.Failure {
	return &instance.Failure{
		Class:   instance.Conflict,
		Reason:  conditionReason(contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN)),
		Message: message,
	}
}
