// Package limiter decides which machines may call one driver now: it is the driver's concurrency
// limiter and the circuit breakers of its accounts, with one queue for both. It is pure: no lock,
// no clock, no goroutine.
//
// A machine that wants to create or delete its VM asks for a turn. A turn is a slot, of which the
// driver has a limited number, and the permission of the breaker of its Key. Machines that get no
// turn queue. Turns are granted in order of arrival among those whose breaker permits a call. A
// turn that is not used in time passes on. Polls and questions about specs need a ready driver and
// a slot, and ask no breaker. A breaker opens when the cloud refuses a call for a cause that is no
// machine's fault. After a wait one call probes, and its success closes the breaker.
//
// Read turns.go first; breaker.go says what the end of a call does to others of its Key, polls.go
// how polls share the slots.
package limiter

import (
	"cmp"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
)

// TurnLifetime is how long a machine whose turn has come may take to begin its call.
const TurnLifetime = 30 * time.Second

// Caller is a machine, under the uid by which its driver knows it.
type Caller struct {
	Namespace, Name, UID string
}

// Key is what one cause of refusal concerns: an operation by one spec and one set of secrets. A
// quota that is used up keeps nothing from being deleted, and a flavor that is out of stock keeps
// no other from being created.
type Key struct {
	// Account is a hash of spec and secrets.
	Account   uint64
	Operation instance.Operation
}

// Limiter is the state of one driver's queue. Make it with New. Ask Next after calls of other
// methods: it returns the machines whose turn came by those. A poll is told of its slot at once.
type Limiter struct {
	// limit is how many requests the driver takes at once, underWay how many it has: polls of them
	// are polls.
	limit, underWay, polls int
	// calls are those of all callers that queue, have a turn or a call under way; turns are those
	// of them that have a turn. No turn expires before expiry.
	calls  map[Caller]*call
	turns  map[*call]struct{}
	expiry time.Time
	// arrived counts calls; their numbers are their order in the queue.
	arrived uint64
	// breakers are those of all keys, queued those at which calls queue.
	breakers map[Key]*breaker
	queued   map[*breaker]struct{}
	// waiting are callers that wait for the driver to be back, or for wakeAt; zero for never.
	waiting map[Caller]struct{}
	wakeAt  time.Time
	// woken is what Next returns.
	woken []Caller
	// pollWaiters wait for a slot; closing one hands it over.
	pollWaiters []chan struct{}
	// credentialRetry is how long calls with refused credentials are held back.
	credentialRetry time.Duration
}

// call is a mutation that somebody wants to make, or makes.
type call struct {
	caller  Caller
	breaker *breaker
	arrival uint64
	state   state
	// until is when a turn expires.
	until time.Time
}

type state int

const (
	queued state = iota
	granted
	begun
)

// New returns a limiter that lets a driver have limit requests under way. Calls whose
// credentials the cloud refuses are held back for as long as credentialRetry.
func New(limit int, credentialRetry time.Duration) *Limiter {
	return &Limiter{
		limit: limit, credentialRetry: credentialRetry,
		calls: map[Caller]*call{}, turns: map[*call]struct{}{},
		breakers: map[Key]*breaker{}, queued: map[*breaker]struct{}{},
		waiting: map[Caller]struct{}{},
	}
}

// Ask says whether who has its turn, which it then has for TurnLifetime from now on. If not, it
// queues, and Next returns it when its turn has come. The refusal is then how others of the key
// were refused; nil where there are only too many. Who asks with another key gives up what it
// had with the last one. Who has a call under way gets neither a turn nor a place in the queue.
func (l *Limiter) Ask(who Caller, key Key, now time.Time) (turn bool, refusal *instance.Failure) {
	l.expire(now)
	b := l.breaker(key, now)
	c, known := l.calls[who]
	if known && c.state == begun {
		return false, nil
	}
	delete(l.waiting, who)
	if known && c.breaker != b {
		l.remove(c)
		known = false
	}
	b.forgetSuccesses(now)
	if !known {
		l.arrived++
		c = &call{caller: who, breaker: b, arrival: l.arrived}
		l.calls[who] = c
		l.enqueue(c)
	}
	l.grant(now, c)
	if c.state == granted {
		c.until = now.Add(TurnLifetime)
		return true, nil
	}
	return false, b.cause
}

// Begin turns who's turn into a call under way. It returns false where who has no turn for that
// key.
func (l *Limiter) Begin(who Caller, key Key, now time.Time) bool {
	c, known := l.calls[who]
	if !known || c.state != granted || c.breaker != l.breakers[key] || !now.Before(c.until) {
		return false
	}
	delete(l.turns, c)
	c.state = begun
	l.underWay++
	return true
}

// Done ends who's call, which began at an instant; failure is nil for a success. It returns the
// refusals that others of its key are told of, before and after; nil for none.
func (l *Limiter) Done(who Caller, began, now time.Time, failure *instance.Failure) (was, is *instance.Failure) {
	c, known := l.calls[who]
	if !known || c.state != begun {
		return nil, nil
	}
	b := c.breaker
	delete(l.calls, who)
	l.underWay--
	b.active--
	was = b.cause
	b.record(began, now, failure, l.credentialRetry)
	if b.isOpen(now) {
		l.withdraw(b)
	}
	if was == nil && b.cause != nil {
		// So far they were told that there are too many of them; now there is more to be said.
		for _, c := range b.queue {
			l.woken = append(l.woken, c.caller)
		}
	}
	l.grantPolls(now)
	return was, b.cause
}

// Drop removes the caller's turn and its place in the queue. A call under way goes on.
func (l *Limiter) Drop(who Caller) {
	delete(l.waiting, who)
	if c, known := l.calls[who]; known && c.state != begun {
		l.remove(c)
	}
}

