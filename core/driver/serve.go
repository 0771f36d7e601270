package driver

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
)

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

// hooks is what a Driver's connection and its poller call.
type hooks struct{ *Driver }

// Serve polls machines as they fall due, and wakes those whose turn to call has come, until ctx
// ends with the connection.
func (h hooks) Serve(ctx context.Context, s *connection.Session) {
	defer h.poller.Wait()
	for {
		next := h.wakeCallers()
		if h.Unready() == "" {
			next = earliest.Instant(next, h.poller.Poll(ctx, s))
		}
		if !h.waitUntil(ctx, next) {
			return
		}
	}
}

// wakeCallers wakes those whose turn to call has come, and returns when to ask again; zero for
// never.
func (h hooks) wakeCallers() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Clock.Now()
	for _, who := range h.limiter.Next(now) {
		h.notifier.enqueue(types.NamespacedName{Namespace: who.Namespace, Name: who.Name})
	}
	return h.limiter.Due(now)
}

// waitUntil waits for an instant, zero for none, or until something may be due sooner; false when
// ctx has ended.
func (h hooks) waitUntil(ctx context.Context, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := h.cfg.Clock.NewTimer(next.Sub(h.cfg.Clock.Now()))
		defer timer.Stop()
		// A clock that was set meanwhile has not rung.
		if !h.cfg.Clock.Now().Before(next) {
			return ctx.Err() == nil
		}
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-h.changed:
	}
	return true
}

// Call makes one call that changes nothing, when the driver has room for it.
func (h hooks) Call(
	ctx context.Context, s *connection.Session, timeout time.Duration, call func(context.Context) error,
) *instance.Failure {
	h.mu.Lock()
	turn := h.limiter.AcquirePoll(h.cfg.Clock.Now())
	h.mu.Unlock()
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			h.mu.Lock()
			defer h.mu.Unlock()
			h.limiter.AbandonPoll(turn, h.cfg.Clock.Now())
			signal(h.changed)
			return notReady(connection.NotConnected)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	failure := s.Call(ctx, call)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limiter.ReleasePoll(h.cfg.Clock.Now())
	signal(h.changed)
	return failure
}

// ReadinessChanged takes all turns to call back from a driver that takes no calls, and wakes all
// who wait for one that does again.
func (h hooks) ReadinessChanged(why string) {
	h.metrics.setUp(h.name, why == "")
	h.mu.Lock()
	defer h.mu.Unlock()
	if why != "" {
		h.limiter.Suspend()
		return
	}
	h.limiter.Resume(h.Capabilities().MaxConcurrentRequests)
	h.poller.WakeAll()
	signal(h.changed)
}

// Wake wakes a machine.
func (h hooks) Wake(machine types.NamespacedName) { h.notifier.enqueue(machine) }

// PollSoon has Serve poll what is due by now.
func (h hooks) PollSoon() { signal(h.changed) }

// Tried counts an attempt to connect.
func (h hooks) Tried(err error) { h.metrics.recordAttempt(h.name, err) }

// StatusChanged tells that the driver's status has changed.
func (h hooks) StatusChanged() { signal(h.notifier.statusChanged) }

// notifier hands wake-ups to one reader without ever making a caller wait: wake-ups of one machine
// that were not read yet are one.
type notifier struct {
	events chan event.GenericEvent
	// statusChanged tells that what Drivers.Statuses says has changed. What nobody has heard yet is
	// told once.
	statusChanged chan struct{}

	mu      sync.Mutex
	pending map[types.NamespacedName]struct{}
	signal  chan struct{}
}

func newNotifier() *notifier {
	return &notifier{
		events:        make(chan event.GenericEvent),
		statusChanged: make(chan struct{}, 1),
		pending:       map[types.NamespacedName]struct{}{},
		signal:        make(chan struct{}, 1),
	}
}

// enqueue wakes the machines.
func (n *notifier) enqueue(machines ...types.NamespacedName) {
	if len(machines) == 0 {
		return
	}
	n.mu.Lock()
	for _, machine := range machines {
		n.pending[machine] = struct{}{}
	}
	n.mu.Unlock()
	signal(n.signal)
}

// run passes wake-ups on until ctx ends.
func (n *notifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.signal:
		}
		for _, machine := range n.take() {
			object := &metav1.PartialObjectMetadata{}
			object.Namespace, object.Name = machine.Namespace, machine.Name
			select {
			case <-ctx.Done():
				return
			case n.events <- event.GenericEvent{Object: object}:
			}
		}
	}
}

func (n *notifier) take() []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	machines := make([]types.NamespacedName, 0, len(n.pending))
	for machine := range n.pending {
		machines = append(machines, machine)
	}
	clear(n.pending)
	return machines
}

// signal leaves a value in a channel that has room for one.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
