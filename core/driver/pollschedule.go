package driver

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// pollSchedule is who is polled, what was found, and when to poll again. It is pure: no lock, no
// clock.
type pollSchedule struct {
	polling  Polling
	machines map[string]*tracked
	// accounts are the lists of each set of machines that one ListMachines can speak for.
	accounts map[account]*listing
	// calm is when a list may begin beside one that is under way in another account: that one may
	// well hold this account's machines too, but an account that hangs must not hold up the others.
	calm time.Time
}

// account is what names a cloud account, as far as core can know: spec and secrets, hashed.
type account uint64

type tracked struct {
	machine  Machine
	account  account
	pace     Pace
	due      time.Time
	inFlight bool
	seen     instance.Observation
	// last is when a poll last began; zero before the first.
	last time.Time
	// answer is what the last call for the machine was answered with, and answered when.
	answer   *instance.Instance
	answered time.Time
}

// listing is the state of one account's list.
type listing struct {
	members, pending int
	underWay         bool
	// next is when the next one may begin.
	next time.Time
}

// batch is one thing to do: a list for an account, or a poll of one machine.
type batch struct {
	account account
	list    bool
	// machine is the one to poll; of a list, one whose spec and secrets name the account.
	machine Machine
}

func newPollSchedule(polling Polling) *pollSchedule {
	return &pollSchedule{polling: polling, machines: map[string]*tracked{}, accounts: map[account]*listing{}}
}

var accountSeed = maphash.MakeSeed()

func accountOf(m Machine) account {
	var h maphash.Hash
	h.SetSeed(accountSeed)
	_, _ = h.Write(m.Spec)
	for _, name := range slices.Sorted(maps.Keys(m.Secrets)) {
		_, _ = h.WriteString("\x00" + name + "\x00")
		_, _ = h.Write(m.Secrets[name])
	}
	return account(h.Sum64())
}

// track adds m, or replaces what is known of it, and returns when it is due. The first poll comes
// not before first.
func (s *pollSchedule) track(m Machine, pace Pace, now, first time.Time) time.Time {
	known, again := s.machines[m.UID]
	if !again {
		known = &tracked{due: later(first, now.Add(s.polling.Interval))}
		s.machines[m.UID] = known
	}
	if again {
		s.leave(known)
	}
	if again && pace == Pending && known.pace != Pending {
		known.due = later(now, known.last.Add(s.polling.Interval))
	}
	known.machine, known.pace, known.account = m, pace, accountOf(m)
	s.join(known)
	return known.due
}

func (s *pollSchedule) untrack(uid string) {
	if known, isTracked := s.machines[uid]; isTracked {
		s.leave(known)
		delete(s.machines, uid)
	}
}

func (s *pollSchedule) join(m *tracked) {
	l, known := s.accounts[m.account]
	if !known {
		l = &listing{}
		s.accounts[m.account] = l
	}
	l.members++
	if m.pace == Pending {
		l.pending++
	}
}

func (s *pollSchedule) leave(m *tracked) {
	l := s.accounts[m.account]
	l.members--
	if m.pace == Pending {
		l.pending--
	}
	if l.members == 0 {
		delete(s.accounts, m.account)
	}
}

// due returns what to poll now, and marks it as being polled; next is when to ask again, zero for
// never.
func (s *pollSchedule) due(now time.Time, canList bool) (batches []batch, next time.Time) {
	for _, m := range s.machines {
		if m.inFlight {
			continue
		}
		if m.due.After(now) {
			next = earlier(next, m.due)
			continue
		}
		byList := canList && s.isListed(m)
		if !byList {
			m.inFlight = true
			batches = append(batches, batch{account: m.account, machine: m.machine})
			continue
		}
		l := s.accounts[m.account]
		// The end of the list that is under way asks again.
		if l.underWay {
			continue
		}
		if after := later(s.calm, l.next); after.After(now) {
			next = earlier(next, after)
			continue
		}
		l.next, l.underWay = now.Add(s.polling.Interval), true
		s.calm = now.Add(s.polling.Interval)
		batches = append(batches, batch{account: m.account, list: true, machine: m.machine})
	}
	slices.SortFunc(batches, func(a, b batch) int { return cmp.Compare(a.machine.UID, b.machine.UID) })
	return batches, next
}

// isListed says whether m is best polled by listing: more than a handful of its account go at its
// pace.
func (s *pollSchedule) isListed(m *tracked) bool {
	l := s.accounts[m.account]
	if m.pace == Pending {
		return l.pending > s.polling.Handful
	}
	return l.members > s.polling.Handful
}

