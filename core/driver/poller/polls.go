// Package poller polls the VMs of tracked machines, each as often as it needs it: one by one, or
// all of an account by one list.
//
// Read polls.go first. schedule.go says who is polled when; answers.go reads lists, and says what
// was found and who is to hear of it.
package poller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// Polling says how often tracked machines are polled. A driver's poll_after can only make it rarer.
type Polling struct {
	// Interval lies between two polls of machines on their way somewhere. Machines that are polled
	// one by one back off from it to MaxInterval while nothing changes.
	Interval, MaxInterval time.Duration
	// SettledInterval lies between two polls of machines of which nothing is expected. Where the
	// driver cannot list, each such machine is polled five times as rarely.
	SettledInterval time.Duration
	// Handful is how many pending machines of an account are polled one by one; for more, one
	// ListMachines serves all. Settled machines are listed wherever the driver can.
	Handful int
	// PageSize of ListMachines.
	PageSize int32
}

// Client is whom the poller polls for. The poller holds its lock when it calls Wake and PollSoon.
type Client interface {
	// Call makes one call that changes nothing, when the driver has room for it.
	Call(ctx context.Context, s *connection.Session, timeout time.Duration, call func(context.Context) error) *instance.Failure
	// Wake wakes a machine.
	Wake(types.NamespacedName)
	// PollSoon has Poll called again.
	PollSoon()
}

// Poller polls one driver's VMs. Its methods are safe for use by several goroutines.
type Poller struct {
	client  Client
	polling Polling
	clock   clock.PassiveClock
	// polls are those under way.
	polls sync.WaitGroup

	mu       sync.Mutex
	schedule *schedule
}

// New returns a poller that has nothing to do yet.
func New(client Client, polling Polling, clock clock.PassiveClock) *Poller {
	return &Poller{client: client, polling: polling, clock: clock, schedule: newSchedule(polling)}
}

// Track has the machine polled until Untrack, and wakes it when what is found changes. Calling it
// again replaces what the driver is told and the interval; a quicker one takes effect at once. The
// first poll comes not before first.
func (p *Poller) Track(m wire.Machine, interval instance.PollInterval, first time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule.track(m, interval, p.clock.Now(), first)
	p.client.PollSoon()
}

// Untrack ends Track and drops the observation. Without Track it does nothing.
func (p *Poller) Untrack(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule.untrack(uid)
}

// WakeAll wakes all tracked machines.
func (p *Poller) WakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.schedule.machines {
		p.client.Wake(m.machine.Key())
	}
}

// Poll begins the polls that are due, and returns when to call it again; zero for not before
// PollSoon.
func (p *Poller) Poll(ctx context.Context, s *connection.Session) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	batches, next := p.schedule.due(p.clock.Now(), s.CanList())
	for _, b := range batches {
		p.polls.Go(func() {
			if b.list {
				p.pollList(ctx, s, b)
				return
			}
			p.pollOne(ctx, s, b.machine)
		})
	}
	return next
}

// Wait returns when no poll is under way any more. Do not call Poll meanwhile.
func (p *Poller) Wait() { p.polls.Wait() }

// pollOne polls one machine.
func (p *Poller) pollOne(ctx context.Context, s *connection.Session, m wire.Machine) {
	request := &driverv1alpha1.GetMachineStatusRequest{
		Meta:           s.Meta(),
		Machine:        m.Ref(),
		Provider:       m.Provider(),
		ProviderId:     m.ProviderID,
		LastKnownState: m.LastKnownState,
	}
	found := poll{began: p.clock.Now(), oneByOne: true, failure: wire.CheckRequest(request)}
	if found.failure == nil {
		var answer *driverv1alpha1.GetMachineStatusResponse
		found.failure = p.client.Call(ctx, s, s.Capabilities.Deadlines.Status, func(ctx context.Context) (err error) {
			found.began = p.clock.Now()
			answer, err = s.Machines.GetMachineStatus(ctx, request)
			return err
		})
		if found.failure == nil {
			found.instance, found.failure = s.Reader().Poll(m, answer.GetMachine())
		}
	}
	found.ended = p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if isDriverLost(ctx, found.failure) {
		p.schedule.recordLost(m.UID, found.ended)
	} else {
		p.recordPoll(m, found)
	}
	p.client.PollSoon()
}
