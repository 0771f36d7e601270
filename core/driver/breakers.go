package driver

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/instance"
)

// HeldError says that a call was not sent because others of the same account were just refused for a cause that is none of
// their machines' fault. The machine is woken when its turn has come; Failure is in the cloud's words.
type HeldError struct {
	Failure *instance.Failure
}

// Error names the cause.
func (e *HeldError) Error() string {
	return fmt.Sprintf("held back, since the last call of this account failed: %s", e.Failure)
}

// gateKey is what one cause of refusal concerns: an operation by one spec and one set of secrets. A quota that is used up keeps
// nothing from being deleted, and a flavor that is out of stock keeps no other from being created.
type gateKey struct {
	account   account
	operation instance.Operation
}

// pass lets m through its gate, or returns why not. Call it with the lock held.
func (d *Driver) pass(m Machine, op instance.Operation) error {
	key, now := gateKey{accountOf(m), op}, d.cfg.Clock.Now()
	mine, known := d.gates[key]
	if !known {
		for old, g := range d.gates {
			if g.idle(now) {
				delete(d.gates, old)
			}
		}
		mine = newGate(d.cfg.CredentialRetry)
		d.gates[key] = mine
	}
	// A machine whose spec, secrets or intention have changed waits for nothing else any more.
	for other, g := range d.gates {
		if other != key {
			g.drop(m.UID)
		}
	}
	held, ok := mine.ask(m.UID, now)
	if ok {
		return nil
	}
	d.slots.drop(m.UID)
	d.handOut()
	if held != nil {
		return &HeldError{Failure: held}
	}
	return ErrThrottled
}

// learn tells m's gate how its call ended. Call it with the lock held.
func (d *Driver) learn(m Machine, o instance.Outcome) {
	class := "OK"
	if o.Failure != nil {
		class = string(o.Failure.Class)
	}
	d.metrics.mutations.WithLabelValues(d.name, string(o.Operation), class).Inc()
	if g, known := d.gates[gateKey{accountOf(m), o.Operation}]; known {
		was := g.why
		g.ended(m.UID, o.Started, o.Ended, o.Failure)
		if g.why != nil && was == nil {
			d.log.Info("calls of an account are held back", "operation", o.Operation,
				"class", g.why.Class, "reason", g.why.Reason, "message", g.why.Message)
			// So far they were told that there are too many of them; now there is more to be said.
			d.ringAll(g.queue)
		}
		if g.why == nil && was != nil {
			d.log.Info("calls of an account succeed again", "operation", o.Operation, "class", was.Class)
		}
	}
	d.countGates()
}

func (d *Driver) countGates() {
	shut := map[instance.Class]int{}
	for _, g := range d.gates {
		if g.why != nil {
			shut[g.why.Class]++
		}
	}
	for _, class := range instance.BreakerClasses() {
		d.metrics.breakers.WithLabelValues(d.name, string(class)).Set(float64(shut[class]))
	}
}

// gateTurns wakes those whose turn it is, and returns when to ask again. Call it with the lock held.
func (d *Driver) gateTurns(now time.Time) time.Time {
	var due time.Time
	for _, g := range d.gates {
		d.ringAll(g.next(now, d.slots.wants))
		due = earlier(due, g.due(now))
	}
	return due
}

// ringAll wakes the machines that hold these uids. Call it with the lock held.
func (d *Driver) ringAll(uids []string) {
	for _, uid := range uids {
		if record, known := d.calls[uid]; known {
			d.alarm.ring(record.machine)
		}
	}
}

// leaveGates forgets what a machine waits for. Call it with the lock held.
func (d *Driver) leaveGates(machine types.NamespacedName, uid string) {
	delete(d.waiting, machine)
	for _, g := range d.gates {
		g.drop(uid)
	}
}
