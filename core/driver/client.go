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
	metrics    *metrics
	log        logr.Logger

	// changed has Serve look again at what is due.
	changed chan struct{}

	mu      sync.Mutex
	limiter *limiter.Limiter
	calls   callRecords
	// preparations are what the driver was asked about specs.
	preparations preparations
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
}

// leaseCheck is when a machine that was refused for want of a Lease asks again; the Lease is
// renewed every few seconds.
const leaseCheck = time.Second

func newDriver(cfg Config, target Target, notifier *notifier, m *metrics) (*Driver, error) {
	log := cfg.Log.WithValues("driver", target.Name)
	d := &Driver{
		name: target.Name, cfg: cfg, notifier: notifier, metrics: m, log: log,
		changed: make(chan struct{}, 1), calls: callRecords{},
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
func (d *Driver) Reachable(m wire.Machine) error {
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
func (d *Driver) Capabilities() connection.Capabilities { return d.connection.Capabilities() }

// Reserve sets a request aside for the machine's next mutation: call it before writing down an
// intent, so that the call follows the intent at once instead of queueing behind it. nil means that
// it is set aside for 30 s, unless the driver goes away or others of the account are refused
// meanwhile; calling again renews it. Errors are those of StartCreate, but the request itself is
// not checked.
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
// again replaces what the driver is told and the interval; a quicker one takes effect at once.
// After a create or delete the first poll waits as long as its answer asked for. Where another
// Machine holds the uid it does nothing.
func (d *Driver) Track(m wire.Machine, interval instance.PollInterval) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, mine := d.calls.claim(m)
	if !mine {
		return
	}
	d.poller.Track(m, interval, record.nextPoll)
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
	record.machine, record.outcome, record.dropped = types.NamespacedName{}, nil, true
	if !record.underWay {
		delete(d.calls, uid)
	}
	signal(d.changed)
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

// wait has m woken when the driver is back; at until at the latest, unless that is zero. Call it
// with the lock held.
func (d *Driver) wait(m wire.Machine, until time.Time) {
	d.limiter.Wait(callerOf(m), until)
	signal(d.changed)
}

func callerOf(m wire.Machine) limiter.Caller {
	return limiter.Caller{Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

func keyOf(m wire.Machine, op instance.Operation) limiter.Key {
	return limiter.Key{Account: m.Account(), Operation: op}
}

// notReady is the failure of a call that a driver takes none of now.
func notReady(why string) *instance.Failure { return wire.Unavailable("DriverNotReady", why) }

// uidTaken is the failure of a machine whose uid is another's.
func uidTaken(holder types.NamespacedName) *instance.Failure {
	return wire.NameTaken(fmt.Sprintf("spec.machineUID is that of Machine %s, whose VM this one must not touch", holder))
}
