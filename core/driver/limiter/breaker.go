package limiter

import (
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// breaker is the circuit breaker of one Key: of one operation by one spec and one set of secrets.
// It keeps machines from hammering a cloud that refuses them all for one cause that no machine can
// help.
//
// While it is closed, it lets a handful of calls through at once, and one more after each success.
// A refusal opens it: nobody calls before a wait is over, which grows from refusal to refusal. Then
// one call probes, and its success closes the breaker. After a rate limit half as many may call at
// once as before, because that refusal depends on how many call.
type breaker struct {
	// queue are the calls that wait, by arrival.
	queue []*call
	// window is how many calls may be active at once, active how many have a turn or are under way.
	window, active int
	// cause is the refusal that opened the breaker; nil while it is closed. opened is since when it
	// has been open. Nobody may call before until.
	cause         *instance.Failure
	opened, until time.Time
	// refusals counts them in a row.
	refusals int
	used     time.Time
}

const (
	// firstWindow is how many calls of an account are under way before the first has succeeded:
	// with credentials that are refused it is all there is.
	firstWindow = 4
	maxWindow   = 1 << 12
	// windowMemory is how long successes count: what worked a while ago may be refused by now.
	windowMemory = 5 * time.Second
	// breakerMemory is how long an account that nobody uses is remembered.
	breakerMemory = time.Hour
)

// isOpen says whether nobody may call now.
func (b *breaker) isOpen(now time.Time) bool { return b.cause != nil && now.Before(b.until) }

// permits says whether one more may call now.
func (b *breaker) permits(now time.Time) bool { return !b.isOpen(now) && b.active < b.maxCalls() }

// maxCalls is how many may call at once.
func (b *breaker) maxCalls() int {
	if b.cause != nil && b.cause.Class != instance.RateLimited {
		return 1
	}
	return b.window
}

// forgetSuccesses forgets successes of before a rest. Call it when somebody asks.
func (b *breaker) forgetSuccesses(now time.Time) {
	if b.active == 0 && now.Sub(b.used) > windowMemory {
		b.window = min(b.window, firstWindow)
	}
	b.used = now
}

// record takes over how a call ended that began at an instant. A call that began before the breaker
// opened is ignored, because many calls that fail at once are one refusal.
func (b *breaker) record(began, now time.Time, failure *instance.Failure, credentialRetry time.Duration) {
	b.used = now
	if b.cause != nil && !began.After(b.opened) {
		return
	}
	if failure == nil {
		b.cause, b.refusals = nil, 0
		b.window = min(b.window+1, maxWindow)
		return
	}
	pause, opens := failure.Class.BreakerBackoff()
	if !opens {
		return
	}
	if failure.Class == instance.Credentials {
		pause = instance.Backoff{First: credentialRetry, Last: credentialRetry}
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
		b.window = max(1, (b.active+1)/2)
	}
}

// isIdle says whether the breaker can be dropped without losing anything.
func (b *breaker) isIdle(now time.Time) bool {
	return b.active == 0 && len(b.queue) == 0 && !b.isOpen(now) && now.Sub(b.used) > breakerMemory
}
