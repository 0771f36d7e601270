package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/millwright-dev/millwright/transport"
)

// Drivers are the configured drivers. Make them with New; safe for use by several goroutines.
type Drivers struct {
	cfg           Config
	drivers       map[string]*Driver
	have          []string
	notifier      *notifier
	statusChanges *statusChanges
	// deposed is closed once a driver has told of a later leader.
	leadershipLost <-chan struct{}
}

// New makes a client for each target. It connects to none: that is Start's work, so a driver that
// is not there yet is no error. Two targets of one name, or a target that ParseTarget would refuse,
// are.
func New(cfg Config, targets []Target) (*Drivers, error) {
	if cfg.ClusterUID == "" {
		return nil, errors.New("drivers: the cluster's uid is required")
	}
	cfg = cfg.withDefaults()
	metrics, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, fmt.Errorf("drivers: register metrics: %w", err)
	}
	leadershipLost, loseLeadership := context.WithCancel(context.Background())
	tell := cfg.LeadershipLost
	cfg.LeadershipLost = func() {
		loseLeadership()
		tell()
	}
	d := &Drivers{cfg: cfg, drivers: map[string]*Driver{}, notifier: newNotifier(), statusChanges: newStatusChanges(), leadershipLost: leadershipLost.Done()}
	for _, target := range targets {
		if _, twice := d.drivers[target.Name]; twice {
			return nil, fmt.Errorf("drivers: %q is configured twice", target.Name)
		}
		driver, err := newDriver(cfg, target, d.notifier, d.statusChanges, metrics)
		if err != nil {
			return nil, fmt.Errorf("driver %q: %w", target.Name, err)
		}
		d.drivers[target.Name] = driver
	}
	d.have = slices.Sorted(maps.Keys(d.drivers))
	return d, nil
}

// Start keeps the drivers connected and tracked machines polled until ctx ends. Then no call begins
// any more, and mutations under way have as long as Config.ShutdownGrace and the Lease allow, none
// after a later leader was seen; those that are cancelled have an unknown outcome. It returns nil
// when the last has ended. It is a controller-runtime Runnable and may be called once.
func (d *Drivers) Start(ctx context.Context) error {
	mutations, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var waking, serving sync.WaitGroup
	waking.Go(func() { d.notifier.run(ctx) })
	for _, driver := range d.drivers {
		serving.Go(func() { driver.run(ctx, mutations) })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serving.Wait()
	}()
	<-ctx.Done()
	d.await(ended)
	cut()
	<-ended
	waking.Wait()
	return nil
}

// await waits for the mutations under way to end, as long as they may.
func (d *Drivers) await(ended <-chan struct{}) {
	grace := d.cfg.ShutdownGrace
	if d.cfg.MutationBudget != nil {
		latest, leading := d.cfg.MutationBudget()
		if !leading {
			return
		}
		grace = min(grace, latest.Sub(d.cfg.Clock.Now()))
	}
	if grace <= 0 {
		return
	}
	timer := d.cfg.Clock.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-d.leadershipLost:
	case <-timer.C():
	}
}

// NeedLeaderElection is true, unless Config.Everywhere says otherwise: only a leader calls drivers
// about machines.
func (d *Drivers) NeedLeaderElection() bool {
	return !d.cfg.Everywhere
}

// For returns the driver of a provider, connected or not, or *UnknownError.
func (d *Drivers) For(provider string) (*Driver, error) {
	driver, known := d.drivers[provider]
	if !known {
		return nil, &UnknownError{Provider: provider, Have: d.have}
	}
	return driver, nil
}

// Events wakes machines: each event's object has the namespace and the name of a Machine of which a
// call ended, an observation changed, a turn came or the driver came back. Events of one machine
// are merged while nobody reads. There is one channel, for one reader, and it is never closed.
func (d *Drivers) Events() <-chan event.GenericEvent {
	return d.notifier.events
}

// run keeps the driver connected until ctx ends, and returns when the last call has ended. The
// context of mutations outlives ctx.
func (d *Driver) run(ctx, mutations context.Context) {
	var closing sync.WaitGroup
	defer closing.Wait()
	for ctx.Err() == nil {
		s, err := d.connector.connect(ctx)
		if errors.Is(err, transport.ErrPaused) {
			d.pause(ctx)
			continue
		}
		d.metrics.tried(d.name, err)
		if err != nil {
			d.away(err.Error(), errors.Unwrap(err))
			d.pause(ctx)
			continue
		}
		s.mutations = mutations
		d.serve(ctx, s)
		closing.Go(func() {
			s.calls.Wait()
			// Whatever closing it says, nothing uses the connection any more.
			_ = s.conn.Close()
		})
	}
	d.away("this process is shutting down", nil)
}

func (d *Driver) pause(ctx context.Context) {
	timer := d.cfg.Clock.NewTimer(d.cfg.ReconnectDelay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// serve uses a session until its connection or ctx ends.
func (d *Driver) serve(ctx context.Context, s *session) {
	ctx, lost := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer lost()
	parts.Go(func() {
		s.conn.Lost(ctx)
		lost()
	})
	d.attach(s)
	defer d.away(notConnected, nil)
	parts.Go(func() { d.runPoller(ctx, s) })
	probes := d.cfg.Clock.NewTicker(d.cfg.ProbeInterval)
	defer probes.Stop()
	for {
		why := d.connector.probe(ctx, s)
		if ctx.Err() != nil {
			return
		}
		d.setReady(why)
		select {
		case <-ctx.Done():
			return
		case <-probes.C():
		}
	}
}

// attach makes a session the current one. It is not ready before its first probe.
func (d *Driver) attach(s *session) {
	d.log.Info("driver connected", "version", s.caps.VendorVersion, "features", s.caps.Features)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session, d.caps = s, s.caps
	d.statusChanges.notify()
	d.reached, d.schema, d.schemaTrouble, d.prepared = true, s.schema, s.schemaTrouble, map[string]*preparation{}
}

// setReady records what a probe said, and wakes all who waited when it is good news.
func (d *Driver) setReady(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == why {
		return
	}
	d.become(why)
	if why != "" {
		d.log.Info("driver is not ready", "why", why)
		return
	}
	d.log.Info("driver is ready")
	for _, status := range d.schedule.machines {
		d.notifier.enqueue(status.machine.key())
	}
	d.notifyPoller(time.Time{})
}

// become records why no calls are taken, empty for that they are. Who queued meanwhile is woken
// when they are again. Call it with the lock held.
func (d *Driver) become(why string) {
	if d.why == why {
		return
	}
	if (d.why == "") != (why == "") {
		d.since = d.cfg.Clock.Now()
	}
	d.why = why
	d.metrics.setUp(d.name, why == "")
	d.statusChanges.notify()
	if why != "" {
		d.limiter.Away()
		return
	}
	d.limiter.Back(d.caps.MaxConcurrentRequests)
	d.wakeCallers()
}

// away records that there is no session, and why; cause is for the log.
func (d *Driver) away(why string, cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why != why {
		d.log.Info("driver is away", "why", why, "cause", fmt.Sprint(cause))
	}
	d.session = nil
	d.become(why)
}

var _ interface {
	Start(context.Context) error
	NeedLeaderElection() bool
} = &Drivers{}
