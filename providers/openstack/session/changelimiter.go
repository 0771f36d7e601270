package session

import (
	"context"
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

// changeLimiter is what creations and deletions of machines in a project go through, in the order
// in which they come. How many are under way at once follows the services. Until the first answer
// that is slow it is one more after each answer to a write while others wait; from then on one more
// after as many quick answers as may be under way, and half as many after a slow one. A service with
// one worker would answer sixteen writes one after another, the last of them after their timeout.
// What those asked for would be made all the same.
//
// A change waits before its first request, so that what it has read is not lost if it is refused.
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
	// quick counts the answers that were not slow since limit last changed.
	quick   int
	waiting []chan struct{}
	// shrunk is when limit was last halved. Slow answers to what was sent before tell nothing new.
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

// release gives a place back.
func (l *changeLimiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay--
	l.admit()
}

// learn takes in when a write was sent and answered.
func (l *changeLimiter) learn(sent, answered time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch took := answered.Sub(sent); {
	case took < l.slow && len(l.waiting) > 0:
		l.quick++
		if l.shrunk.IsZero() || l.quick >= l.limit {
			l.limit, l.quick = min(l.limit+1, l.most), 0
		}
	case took >= l.slow && sent.After(l.shrunk):
		l.limit, l.quick = max(1, l.limit/2), 0
		l.shrunk = answered
	}
	l.admit()
}

// admit gives the places that are free to those who wait. The lock is held.
func (l *changeLimiter) admit() {
	for len(l.waiting) > 0 && l.underWay < l.limit {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.underWay++
	}
}