// endList opens the account for its next list, which begins after a rest, and all other accounts at
// once: whom this list showed is not due any more.
func (s *pollSchedule) endList(a account, rested time.Time) {
	s.calm = time.Time{}
	if l, known := s.accounts[a]; known {
		l.underWay, l.next = false, later(l.next, rested)
	}
}

// restPerList is how many times as long as a list took there is none: a cloud that answers it
// slowly has other work to do, often that which is waited for.
const restPerList = 4

// restAfter is how long to wait after a list.
func (s *pollSchedule) restAfter(l poll) time.Duration {
	return min(restPerList*l.ended.Sub(l.began), s.polling.MaxInterval)
}

// unlisted returns the due machines of an account that a complete list did not show, and marks them
// as being polled: each is asked for by its uid before its absence is believed.
func (s *pollSchedule) unlisted(a account, shown map[string]struct{}, now time.Time) []Machine {
	var unlisted []Machine
	for uid, m := range s.machines {
		if _, there := shown[uid]; there || m.account != a || m.inFlight || m.due.After(now) {
			continue
		}
		m.inFlight = true
		unlisted = append(unlisted, m.machine)
	}
	slices.SortFunc(unlisted, func(a, b Machine) int { return cmp.Compare(a.UID, b.UID) })
	return unlisted
}

// dueOf returns the uids of an account's machines that are due.
func (s *pollSchedule) dueOf(a account, now time.Time) []string {
	var uids []string
	for uid, m := range s.machines {
		if m.account == a && !m.inFlight && !m.due.After(now) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// observed returns what the last poll of uid found; false before the first.
func (s *pollSchedule) observed(uid string) (instance.Observation, bool) {
	m, isTracked := s.machines[uid]
	if !isTracked || m.seen.Looks == 0 {
		return instance.Observation{}, false
	}
	return m.seen, true
}

// poll is what a poll found: an instance, or a failure.
type poll struct {
	began, ended time.Time
	instance     *instance.Instance
	failure      *instance.Failure
	// oneByOne: the machine was polled alone, which backs off.
	oneByOne bool
}

// found records a poll of uid and says whether the machine should hear of it. Polls of machines
// that are not tracked any more, and polls older than what is known, are dropped.
func (s *pollSchedule) found(uid string, l poll) bool {
	m, isTracked := s.machines[uid]
	if !isTracked {
		return false
	}
	if l.oneByOne {
		m.inFlight = false
	}
	if l.began.Before(m.seen.At) {
		return false
	}
	previous := m.seen
	m.seen = instance.Observation{Instance: l.instance, Failure: l.failure, At: l.began, Looks: 1}
	if l.failure != nil && !isAbsent(l) {
		m.seen.Instance = previous.Instance
	}
	changed := previous.Looks == 0 || !sameInstance(previous.Instance, m.seen.Instance) || !sameFailure(previous.Failure, l.failure)
	if !changed {
		m.seen.Looks = previous.Looks + 1
	}
	m.last = l.ended
	m.due = l.ended.Add(s.pause(m, l))
	return changed || isAbsent(l) && m.seen.Looks == 2 || m.correctsAnswer(previous.At)
}

// correctsAnswer says whether the last poll is the first after a call, and tells something else
// than its answer. What polls told that began before the answer was given, the machine did not
// believe.
func (m *tracked) correctsAnswer(previous time.Time) bool {
	return previous.Before(m.answered) && !m.seen.At.Before(m.answered) && !sameInstance(m.answer, m.seen.Instance)
}

// recordAnswer records what a call for uid was answered with.
func (s *pollSchedule) recordAnswer(uid string, at time.Time, answer *instance.Instance) {
	if m, isTracked := s.machines[uid]; isTracked {
		m.answer, m.answered = answer, at
	}
}

// recordLost records that a poll of uid came to nothing, so that nothing is known that was not
// before.
func (s *pollSchedule) recordLost(uid string, now time.Time) {
	if m, isTracked := s.machines[uid]; isTracked {
		m.inFlight = false
		m.due = now.Add(s.polling.Interval)
	}
}

func isAbsent(l poll) bool {
	return l.failure != nil && l.failure.Class == instance.NotFound
}

// pause is how long to wait after a poll: as long as the driver asked for, and longer while nothing
// changes.
func (s *pollSchedule) pause(m *tracked, l poll) time.Duration {
	pause := s.polling.Interval
	// Absence is confirmed soon.
	if isAbsent(l) && m.seen.Looks == 1 {
		return pause
	}
	if l.oneByOne || l.failure != nil {
		pause = instance.Backoff{First: s.polling.Interval, Last: s.polling.MaxInterval}.Nth(m.seen.Looks)
	}
	if m.pace == Settled {
		pause = s.polling.SettledInterval
	}
	if m.pace == Settled && l.oneByOne {
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

// earlier treats zero as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
