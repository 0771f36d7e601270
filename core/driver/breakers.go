package driver

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/instance"
)

// HeldError says that a call was not sent because others of the same account were just refused for
// a cause that is none of their machines' fault. The machine is woken when its turn has come;
// Failure is in the cloud's words.
type HeldError struct {
	Failure *instance.Failure
}

// Error names the cause.
func (e *HeldError) Error() string {
	return fmt.Sprintf("held back, since the last call of this account failed: %s", e.Failure)
}

// breakerKey is what one cause of refusal concerns: an operation by one spec and one set of
// secrets. A quota that is used up keeps nothing from being deleted, and a flavor that is out of
// stock keeps no other from being created.
type breakerKey struct {
	account   account
	operation instance.Operation
}

// passBreaker lets m through its breaker, or returns why not. Call it with the lock held.
func (d *Driver) passBreaker(m Machine, op instance.Operation) error {
	key, now := breakerKey{accountOf(m), op}, d.cfg.Clock.Now()
	mine, known := d.breakers[key]
	if !known {
		for old, b := range d.breakers {
			if b.isIdle(now) {
				delete(d.breakers, old)
			}
		}
		mine = newBreaker(d.cfg.CredentialRetry)
		d.breakers[key] = mine
	}
	// A machine whose spec, secrets or intention have changed waits for nothing else any more.
	for other, b := range d.breakers {
		if other != key {
			b.drop(m.UID)
		}
	}
	held, ok := mine.ask(m.UID, now)
	if ok {
		return nil
	}
	d.limiter.drop(m.UID)
	d.grantTurns()
	if held != nil {
		return &HeldError{Failure: held}
	}
	return ErrThrottled
}

// recordOutcome tells m's breaker how its call ended. Call it with the lock held.
func (d *Driver) recordOutcome(m Machine, o instance.Outcome) {
	class := "OK"
	if o.Failure != nil {
		class = string(o.Failure.Class)
	}
	d.metrics.mutations.WithLabelValues(d.name, string(o.Operation), class).Inc()
	if b, known := d.breakers[breakerKey{accountOf(m), o.Operation}]; known {
		was := b.cause
		b.ended(m.UID, o.Started, o.Ended, o.Failure)
		if b.cause != nil && was == nil {
			d.log.Info("calls of an account are held back", "operation", o.Operation,
				"class", b.cause.Class, "reason", b.cause.Reason, "message", b.cause.Message)
			// So far they were told that there are too many of them; now there is more to be said.
			d.enqueueAll(b.queue)
		}
		if b.cause == nil && was != nil {
			d.log.Info("calls of an account succeed again", "operation", o.Operation, "class", was.Class)
		}
	}
	d.countBreakers()
}

func (d *Driver) countBreakers() {
	open := map[instance.Class]int{}
	for _, b := range d.breakers {
		if b.cause != nil {
			open[b.cause.Class]++
		}
	}
	for _, class := range instance.BreakerClasses() {
		d.metrics.breakers.WithLabelValues(d.name, string(class)).Set(float64(open[class]))
	}
}

// breakerTurns wakes those whose turn it is, and returns when to ask again. Call it with the lock
// held.
func (d *Driver) breakerTurns(now time.Time) time.Time {
	var due time.Time
	for _, b := range d.breakers {
		d.enqueueAll(b.next(now, d.limiter.isWaiting))
		due = earlier(due, b.due(now))
	}
	return due
}

// enqueueAll wakes the machines that hold these uids. Call it with the lock held.
func (d *Driver) enqueueAll(uids []string) {
	for _, uid := range uids {
		if record, known := d.calls[uid]; known {
			d.notifier.enqueue(record.machine)
		}
	}
}

// leaveBreakers forgets what a machine waits for. Call it with the lock held.
func (d *Driver) leaveBreakers(machine types.NamespacedName, uid string) {
	delete(d.waiting, machine)
	for _, b := range d.breakers {
		b.drop(uid)
	}
}
