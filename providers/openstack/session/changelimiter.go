package session

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// firstChanges is how many machines are created or deleted at once before the services have
	// shown how fast they answer.
	firstChanges = 4
	// slowAnswer is the part of a request's timeout after which an answer is a slow one. With twice
	// as many writes under way, to which growth can lead, it still comes in time.
	slowAnswer = 3
)

// changeLimiter is what calls that create or delete machines of a project go through, in the order
// in which they come. How many are under way at once follows the services:
//
//   - One more after each call with quick answers, while others wait.
//   - Half as many after a slow answer. Calls that began before then count no more.
//   - From then on one more only after as many such calls as may be under way.
//
// A service with one worker would answer thirty writes one after another, the last of them after
// their timeout. What those asked for would be made all the same.
//
// A call waits before its first request, so that what it has read is not lost if it is refused.
//
// Source of the rule: slow start, additive increase and multiplicative decrease, as of RFC 5681.
type changeLimiter struct {
	// most is how many there are at most; slow is how long an answer takes that is slow.
	most    int
	slow    time.Duration
	clock   func() time.Time
	observe func(waited time.Duration)

	mu sync.Mutex
	// limit is how many may be under way now, underWay how many are.
	limit, underWay int
	// quick counts the calls with quick answers since limit last changed.
	quick   int
	waiting []chan struct{}
	// shrunk is when limit was last halved. What began before tells nothing new.
	shrunk time.Time
}

// newChangeLimiter returns a limiter for twice as many changes as there may be reads: each writes
// to Neutron and Nova in turn.
func newChangeLimiter(o Options) *changeLimiter {
	most := 2 * o.MaxConcurrent
	return &changeLimiter{
		most: most, slow: o.RequestTimeout / slowAnswer, clock: o.Clock, observe: o.ObserveWait, limit: min(firstChanges, most),
	}
}

// change is a creation or deletion that is under way: the context of its requests has it.
type change struct {
	limiter *changeLimiter
	began   time.Time

	mu sync.Mutex
	// answers says that a write was answered, bad that one was not, or slowly, or refused because
	// the service has too much to do.
	answers, bad bool
}

// changeKey is the key of a change in a context.
type changeKey struct{}

// changeOf returns the change that a request is for; nil for none.
func changeOf(ctx context.Context) *change {
	of, _ := ctx.Value(changeKey{}).(*change)
	return of
}

// start waits until one more machine may be changed, and returns the context of its requests; false
// if patient, a part of ctx, ends before.
func (l *changeLimiter) start(ctx, patient context.Context) (context.Context, *change, bool) {
	came := l.clock()
	admitted := l.acquire(patient)
	now := l.clock()
	l.observe(now.Sub(came))
	if !admitted {
		return ctx, nil, false
	}
	mine := &change{limiter: l, began: now}
	return context.WithValue(ctx, changeKey{}, mine), mine, true
}

// answered takes in how long a write has taken, and its answer; nil for none.
func (c *change) answered(sent, ended time.Time, answer *http.Response) {
	isSlow := ended.Sub(sent) >= c.limiter.slow
	isGood := answer != nil && answer.StatusCode < http.StatusInternalServerError && !asksToWait(answer.StatusCode)
	c.mu.Lock()
	c.answers, c.bad = true, c.bad || isSlow || !isGood
	c.mu.Unlock()
	if isSlow {
		c.limiter.shrink(c.began, ended)
	}
}

// end gives the change's place back.
func (c *change) end() {
	c.mu.Lock()
	quick := c.answers && !c.bad
	c.mu.Unlock()
	c.limiter.release(c.began, quick)
}

// acquire waits for a place until ctx ends, and says whether there was one.
func (l *changeLimiter) acquire(ctx context.Context) bool {
	turn, mine := l.queue()
	if mine {
		return true
	}
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.waiting, turn)
	if at < 0 {
		return true // the turn came in the same moment
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	return false
}

// queue takes a place if one is free, or else returns what is closed when the turn has come.
func (l *changeLimiter) queue() (turn chan struct{}, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underWay < l.limit {
		l.underWay++
		return nil, true
	}
	turn = make(chan struct{})
	l.waiting = append(l.waiting, turn)
	return turn, false
}

// shrink halves the limit after a slow answer to a change that began at a time.
func (l *changeLimiter) shrink(began, answered time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began.After(l.shrunk) {
		l.limit, l.quick, l.shrunk = max(1, l.limit/2), 0, answered
	}
}

// release gives a place back, and lets the limit grow after a machine with quick answers. Then it
// gives the places that are free to those who wait.
func (l *changeLimiter) release(began time.Time, quick bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay--
	if quick && began.After(l.shrunk) && len(l.waiting) > 0 {
		l.quick++
		if l.shrunk.IsZero() || l.quick >= l.limit {
			l.limit, l.quick = min(l.limit+1, l.most), 0
		}
	}
	for len(l.waiting) > 0 && l.underWay < l.limit {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.underWay++
	}
}
