package driver

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/limiter"
	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
)

// Driver is the client of one driver. Its methods return at once, whether the driver is there or
// not, and are safe for use by several goroutines.
type Driver struct {
	name       string
	cfg        Config
	connection *connection.Connection
	poller     *poller.Poller
	notifier   *notifier
	timer      *timer
	metrics    *metrics
	log        logr.Logger

	mu      sync.Mutex
	limiter *limiter.Limiter
	calls   callRecords
	// preparations are what the driver was asked about specs.
	preparations preparations
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

// leaseCheck is when a machine that was refused for want of a Lease asks again; the Lease is
// renewed every few seconds.
const leaseCheck = time.Second

func newDriver(cfg Config, target Target, notifier *notifier, m *metrics) (*Driver, error) {
	log := cfg.Log.WithValues("driver", target.Name)
	d := &Driver{
		name: target.Name, cfg: cfg, notifier: notifier, timer: newTimer(cfg.Clock), metrics: m, log: log,
		calls: callRecords{},
	}
	var err error
	d.connection, err = connection.New(connection.Config{
		Name: target.Name, Address: target.Address, ClusterUID: cfg.ClusterUID, LeaderEpoch: cfg.LeaderEpoch,
		Deadlines: cfg.Deadlines, MaxConcurrentRequests: cfg.MaxConcurrentRequests,
		ReconnectDelay: cfg.ReconnectDelay, ProbeInterval: cfg.ProbeInterval, Clock: cfg.Clock, Log: log,
		Meter: m.meter(target.Name, log, cfg.Clock), Tracing: cfg.Tracing,
	}, hooks{d})
	if err != nil {
		return nil, err
	}
	d.poller = poller.New(hooks{d}, cfg.Polling, cfg.Clock)
	d.limiter = limiter.New(d.Capabilities().MaxConcurrentRequests, cfg.CredentialRetry)
	m.setUp(target.Name, false)
	return d, nil
}

// Name is the driver's, and the cloudProvider that it serves.
func (d *Driver) Name() string { return d.name }

// Unready says, for people and in stable words, why the driver takes no calls now; empty when it
// does.
func (d *Driver) Unready() string { return d.connection.Unready() }

// Connected returns nil when the driver can be asked now, else an *instance.Failure of class
// Unavailable.
func (d *Driver) Connected() error {
	if why := d.Unready(); why != "" {
		return notReady(why)
	}
	return nil
}

// Reachable returns nil when the driver can be asked now, else an *instance.Failure of class
// Unavailable; m is woken when it can.
func (d *Driver) Reachable(m Machine) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if why := d.Unready(); why != "" {
		d.wait(m, time.Time{})
		return notReady(why)
	}
	return nil
}

// Capabilities are what the driver said of itself when it was last reached; they outlast its
// absence.
func (d *Driver) Capabilities() Capabilities { return d.connection.Capabilities() }

// Reserve sets a request aside for the machine's next mutation: call it before writing down an
// intent, so that the call follows the intent at once instead of queueing behind it. nil means that
// it is set aside for 30 s, unless the driver goes away or others of the account are refused
// meanwhile; calling again renews it. Errors are those of StartCreate, but the request itself is
// not checked.
func (d *Driver) Reserve(m Machine, op instance.Operation) error {
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
	d.timer.notify(d.wakeCallers())
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

// Track has the machine polled until Untrack, and wakes it when what is found changes. Calling it
// again replaces what the driver is told and the pace; a quicker pace takes effect at once. After a
// create or delete the first poll waits as long as its answer asked for. Where another Machine
// holds the uid it does nothing.
func (d *Driver) Track(m Machine, pace Pace) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, mine := d.calls.claim(m)
	if !mine {
		return
	}
	d.poller.Track(m, pace, record.nextPoll)
}

// Untrack ends Track and drops the observation. Without Track it does nothing.
func (d *Driver) Untrack(machine types.NamespacedName, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.calls.held(machine, uid); held {
		d.poller.Untrack(uid)
	}
}

// Observed returns what the last poll found; false before the first one.
func (d *Driver) Observed(machine types.NamespacedName, uid string) (instance.Observation, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.calls.held(machine, uid); !held {
		return instance.Observation{}, false
	}
	return d.poller.Observed(uid)
}

// Forget drops everything known of a machine and gives its uid up; call it when the machine is
// gone. A call under way goes on and keeps the uid busy until it ends. Where the machine does not
// hold the uid it does nothing.
func (d *Driver) Forget(machine types.NamespacedName, uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, held := d.calls.held(machine, uid)
	if !held {
		return
	}
	d.poller.Untrack(uid)
	d.limiter.Drop(limiter.Caller{Namespace: machine.Namespace, Name: machine.Name, UID: uid})
	record.outcome, record.free, record.dropped = nil, true, true
	if !record.underWay {
		delete(d.calls, uid)
	}
	d.timer.notify(d.wakeCallers())
}

// callRecords are those of all uids.
type callRecords map[string]*callRecord

// claim returns the record of m's uid if m holds it, or comes first to hold it. Of two Machines
// with one uid, as a copied manifest makes them, the second must never touch the first one's VM.
func (r callRecords) claim(m Machine) (record *callRecord, mine bool) {
	record, known := r[m.UID]
	if !known {
		record = &callRecord{free: true}
		r[m.UID] = record
	}
	if record.free {
		record.machine, record.free = m.Key(), false
	}
	return record, record.machine == m.Key()
}

// held returns the record of a uid if the machine holds it.
func (r callRecords) held(machine types.NamespacedName, uid string) (*callRecord, bool) {
	record, known := r[uid]
	return record, known && !record.free && record.machine == machine
}

// wait has m woken when the driver is back; at until at the latest, unless that is zero. Call it
// with the lock held.
func (d *Driver) wait(m Machine, until time.Time) {
	d.limiter.Wait(callerOf(m), until)
	d.timer.notify(d.wakeCallers())
}

// wakeCallers wakes those whose turn to call has come, and returns when to ask again; zero for
// never. Call it after each change to the limiter, with the lock held.
func (d *Driver) wakeCallers() time.Time {
	now := d.cfg.Clock.Now()
	for _, who := range d.limiter.Next(now) {
		d.notifier.enqueue(types.NamespacedName{Namespace: who.Namespace, Name: who.Name})
	}
	return d.limiter.Due(now)
}

func callerOf(m Machine) limiter.Caller {
	return limiter.Caller{Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

func keyOf(m Machine, op instance.Operation) limiter.Key {
	return limiter.Key{Account: m.Account(), Operation: op}
}

// notReady is the failure of a call that a driver takes none of now.
func notReady(why string) *instance.Failure { return wire.Unavailable("DriverNotReady", why) }

// uidTaken is the failure of a machine whose uid is another's.
func uidTaken(holder types.NamespacedName) *instance.Failure {
	return wire.NameTaken(fmt.Sprintf("spec.machineUID is that of Machine %s, whose VM this one must not touch", holder))
}
