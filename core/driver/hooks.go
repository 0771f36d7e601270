package driver

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/instance"
)

// hooks is what a Driver's connection and its poller call.
type hooks struct{ *Driver }

// Tried counts an attempt to connect.
func (h hooks) Tried(err error) { h.metrics.tried(h.name, err) }

// StatusChanged tells that the driver's status has changed.
func (h hooks) StatusChanged() { signal(h.notifier.statusChanged) }

// ReadinessChanged takes all turns to call back from a driver that takes no calls, and wakes all
// who wait for one that does again.
func (h hooks) ReadinessChanged(why string) {
	h.metrics.setUp(h.name, why == "")
	h.mu.Lock()
	defer h.mu.Unlock()
	if why != "" {
		h.limiter.Away()
		return
	}
	h.limiter.Back(h.Capabilities().MaxConcurrentRequests)
	h.wakeCallers()
	h.poller.WakeAll()
	h.timer.notify(h.cfg.Clock.Now())
}

// Serve polls machines as they fall due, and grants turns to call, until ctx ends with the
// connection.
func (h hooks) Serve(ctx context.Context, s *connection.Session) {
	defer h.poller.Wait()
	for {
		h.mu.Lock()
		next := h.wakeCallers()
		h.mu.Unlock()
		if h.Unready() == "" {
			next = earlier(next, h.poller.Poll(ctx, s))
		}
		if !h.timer.wait(ctx, next) {
			return
		}
	}
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
			h.limiter.AbandonPoll(turn)
			h.timer.notify(h.wakeCallers())
			return notReady(connection.NotConnected)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	failure := s.Call(ctx, call)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limiter.ReleasePoll()
	h.timer.notify(h.wakeCallers())
	return failure
}

// Wake wakes a machine.
func (h hooks) Wake(machine types.NamespacedName) { h.notifier.enqueue(machine) }

// PollBy has Serve poll again at an instant.
func (h hooks) PollBy(at time.Time) { h.timer.notify(at) }

// timer has one goroutine wait for the earliest instant that it or others name.
type timer struct {
	clock clock.WithTicker
	rung  chan struct{}

	mu sync.Mutex
	// next is what is waited for; zero while nobody waits, and for nothing but a notification.
	next time.Time
}

func newTimer(clock clock.WithTicker) *timer {
	return &timer{clock: clock, rung: make(chan struct{}, 1)}
}

// notify tells of something that is due at an instant; zero for never.
func (t *timer) notify(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.IsZero() || !t.next.IsZero() && !at.Before(t.next) {
		return
	}
	signal(t.rung)
}

// wait waits for an instant, or until something may be due sooner; false when ctx has ended.
func (t *timer) wait(ctx context.Context, next time.Time) bool {
	t.await(next)
	defer t.await(time.Time{})
	var due <-chan time.Time
	if !next.IsZero() {
		alarm := t.clock.NewTimer(next.Sub(t.clock.Now()))
		defer alarm.Stop()
		// A clock that was set meanwhile has not rung.
		if !t.clock.Now().Before(next) {
			return ctx.Err() == nil
		}
		due = alarm.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-t.rung:
	}
	return true
}

func (t *timer) await(next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = next
}

// earlier treats zero as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
