package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/millwright-dev/millwright/core/driverstatus"
	"github.com/millwright-dev/millwright/proto/contract"
	"github.com/millwright-dev/millwright/transport"
)

// Drivers are the configured drivers. Make them with New; safe for use by several goroutines.
type Drivers struct {
	cfg      Config
	drivers  map[string]*Driver
	have     []string
	notifier *notifier
	// leadershipLost is closed once a driver has told of a later leader.
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
	d := &Drivers{cfg: cfg, drivers: map[string]*Driver{}, notifier: newNotifier(), leadershipLost: leadershipLost.Done()}
	for _, target := range targets {
		if _, twice := d.drivers[target.Name]; twice {
			return nil, fmt.Errorf("drivers: %q is configured twice", target.Name)
		}
		driver, err := newDriver(cfg, target, d.notifier, metrics)
		if err != nil {
			return nil, fmt.Errorf("driver %q: %w", target.Name, err)
		}
		d.drivers[target.Name] = driver
	}
	d.have = slices.Sorted(maps.Keys(d.drivers))
	return d, nil
}

// Start keeps the drivers connected and tracked machines polled until ctx ends. Then no call begins
// any more. Mutations under way have as long as Config.ShutdownGrace and the Lease allow. Once
// a later leader is seen, they have no time left. Those that are cancelled have an unknown
// outcome. It returns nil when the last has ended. It is a controller-runtime Runnable and may
// be called once.
func (d *Drivers) Start(ctx context.Context) error {
	mutations, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var waking, serving sync.WaitGroup
	waking.Go(func() { d.notifier.run(ctx) })
	for _, driver := range d.drivers {
		serving.Go(func() { driver.connection.Run(ctx, mutations) })
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

// Names are those of the configured drivers, sorted.
func (d *Drivers) Names() []string { return d.have }

// For returns the driver of a provider, connected or not, or *UnknownError.
func (d *Drivers) For(provider string) (*Driver, error) {
	driver, known := d.drivers[provider]
	if !known {
		return nil, &UnknownError{Provider: provider, Have: d.have}
	}
	return driver, nil
}

// Events wakes machines. A machine is woken when a call of it ended, its observation changed,
// its turn came or the driver came back. Each event's object has the Machine's namespace and
// name. Events of one machine are merged while nobody reads. There is one channel, for one
// reader, and it is never closed.
func (d *Drivers) Events() <-chan event.GenericEvent {
	return d.notifier.events
}

// Changed gets a value after what Statuses says has changed, one for all changes since the last.
// There is one channel, for one reader, and it is never closed.
func (d *Drivers) Changed() <-chan struct{} { return d.notifier.statusChanged }

// Statuses tells how each driver is doing, sorted by name.
func (d *Drivers) Statuses() []driverstatus.Driver {
	drivers := make([]driverstatus.Driver, 0, len(d.have))
	for _, name := range d.have {
		drivers = append(drivers, d.drivers[name].connection.Status())
	}
	return drivers
}

var _ interface {
	Start(context.Context) error
	NeedLeaderElection() bool
} = &Drivers{}

// Target is where a driver is: one --driver flag.
type Target struct {
	// Name is the driver's name and the value of cloudProvider that selects it.
	Name string
	// Address is a scheme and what it reaches, e.g. unix:///run/millwright/mycloud.sock: see
	// transport.Parse.
	Address string
}

// ParseTarget reads NAME=ADDRESS. An error says what to write instead.
func ParseTarget(flag string) (Target, error) {
	name, address, found := strings.Cut(flag, "=")
	if !found {
		return Target{}, fmt.Errorf("driver %q: write NAME=ADDRESS, e.g. mycloud=unix:///run/millwright/mycloud.sock", flag)
	}
	if !contract.ValidDriverName(name) {
		return Target{}, fmt.Errorf("driver %q: the name %q must be of small letters, digits and dashes and begin with a letter", flag, name)
	}
	if _, err := transport.Parse(address, transport.Options{}); err != nil {
		return Target{}, fmt.Errorf("driver %q: %w", flag, err)
	}
	return Target{Name: name, Address: address}, nil
}

// String is ParseTarget's inverse.
func (t Target) String() string {
	return t.Name + "=" + t.Address
}

// UnknownError says that no driver is configured for a provider. It stays so until core is started
// with one.
type UnknownError struct {
	// Provider is the name that was asked for.
	Provider string
	// Have are the names of the configured drivers, sorted.
	Have []string
}

// Error names the provider and the drivers there are.
func (e *UnknownError) Error() string {
	have := "none is configured"
	if len(e.Have) > 0 {
		have = "there are: " + strings.Join(e.Have, ", ")
	}
	return fmt.Sprintf("no driver for cloudProvider %q (%s)", e.Provider, have)
}
