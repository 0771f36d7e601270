package poller

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
)

// schedule is who is polled, what was found, and when to poll again. It is pure: no lock, no
// clock.
type schedule struct {
	polling  Polling
	machines map[string]*tracked
	// queue holds the machines that are not due yet, the next one first.
	queue pollQueue
	// accounts are the lists of each set of machines that one ListMachines can speak for. The
	// set waiting names those with machines that are due and not in flight.
	accounts map[uint64]*listing
	waiting  map[uint64]struct{}
	// calls are the uids with a call under way that makes or deletes the VM.
	calls map[string]struct{}
	// nextListAt is when a list may begin beside one that is under way in another account. That one
	// may hold this account's machines too, but an account that hangs must not hold up the others.
	nextListAt time.Time
}

type tracked struct {
	machine  wire.Machine
	account  uint64
	interval instance.PollInterval
	due      time.Time
	// index is the place in the queue; -1 for a machine that is due or in flight.
	index    int
	inFlight bool
	seen     instance.Observation
	// last is when the last poll ended; zero before the first.
	last time.Time
	// answer is what the last call for the machine was answered with, and answered when.
	answer   *instance.Instance
	answered time.Time
}

// listing is the state of one account's list.
type listing struct {
	members map[string]*tracked
	// waiting are those of the members that are due and not in flight, by their interval.
	waiting map[instance.PollInterval]map[string]*tracked
	// pending counts the members of that interval.
	pending  int
	underWay bool
	// next is when the next one may begin.
	next time.Time
}

// batch is one thing to do: a list (ListMachines) for an account, or a poll (GetMachineStatus) of
// one machine.
type batch struct {
	account uint64
	list    bool
	// machine is the one to poll; of a list, one whose spec and secrets name the account.
	machine wire.Machine
}

func newSchedule(polling Polling) *schedule {
	return &schedule{
		polling: polling, machines: map[string]*tracked{},
		accounts: map[uint64]*listing{}, waiting: map[uint64]struct{}{}, calls: map[string]struct{}{},
	}
}

// track adds m, or replaces what is known of it. The first poll comes not before first.
func (s *schedule) track(m wire.Machine, interval instance.PollInterval, now, first time.Time) {
	known, again := s.machines[m.UID]
	if !again {
		known = &tracked{due: later(first, now.Add(s.polling.Interval)), index: -1}
		s.machines[m.UID] = known
	}
	if again {
		s.leave(known)
	}
	if again && interval == instance.PollPending && known.interval != instance.PollPending {
		known.due = later(now, known.last.Add(s.polling.Interval))
	}
	known.machine, known.interval, known.account = m, interval, m.Account()
	s.join(known)
	if !known.inFlight {
		s.enqueue(known)
	}
}

func (s *schedule) untrack(uid string) {
	if known, isTracked := s.machines[uid]; isTracked {
		s.leave(known)
		delete(s.machines, uid)
	}
}

func (s *schedule) join(m *tracked) {
	l, known := s.accounts[m.account]
	if !known {
		l = &listing{
			members: map[string]*tracked{}, waiting: map[instance.PollInterval]map[string]*tracked{instance.PollPending: {}, instance.PollSettled: {}},
		}
		s.accounts[m.account] = l
	}
	l.members[m.machine.UID] = m
	if m.interval == instance.PollPending {
		l.pending++
	}
}

func (s *schedule) leave(m *tracked) {
	s.dequeue(m)
	l := s.accounts[m.account]
	delete(l.members, m.machine.UID)
	if m.interval == instance.PollPending {
		l.pending--
	}
	if len(l.members) == 0 {
		delete(s.accounts, m.account)
	}
}

// enqueue puts m into the queue by its due time, wherever it was before.
func (s *schedule) enqueue(m *tracked) {
	s.dequeue(m)
	heap.Push(&s.queue, m)
}

// dequeue takes m out of the queue, or out of those that wait for their account's list.
func (s *schedule) dequeue(m *tracked) {
	if m.index >= 0 {
		heap.Remove(&s.queue, m.index)
		return
	}
	l := s.accounts[m.account]
	delete(l.waiting[m.interval], m.machine.UID)
	if len(l.waiting[instance.PollPending])+len(l.waiting[instance.PollSettled]) == 0 {
		delete(s.waiting, m.account)
	}
}

// due returns what to poll now, and marks it as being polled; next is when to ask again, zero for
// never. It touches only machines that have become due since the last call, and the accounts of
// those that still wait.
func (s *schedule) due(now time.Time, canList bool) (batches []batch, next time.Time) {
	for len(s.queue) > 0 && !s.queue[0].due.After(now) {
		m := s.queue[0]
		heap.Pop(&s.queue)
		s.accounts[m.account].waiting[m.interval][m.machine.UID] = m
		s.waiting[m.account] = struct{}{}
	}
	if len(s.queue) > 0 {
		next = s.queue[0].due
	}
	for a := range s.waiting {
		ready, after := s.dueIn(a, now, canList)
		batches, next = append(batches, ready...), earliest.Instant(next, after)
	}
	slices.SortFunc(batches, func(a, b batch) int { return cmp.Compare(a.machine.UID, b.machine.UID) })
	return batches, next
}

