package driver

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// watchlist is who is looked at, what was found, and when to look again. It is pure: no lock, no clock.
type watchlist struct {
	polling Polling
	watched map[string]*watched
	// accounts are the lists of each set of machines that one ListMachines can speak for.
	accounts map[account]*listing
	// calm is when a list may begin beside one that is under way in another account: that one may well hold this
	// account's machines too, but an account that hangs must not hold up the others.
	calm time.Time
}

// account is what names a cloud account, as far as core can know: spec and secrets, hashed.
type account uint64

type watched struct {
	machine Machine
	account account
	pace    Pace
	due     time.Time
	looking bool
	seen    instance.Observation
	// last is when a look last began; zero before the first.
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

// batch is one thing to do: a list for an account, or a look at one machine.
type batch struct {
	account account
	list    bool
	// machine is the one to look at; of a list, one whose spec and secrets name the account.
	machine Machine
}

func newWatchlist(polling Polling) *watchlist {
	return &watchlist{polling: polling, watched: map[string]*watched{}, accounts: map[account]*listing{}}
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

// track adds m, or replaces what is known of it, and returns when it is due. The first look comes not before first.
func (w *watchlist) track(m Machine, pace Pace, now, first time.Time) time.Time {
	known, again := w.watched[m.UID]
	if !again {
		known = &watched{due: later(first, now.Add(w.polling.Interval))}
		w.watched[m.UID] = known
	}
	if again {
		w.leave(known)
	}
	if again && pace == Pending && known.pace != Pending {
		known.due = later(now, known.last.Add(w.polling.Interval))
	}
	known.machine, known.pace, known.account = m, pace, accountOf(m)
	w.join(known)
	return known.due
}

func (w *watchlist) untrack(uid string) {
	if known, tracked := w.watched[uid]; tracked {
		w.leave(known)
		delete(w.watched, uid)
	}
}

func (w *watchlist) join(m *watched) {
	l, known := w.accounts[m.account]
	if !known {
		l = &listing{}
		w.accounts[m.account] = l
	}
	l.members++
	if m.pace == Pending {
		l.pending++
	}
}

func (w *watchlist) leave(m *watched) {
	l := w.accounts[m.account]
	l.members--
	if m.pace == Pending {
		l.pending--
	}
	if l.members == 0 {
		delete(w.accounts, m.account)
	}
}

// due returns what to look at now, and marks it as being looked at; next is when to ask again, zero for never.
func (w *watchlist) due(now time.Time, canList bool) (batches []batch, next time.Time) {
	for _, m := range w.watched {
		if m.looking {
			continue
		}
		if m.due.After(now) {
			next = earlier(next, m.due)
			continue
		}
		listed := canList && w.many(m)
		if !listed {
			m.looking = true
			batches = append(batches, batch{account: m.account, machine: m.machine})
			continue
		}
		l := w.accounts[m.account]
		// The end of the list that is under way asks again.
		if l.underWay {
			continue
		}
		if after := later(w.calm, l.next); after.After(now) {
			next = earlier(next, after)
			continue
		}
		l.next, l.underWay = now.Add(w.polling.Interval), true
		w.calm = now.Add(w.polling.Interval)
		batches = append(batches, batch{account: m.account, list: true, machine: m.machine})
	}
	slices.SortFunc(batches, func(a, b batch) int { return cmp.Compare(a.machine.UID, b.machine.UID) })
	return batches, next
}

// many says whether m is best looked at by listing: more than a handful of its account go at its pace.
func (w *watchlist) many(m *watched) bool {
	l := w.accounts[m.account]
	if m.pace == Pending {
		return l.pending > w.polling.Handful
	}
	return l.members > w.polling.Handful
}

// listEnded opens the account for its next list, which begins after a rest, and all other accounts at once: whom this list showed is not
// due any more.
func (w *watchlist) listEnded(a account, rested time.Time) {
	w.calm = time.Time{}
	if l, known := w.accounts[a]; known {
		l.underWay, l.next = false, later(l.next, rested)
	}
}

// restPerList is how many times as long as a list took there is none: a cloud that answers it slowly has other work to do, often that
// which is waited for.
const restPerList = 4

// rest is how long to wait after a list.
func (w *watchlist) rest(l look) time.Duration {
	return min(restPerList*l.ended.Sub(l.began), w.polling.MaxInterval)
}

// missing returns the due machines of an account that a complete list did not show, and marks them as being looked at: each is
// asked for by its uid before its absence is believed.
func (w *watchlist) missing(a account, shown map[string]struct{}, now time.Time) []Machine {
	var missing []Machine
	for uid, m := range w.watched {
		if _, there := shown[uid]; there || m.account != a || m.looking || m.due.After(now) {
			continue
		}
		m.looking = true
		missing = append(missing, m.machine)
	}
	slices.SortFunc(missing, func(a, b Machine) int { return cmp.Compare(a.UID, b.UID) })
	return missing
}

// dueOf returns the uids of an account's machines that are due.
func (w *watchlist) dueOf(a account, now time.Time) []string {
	var uids []string
	for uid, m := range w.watched {
		if m.account == a && !m.looking && !m.due.After(now) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// observed returns what the last look at uid found; false before the first.
func (w *watchlist) observed(uid string) (instance.Observation, bool) {
	m, tracked := w.watched[uid]
	if !tracked || m.seen.Looks == 0 {
		return instance.Observation{}, false
	}
	return m.seen, true
}

// look is what a look found: an instance, or a failure.
type look struct {
	began, ended time.Time
	instance     *instance.Instance
	failure      *instance.Failure
	// oneByOne: the machine was looked at alone, which backs off.
	oneByOne bool
}

// found records a look at uid and says whether the machine should hear of it. Looks at machines that are not tracked
// any more, and looks older than what is known, are dropped.
func (w *watchlist) found(uid string, l look) bool {
	m, tracked := w.watched[uid]
	if !tracked {
		return false
	}
	if l.oneByOne {
		m.looking = false
	}
	if l.began.Before(m.seen.At) {
		return false
	}
	previous := m.seen
	m.seen = instance.Observation{Instance: l.instance, Failure: l.failure, At: l.began, Looks: 1}
	if l.failure != nil && !gone(l) {
		m.seen.Instance = previous.Instance
	}
	changed := previous.Looks == 0 || !sameInstance(previous.Instance, m.seen.Instance) || !sameFailure(previous.Failure, l.failure)
	if !changed {
		m.seen.Looks = previous.Looks + 1
	}
	m.last = l.ended
	m.due = l.ended.Add(w.pause(m, l))
	return changed || gone(l) && m.seen.Looks == 2 || m.corrects(previous.At)
}

// corrects says whether the last look is the first after a call, and tells something else than its answer. What looks told that began
// before the answer was given, the machine did not believe.
func (m *watched) corrects(previous time.Time) bool {
	return previous.Before(m.answered) && !m.seen.At.Before(m.answered) && !sameInstance(m.answer, m.seen.Instance)
}

// told records what a call for uid was answered with.
func (w *watchlist) told(uid string, at time.Time, answer *instance.Instance) {
	if m, tracked := w.watched[uid]; tracked {
		m.answer, m.answered = answer, at
	}
}

// notLooked records that a look at uid came to nothing, so that nothing is known that was not before.
func (w *watchlist) notLooked(uid string, now time.Time) {
	if m, tracked := w.watched[uid]; tracked {
		m.looking = false
		m.due = now.Add(w.polling.Interval)
	}
}

func gone(l look) bool {
	return l.failure != nil && l.failure.Class == instance.NotFound
}

// pause is how long to wait after a look: as long as the driver asked for, and longer while nothing changes.
func (w *watchlist) pause(m *watched, l look) time.Duration {
	pause := w.polling.Interval
	// Absence is confirmed soon.
	if gone(l) && m.seen.Looks == 1 {
		return pause
	}
	if l.oneByOne || l.failure != nil {
		pause = instance.Backoff{First: w.polling.Interval, Last: w.polling.MaxInterval}.Nth(m.seen.Looks)
	}
	if m.pace == Settled {
		pause = w.polling.SettledInterval
	}
	if m.pace == Settled && l.oneByOne {
		pause *= settledAlone
	}
	// What failed is tried again soon, then ever later.
	if l.failure != nil && !gone(l) {
		pause = instance.Backoff{First: w.polling.Interval, Last: pause}.Nth(m.seen.Looks)
	}
	if l.instance != nil {
		pause = max(pause, l.instance.PollAfter)
	}
	if l.failure != nil {
		pause = max(pause, l.failure.RetryAfter)
	}
	return pause
}

// settledAlone is how many times rarer settled machines are looked at where each costs a call.
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
