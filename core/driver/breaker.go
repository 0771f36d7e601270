package driver

import (
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// breaker is the circuit breaker of one operation in one account. It keeps machines from hammering
// a cloud that refuses them all for one cause that no machine can help. It is pure: no lock, no
// clock.
//
// While it is closed, it lets a handful of calls through at once, and one more after each success.
// A refusal opens it: nobody calls before a wait is over, which grows from refusal to refusal. Then
// one call probes, and its success closes the breaker. Machines that ask in vain queue. They are
// told when their turn has come.
type breaker struct {
	// window is how many calls may be under way at once.
	window int
	// turns are the uids that may call: until when, or zero for one whose call is under way.
	turns  map[string]time.Time
	queue  []string
	queued map[string]struct{}
	// cause is the refusal that opened the breaker; nil while it is closed. opened is since when it
	// has been open. Nobody may call before until.
	cause         *instance.Failure
	opened, until time.Time
	// refusals counts them in a row.
	refusals int
	used     time.Time
	// credentialRetry is how long calls with refused credentials are held back.
	credentialRetry time.Duration
}

const (
	// firstWindow is how many calls of an account are under way before the first has succeeded:
	// with credentials that are refused it is all there is.
	firstWindow = 4
	maxWindow   = 1 << 12
	// windowMemory is how long successes count: what worked a while ago may be refused by now.
	windowMemory = 5 * time.Second
	// turnLifetime is how long a machine whose turn has come may take to call.
	turnLifetime = 10 * time.Second
)

func newBreaker(credentialRetry time.Duration) *breaker {
	return &breaker{window: firstWindow, credentialRetry: credentialRetry, turns: map[string]time.Time{}, queued: map[string]struct{}{}}
}

// ask gives uid its turn, if it may call now. If not, it queues; held says how others were refused,
// nil where it is only too many.
func (b *breaker) ask(uid string, now time.Time) (held *instance.Failure, ok bool) {
	if len(b.turns) == 0 && now.Sub(b.used) > windowMemory {
		b.window = min(b.window, firstWindow)
	}
	b.used = now
	_, mine := b.turns[uid]
	if b.isOpen(now) {
		delete(b.turns, uid)
		b.enqueue(uid)
		return b.cause, false
	}
	if mine || len(b.turns) < b.maxCalls() && len(b.queue) == 0 {
		b.turns[uid] = now.Add(turnLifetime)
		return nil, true
	}
	b.enqueue(uid)
	return b.cause, false
}

// isOpen says whether nobody may call now.
func (b *breaker) isOpen(now time.Time) bool { return b.cause != nil && now.Before(b.until) }

// maxCalls is how many may call at once.
func (b *breaker) maxCalls() int {
	if b.cause != nil && b.cause.Class != instance.RateLimited {
		return 1
	}
	return b.window
}

func (b *breaker) enqueue(uid string) {
	if _, waits := b.queued[uid]; !waits {
		b.queued[uid] = struct{}{}
		b.queue = append(b.queue, uid)
	}
}

// began marks uid's call as under way.
func (b *breaker) began(uid string) { b.turns[uid] = time.Time{} }

// ended records a call that began at an instant; failure is nil for a success. A call that began
// before the breaker opened is ignored, because many calls that fail at once are one refusal.
func (b *breaker) ended(uid string, began, now time.Time, failure *instance.Failure) {
	delete(b.turns, uid)
	b.used = now
	if b.cause != nil && !began.After(b.opened) {
		return
	}
	if failure == nil {
		if b.cause != nil {
			b.cause, b.refusals = nil, 0
		}
		b.window = min(b.window+1, maxWindow)
		return
	}
	pause, opens := failure.Class.BreakerBackoff()
	if !opens {
		return
	}
	if failure.Class == instance.Credentials {
		pause = instance.Backoff{First: b.credentialRetry, Last: b.credentialRetry}
	}
	if b.cause == nil || b.cause.Class != failure.Class {
		b.refusals = 0
	}
	wait := max(pause.Nth(b.refusals+1), failure.RetryAfter)
	b.refusals++
	b.opened, b.until = now, now.Add(wait)
	// What else came with the failure is the business of the machine whose it was.
	b.cause = &instance.Failure{Class: failure.Class, Reason: failure.Reason, Message: failure.Message}
	b.window = 1
	if failure.Class == instance.RateLimited {
		b.window = max(1, (len(b.turns)+1)/2)
	}
}

// next returns those of the queue whose turn it is now. Turns that were not used in time are gone,
// unless wanted says that the machine waits for something else.
func (b *breaker) next(now time.Time, wanted func(uid string) bool) []string {
	for uid, until := range b.turns {
		if !until.IsZero() && !now.Before(until) {
			delete(b.turns, uid)
			if wanted(uid) {
				b.turns[uid] = now.Add(turnLifetime)
			}
		}
	}
	if b.isOpen(now) {
		return nil
	}
	var next []string
	for len(b.queue) > 0 && len(b.turns) < b.maxCalls() {
		uid := b.queue[0]
		b.queue = b.queue[1:]
		delete(b.queued, uid)
		b.turns[uid] = now.Add(turnLifetime)
		next = append(next, uid)
	}
	return next
}

// due is when next has to be asked again though no call ends before; zero for never. Ask next
// first.
func (b *breaker) due(now time.Time) time.Time {
	if len(b.queue) == 0 {
		return time.Time{}
	}
	if b.isOpen(now) {
		return b.until
	}
	var due time.Time
	for _, until := range b.turns {
		due = earlier(due, until)
	}
	return due
}

// drop forgets uid, unless its call is under way.
func (b *breaker) drop(uid string) {
	if until, has := b.turns[uid]; has && !until.IsZero() {
		delete(b.turns, uid)
	}
	if _, waits := b.queued[uid]; !waits {
		return
	}
	delete(b.queued, uid)
	b.queue = slices.DeleteFunc(b.queue, func(one string) bool { return one == uid })
}

// isIdle says whether the breaker can be dropped without losing anything.
func (b *breaker) isIdle(now time.Time) bool {
	return len(b.turns) == 0 && len(b.queue) == 0 && !b.isOpen(now) && now.Sub(b.used) > breakerMemory
}

// breakerMemory is how long an account that nobody uses is remembered.
const breakerMemory = time.Hour
