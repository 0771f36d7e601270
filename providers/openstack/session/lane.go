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

// lane is what the writes of a project to one service go through, in the order in which they come.
// How many are under way at once follows the service: half as many after an answer that was slow,
// one more after one that was not while others wait. A service with one worker would answer sixteen
// writes one after another, the last of them after their timeout. What those asked for would be
// made all the same.
//
// Source of the rule: additive increase, multiplicative decrease, as of RFC 5681.
type lane struct {
	// most is how many there are at most; slow is how long an answer takes that is slow.
	most int
	slow time.Duration

	mu sync.Mutex
	// room is how many may be under way now, busy how many are.
	room, busy int
	waiting    []chan struct{}
	// shrunk is when room was last halved. Slow answers to what was sent before tell nothing new.
	shrunk time.Time
}

func newLane(most int, slow time.Duration) *lane {
	return &lane{most: most, slow: slow, room: min(firstWrites, most)}
}

// enter waits for a place until ctx ends, and says whether there was one.
func (l *lane) enter(ctx context.Context) bool {
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
func (l *lane) queue() (turn chan struct{}, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy < l.room {
		l.busy++
		return nil, true
	}
	turn = make(chan struct{})
	l.waiting = append(l.waiting, turn)
	return turn, false
}

// leave gives a place back, and learns from what was under way in between. A write that was not
// sent teaches nothing: sent is zero then.
func (l *lane) leave(sent, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	switch took := now.Sub(sent); {
	case sent.IsZero():
	case took < l.slow && len(l.waiting) > 0:
		l.room = min(l.room+1, l.most)
	case took >= l.slow && sent.After(l.shrunk):
		l.room = max(1, l.room/2)
		l.shrunk = now
	}
	for len(l.waiting) > 0 && l.busy < l.room {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.busy++
	}
}
