package driver

import (
	"slices"
	"time"
)

// reservation is how long a machine whose turn has come may take to start its call.
const reservation = 30 * time.Second

// limiter is the concurrency limiter of one driver: it counts the requests under way to one driver,
// and queues those who want one. It is pure: no lock, no clock.
//
// Mutations come in turn, each when its machine asks again; a slot that became free is set aside
// for the first in the queue. Polls go before them, for they are few: a handful, or one list for
// all. Where they are not, because a driver cannot list or is slow, they get half of the slots
// while mutations queue; of a single slot, what the queue leaves. A driver whose cloud limits its
// rate gets half as many requests, then one more after each that succeeds.
type limiter struct {
	// limit is what the driver takes, allowed what it gets now.
	limit, allowed int
	// used are the slots of requests under way, polls those of them that are for polls.
	used, polls int
	reserved    map[string]time.Time
	queue       []string
	queued      map[string]struct{}
	// pollWaiters wait for a free slot; closing one hands it over.
	pollWaiters []chan struct{}
}

func newLimiter(limit int) *limiter {
	return &limiter{limit: limit, allowed: limit, reserved: map[string]time.Time{}, queued: map[string]struct{}{}}
}

// setLimit follows a driver that came back with another limit.
func (l *limiter) setLimit(limit int) {
	l.limit, l.allowed = limit, limit
}

// reserve sets a slot aside for uid, or puts it at the end of the queue where it is not in it yet.
func (l *limiter) reserve(uid string, now time.Time) bool {
	_, mine := l.reserved[uid]
	free := l.used+len(l.reserved) < l.allowed && len(l.queue) == 0
	if mine || free {
		l.reserved[uid] = now.Add(reservation)
		return true
	}
	if _, waits := l.queued[uid]; !waits {
		l.queued[uid] = struct{}{}
		l.queue = append(l.queue, uid)
	}
	return false
}

// take turns uid's reservation into a request under way, making one where it can.
func (l *limiter) take(uid string, now time.Time) bool {
	if !l.reserve(uid, now) {
		return false
	}
	delete(l.reserved, uid)
	if l.used >= l.allowed {
		// What was set aside is gone since the driver gets less: it is the first in the queue
		// again.
		l.queued[uid] = struct{}{}
		l.queue = slices.Insert(l.queue, 0, uid)
		return false
	}
	l.used++
	return true
}

// acquirePoll asks for a slot for a poll: nil when it is there already, else a channel that is
// closed once it is.
func (l *limiter) acquirePoll() <-chan struct{} {
	if l.hasRoomForPoll() {
		l.used++
		l.polls++
		return nil
	}
	turn := make(chan struct{})
	l.pollWaiters = append(l.pollWaiters, turn)
	return turn
}

// hasRoomForPoll says whether a slot is free for a poll.
func (l *limiter) hasRoomForPoll() bool {
	return l.used+len(l.reserved) < l.allowed && (len(l.queue) == 0 || l.polls < l.allowed/2)
}

// grantPolls gives polls that wait what is free for them.
func (l *limiter) grantPolls() {
	for len(l.pollWaiters) > 0 && l.hasRoomForPoll() {
		close(l.pollWaiters[0])
		l.pollWaiters = l.pollWaiters[1:]
		l.used++
		l.polls++
	}
}

// abandonPoll gives up a wait for acquirePoll's channel, or gives back the slot that came
// meanwhile.
func (l *limiter) abandonPoll(turn <-chan struct{}) {
	l.pollWaiters = slices.DeleteFunc(l.pollWaiters, func(one chan struct{}) bool { return one == turn })
	select {
	case <-turn:
		l.releasePoll()
	default:
	}
}

// release gives a mutation's slot back, releasePoll a poll's. Call turns afterwards.
func (l *limiter) release() {
	l.used--
}

func (l *limiter) releasePoll() {
	l.used--
	l.polls--
}

// turns hands out what is free: to polls at once, as many as may be, then to the queue. It returns
// those of the queue whose turn it is now; overdue reservations of others are gone.
func (l *limiter) turns(now time.Time) []string {
	for uid, until := range l.reserved {
		if !now.Before(until) {
			delete(l.reserved, uid)
		}
	}
	l.grantPolls()
	var next []string
	for len(l.queue) > 0 && l.used+len(l.reserved) < l.allowed {
		uid := l.queue[0]
		l.queue = l.queue[1:]
		delete(l.queued, uid)
		l.reserved[uid] = now.Add(reservation)
		next = append(next, uid)
	}
	l.grantPolls()
	return next
}

// expiry is when the first reservation runs out; zero where there is none.
func (l *limiter) expiry() time.Time {
	var first time.Time
	for _, until := range l.reserved {
		first = earlier(first, until)
	}
	return first
}

// drop forgets uid's reservation and its place in the queue.
func (l *limiter) drop(uid string) {
	delete(l.reserved, uid)
	if _, waits := l.queued[uid]; !waits {
		return
	}
	delete(l.queued, uid)
	l.queue = slices.DeleteFunc(l.queue, func(one string) bool { return one == uid })
}

// isWaiting says whether uid has a reservation, or queues for one.
func (l *limiter) isWaiting(uid string) bool {
	_, reserved := l.reserved[uid]
	_, queued := l.queued[uid]
	return reserved || queued
}

// dropAll empties the queue and the reservations, and returns whose they were. Requests under way
// still count.
func (l *limiter) dropAll() []string {
	all := l.queue
	for uid := range l.reserved {
		all = append(all, uid)
	}
	l.queue = nil
	clear(l.queued)
	clear(l.reserved)
	return all
}

// halve follows a cloud that limits the rate, grow one that does not any more.
func (l *limiter) halve() { l.allowed = max(1, l.allowed/2) }
func (l *limiter) grow()  { l.allowed = min(l.limit, l.allowed+1) }