// dueIn is due for the machines of one account that wait. next is zero unless a list has to wait.
func (s *schedule) dueIn(a uint64, now time.Time, canList bool) (batches []batch, next time.Time) {
	l := s.accounts[a]
	var byList *tracked
	for interval, waiting := range l.waiting {
		for _, m := range waiting {
			if canList && s.isListed(l, interval) {
				byList = m
				break
			}
			s.dequeue(m)
			m.inFlight = true
			batches = append(batches, batch{account: a, machine: m.machine})
		}
	}
	// The end of the list that is under way asks again.
	if byList == nil || l.underWay {
		return batches, time.Time{}
	}
	if after := later(s.nextListAt, l.next); after.After(now) {
		return batches, after
	}
	l.next, l.underWay = now.Add(s.polling.Interval), true
	s.nextListAt = now.Add(s.polling.Interval)
	return append(batches, batch{account: a, list: true, machine: byList.machine}), time.Time{}
}

// isListed says whether the account's machines of an interval are polled by listing. Settled ones
// always are: a list costs one call, as one machine does. Pending ones are where there are more
// than Handful: a list answers later than a single status, and the next one has to wait.
func (s *schedule) isListed(l *listing, interval instance.PollInterval) bool {
	return interval == instance.PollSettled || l.pending > s.polling.Handful
}

// endList opens the account for its next list, which begins after a rest, and all other accounts at
// once: whom this list showed is not due any more.
func (s *schedule) endList(a uint64, rested time.Time) {
	s.nextListAt = time.Time{}
	if l, known := s.accounts[a]; known {
		l.underWay, l.next = false, later(l.next, rested)
	}
}

// restPerList is how many times as long as a list took there is none: a cloud that answers it
// slowly has other work to do, often that which is waited for.
const restPerList = 4

// restAfter is how long to wait after a list.
func (s *schedule) restAfter(l poll) time.Duration {
	return min(restPerList*l.ended.Sub(l.began), s.polling.MaxInterval)
}

// takeMissing returns the due machines of an account that a complete list did not show. It marks
// them as being polled: each is asked for by its uid before its absence is believed. Of a machine
// with a call under way, the call's answer tells as much.
func (s *schedule) takeMissing(a uint64, shown map[string]struct{}, now time.Time) []wire.Machine {
	var missing []wire.Machine
	for _, uid := range s.dueOf(a, now) {
		if _, there := shown[uid]; there {
			continue
		}
		m := s.machines[uid]
		if _, calling := s.calls[uid]; calling {
			m.due = now.Add(s.polling.Interval)
			s.enqueue(m)
			continue
		}
		s.dequeue(m)
		m.inFlight = true
		missing = append(missing, m.machine)
	}
	return missing
}

// dueOf returns the uids of an account's machines that are due and not in flight, sorted.
func (s *schedule) dueOf(a uint64, now time.Time) []string {
	l, known := s.accounts[a]
	if !known {
		return nil
	}
	var uids []string
	for uid, m := range l.members {
		if !m.inFlight && !m.due.After(now) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// poll is what a poll found: an instance, or a failure.
type poll struct {
	began, ended time.Time
	instance     *instance.Instance
	failure      *instance.Failure
	// oneByOne: the machine was polled alone, which backs off.
	oneByOne bool
}

// pause is how long to wait after a poll: as long as the driver asked for, and longer while nothing
// changes.
func (s *schedule) pause(m *tracked, l poll) time.Duration {
	pause := s.polling.Interval
	// Absence is confirmed soon.
	if isAbsent(l) && m.seen.Looks == 1 {
		return pause
	}
	if l.oneByOne || l.failure != nil {
		pause = instance.Backoff{First: s.polling.Interval, Last: s.polling.MaxInterval}.Nth(m.seen.Looks)
	}
	if m.interval == instance.PollSettled {
		pause = s.polling.SettledInterval
	}
	if m.interval == instance.PollSettled && l.oneByOne {
		pause *= settledAlone
	}
	// What failed is tried again soon, then ever later.
	if l.failure != nil && !isAbsent(l) {
		pause = instance.Backoff{First: s.polling.Interval, Last: pause}.Nth(m.seen.Looks)
	}
	if l.instance != nil {
		pause = max(pause, l.instance.PollAfter)
	}
	if l.failure != nil {
		pause = max(pause, l.failure.RetryAfter)
	}
	return pause
}

// settledAlone is how many times rarer settled machines are polled where each costs a call.
const settledAlone = 5

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