// Wait has Next return who when the driver is back; at until at the latest, unless that is zero.
// Who waits keeps its place in the queue, or its turn.
func (l *Limiter) Wait(who Caller, until time.Time) {
	l.waiting[who] = struct{}{}
	l.wakeAt = earliest.Instant(l.wakeAt, until)
}

// Suspend takes back all turns and empties the queue: the driver takes no calls. All who were there
// wait for Resume. Calls under way still count.
func (l *Limiter) Suspend() {
	l.wakeAt = time.Time{}
	for who, c := range l.calls {
		if c.state != begun {
			l.remove(c)
			l.waiting[who] = struct{}{}
		}
	}
}

// Resume says that the driver takes calls again, limit of them at once. All who wait are woken.
func (l *Limiter) Resume(limit int) {
	l.Suspend()
	l.limit = limit
	l.wake()
}

// Next returns whom to wake now, since its turn has come or what Ask tells it has changed.
func (l *Limiter) Next(now time.Time) []Caller {
	l.expire(now)
	l.grant(now, nil)
	if !l.wakeAt.IsZero() && !now.Before(l.wakeAt) {
		l.wake()
	}
	woken := l.woken
	l.woken = nil
	return woken
}

// Due is when to ask Next again though nothing else happens; zero for never. Ask Next first.
func (l *Limiter) Due(now time.Time) time.Time {
	due := l.wakeAt
	if len(l.turns) > 0 {
		due = earliest.Instant(due, l.expiry)
	}
	for b := range l.queued {
		if b.isOpen(now) {
			due = earliest.Instant(due, b.until)
		}
	}
	return due
}

// OpenBreakers counts the keys of which only probes are let through, by the class of the refusal.
func (l *Limiter) OpenBreakers() map[instance.Class]int {
	open := map[instance.Class]int{}
	for _, b := range l.breakers {
		if b.cause != nil {
			open[b.cause.Class]++
		}
	}
	return open
}

// breaker returns the breaker of a key. It drops old ones before it makes one.
func (l *Limiter) breaker(key Key, now time.Time) *breaker {
	b, known := l.breakers[key]
	if known {
		return b
	}
	for old, b := range l.breakers {
		if b.isIdle(now) {
			delete(l.breakers, old)
		}
	}
	b = &breaker{window: firstWindow}
	l.breakers[key] = b
	return b
}

// grant hands out free slots: to polls first, as many as they may have, then to the queue. All but
// asking, which is told at once, are woken.
func (l *Limiter) grant(now time.Time, asking *call) {
	l.grantPolls(now)
	for l.isFree() {
		c := l.first(now)
		if c == nil {
			break
		}
		l.dequeue(c)
		c.state, c.until = granted, now.Add(TurnLifetime)
		c.breaker.active++
		if len(l.turns) == 0 {
			l.expiry = c.until
		}
		l.turns[c] = struct{}{}
		if c != asking {
			l.woken = append(l.woken, c.caller)
		}
	}
	l.grantPolls(now)
}

// isFree says whether a slot is neither in use nor set aside.
func (l *Limiter) isFree() bool { return l.underWay+len(l.turns) < l.limit }

// first returns, of the calls that lack nothing but a slot, the one that has queued longest; nil
// for none.
func (l *Limiter) first(now time.Time) *call {
	var first *call
	for b := range l.queued {
		if b.permits(now) && (first == nil || b.queue[0].arrival < first.arrival) {
			first = b.queue[0]
		}
	}
	return first
}

// expire takes back the turns that were not used in time.
func (l *Limiter) expire(now time.Time) {
	if now.Before(l.expiry) {
		return
	}
	l.expiry = time.Time{}
	for c := range l.turns {
		if !now.Before(c.until) {
			l.remove(c)
			continue
		}
		l.expiry = earliest.Instant(l.expiry, c.until)
	}
}

// withdraw puts the calls that have a turn at a breaker back to where they were in the queue.
func (l *Limiter) withdraw(b *breaker) {
	for c := range l.turns {
		if c.breaker == b {
			delete(l.turns, c)
			b.active--
			l.enqueue(c)
		}
	}
}

// enqueue puts a call into its breaker's queue, by its arrival.
func (l *Limiter) enqueue(c *call) {
	c.state = queued
	at, _ := slices.BinarySearchFunc(c.breaker.queue, c.arrival, byArrival)
	c.breaker.queue = slices.Insert(c.breaker.queue, at, c)
	l.queued[c.breaker] = struct{}{}
}

// dequeue takes a call out of its breaker's queue.
func (l *Limiter) dequeue(c *call) {
	b := c.breaker
	at, _ := slices.BinarySearchFunc(b.queue, c.arrival, byArrival)
	if at == 0 {
		// The first one goes most often: nothing is moved for it.
		b.queue[0] = nil
		b.queue = b.queue[1:]
	} else {
		b.queue = slices.Delete(b.queue, at, at+1)
	}
	if len(b.queue) == 0 {
		delete(l.queued, b)
	}
}

func byArrival(c *call, arrival uint64) int { return cmp.Compare(c.arrival, arrival) }

// remove forgets a call that has not begun.
func (l *Limiter) remove(c *call) {
	delete(l.calls, c.caller)
	if c.state == queued {
		l.dequeue(c)
		return
	}
	delete(l.turns, c)
	c.breaker.active--
}

// wake has Next return all who wait.
func (l *Limiter) wake() {
	for who := range l.waiting {
		l.woken = append(l.woken, who)
	}
	clear(l.waiting)
	l.wakeAt = time.Time{}
}
