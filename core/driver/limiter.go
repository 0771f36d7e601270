package driver

import (
	"slices"
	"time"
)

// reservation is how long a machine whose turn has come may take to start its call.
const reservation = 30 * time.Second

// slots counts the requests under way to one driver, and queues those who want one. It is pure: no lock, no clock.
//
// Mutations come in turn, each when its machine asks again; a slot that became free is set aside for the first
// in the queue. Looks go before them, for they are few: a handful, or one list for all. Where they are not, because a driver
// cannot list or is slow, they get half of the slots while mutations queue; of a single slot, what the queue leaves.
// A driver whose cloud limits its rate gets half as many requests, then one more after each that succeeds.
type slots struct {
	// limit is what the driver takes, allowed what it gets now.
	limit, allowed int
	// used are the slots of requests under way, looking those of them that are looks.
	used, looking int
	reserved      map[string]time.Time
	queue         []string
	queued        map[string]struct{}
	// looks are those who wait for a free slot; closing one hands it over.
	looks []chan struct{}
}

func newSlots(limit int) *slots {
	return &slots{limit: limit, allowed: limit, reserved: map[string]time.Time{}, queued: map[string]struct{}{}}
}

// setLimit follows a driver that came back with another limit.
func (s *slots) setLimit(limit int) {
	s.limit, s.allowed = limit, limit
}

// reserve sets a slot aside for uid, or puts it at the end of the queue where it is not in it yet.
func (s *slots) reserve(uid string, now time.Time) bool {
	_, mine := s.reserved[uid]
	free := s.used+len(s.reserved) < s.allowed && len(s.queue) == 0
	if mine || free {
		s.reserved[uid] = now.Add(reservation)
		return true
	}
	if _, waits := s.queued[uid]; !waits {
		s.queued[uid] = struct{}{}
		s.queue = append(s.queue, uid)
	}
	return false
}

// take turns uid's reservation into a request under way, making one where it can.
func (s *slots) take(uid string, now time.Time) bool {
	if !s.reserve(uid, now) {
		return false
	}
	delete(s.reserved, uid)
	if s.used >= s.allowed {
		// What was set aside is gone since the driver gets less: it is the first in the queue again.
		s.queued[uid] = struct{}{}
		s.queue = slices.Insert(s.queue, 0, uid)
		return false
	}
	s.used++
	return true
}

// look asks for a slot for a look: nil when it is there already, else a channel that is closed once it is.
func (s *slots) look() <-chan struct{} {
	if s.roomToLook() {
		s.used++
		s.looking++
		return nil
	}
	turn := make(chan struct{})
	s.looks = append(s.looks, turn)
	return turn
}

// roomToLook says whether a slot is free for a look.
func (s *slots) roomToLook() bool {
	return s.used+len(s.reserved) < s.allowed && (len(s.queue) == 0 || s.looking < s.allowed/2)
}

// handToLooks gives looks that wait what is free for them.
func (s *slots) handToLooks() {
	for len(s.looks) > 0 && s.roomToLook() {
		close(s.looks[0])
		s.looks = s.looks[1:]
		s.used++
		s.looking++
	}
}

// abandon gives up a wait for look's channel, or gives back the slot that came meanwhile.
func (s *slots) abandon(turn <-chan struct{}) {
	s.looks = slices.DeleteFunc(s.looks, func(one chan struct{}) bool { return one == turn })
	select {
	case <-turn:
		s.releaseLook()
	default:
	}
}

// release gives a mutation's slot back, releaseLook a look's. Call turns afterwards.
func (s *slots) release() {
	s.used--
}

func (s *slots) releaseLook() {
	s.used--
	s.looking--
}

// turns hands out what is free: to looks at once, as many as may be, then to the queue. It returns those of the queue whose turn
// it is now; overdue reservations of others are gone.
func (s *slots) turns(now time.Time) []string {
	for uid, until := range s.reserved {
		if !now.Before(until) {
			delete(s.reserved, uid)
		}
	}
	s.handToLooks()
	var next []string
	for len(s.queue) > 0 && s.used+len(s.reserved) < s.allowed {
		uid := s.queue[0]
		s.queue = s.queue[1:]
		delete(s.queued, uid)
		s.reserved[uid] = now.Add(reservation)
		next = append(next, uid)
	}
	s.handToLooks()
	return next
}

// expiry is when the first reservation runs out; zero where there is none.
func (s *slots) expiry() time.Time {
	var first time.Time
	for _, until := range s.reserved {
		first = earlier(first, until)
	}
	return first
}

// drop forgets uid's reservation and its place in the queue.
func (s *slots) drop(uid string) {
	delete(s.reserved, uid)
	if _, waits := s.queued[uid]; !waits {
		return
	}
	delete(s.queued, uid)
	s.queue = slices.DeleteFunc(s.queue, func(one string) bool { return one == uid })
}

// wants says whether uid has a reservation, or queues for one.
func (s *slots) wants(uid string) bool {
	_, reserved := s.reserved[uid]
	_, queued := s.queued[uid]
	return reserved || queued
}

// dropAll empties the queue and the reservations, and returns whose they were. Requests under way still count.
func (s *slots) dropAll() []string {
	all := s.queue
	for uid := range s.reserved {
		all = append(all, uid)
	}
	s.queue = nil
	clear(s.queued)
	clear(s.reserved)
	return all
}

// shrink follows a cloud that limits the rate, grow one that does not any more.
func (s *slots) shrink() { s.allowed = max(1, s.allowed/2) }
func (s *slots) grow()   { s.allowed = min(s.limit, s.allowed+1) }
