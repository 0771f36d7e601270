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

// Driver is the client of one driver. Its methods are safe for use by several goroutines. They
// return at once, whether the driver is there or not. Only ListOwned and CheckSpec wait for its
// answers.
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

func newDriver(cfg Config, target Target, notifier *notifier, m *metrics) (*Driver, error) {
	log := cfg.Log.WithValues("driver", target.Name)
	d := &Driver{
		name: target.Name, cfg: cfg, notifier: notifier, metrics: m, log: log,
		changed: make(chan struct{}, 1), calls: callRecords{},
	}
	var err error
	d.connection, err = connection.New(connection.Config{
		Name: target.Name, Address: target.Address, Version: cfg.Version, ClusterUID: cfg.ClusterUID, LeaderEpoch: cfg.LeaderEpoch,
		Deadlines: cfg.Deadlines, MaxConcurrentRequests: cfg.MaxConcurrentRequests, CreateSettle: cfg.CreateSettle,
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
	record.machine, record.outcome, record.console, record.dropped = types.NamespacedName{}, nil, nil, true
	if !record.underWay {
		delete(d.calls, uid)
	}
	signal(d.changed)
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
