package session

import (
	"context"
	"slices"
	"sync"
	"time"
)

// firstWrites is how many writes are under way to a service before it has shown how fast it
// answers.
const firstWrites = 4

// writeLimiter is what the writes of a project to one service go through, in the order in which
// they come. How many are under way at once follows the service: half as many after an answer that
// was slow, one more after one that was not while others wait. A service with one worker would
// answer sixteen writes one after another, the last of them after their timeout. What those asked
// for would be made all the same.
//
// Source of the rule: additive increase, multiplicative decrease, as of RFC 5681.
type writeLimiter struct {
	// most is how many there are at most; slow is how long an answer takes that is slow.
	most int
	slow time.Duration

	mu sync.Mutex
	// limit is how many may be under way now, underWay how many are.
	limit, underWay int
	waiting         []chan struct{}
	// shrunk is when limit was last halved. Slow answers to what was sent before tell nothing new.
	shrunk time.Time
}

func newWriteLimiter(most int, slow time.Duration) *writeLimiter {
	return &writeLimiter{most: most, slow: slow, limit: min(firstWrites, most)}
}

// acquire waits for a place until ctx ends, and says whether there was one.
func (l *writeLimiter) acquire(ctx context.Context) bool {
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
func (l *writeLimiter) queue() (turn chan struct{}, mine bool) {
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

// release gives a place back, and learns from what was under way in between. A write that was not
// sent teaches nothing: sent is zero then.
func (l *writeLimiter) release(sent, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay--
	switch took := now.Sub(sent); {
	case sent.IsZero():
	case took < l.slow && len(l.waiting) > 0:
		l.limit = min(l.limit+1, l.most)
	case took >= l.slow && sent.After(l.shrunk):
		l.limit = max(1, l.limit/2)
		l.shrunk = now
	}
	for len(l.waiting) > 0 && l.underWay < l.limit {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.underWay++
	}
}
