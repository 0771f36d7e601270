package poller

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
)

// Observed returns what the last poll found; false before the first one.
func (p *Poller) Observed(uid string) (instance.Observation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.schedule.observed(uid)
}

// Record takes over how a mutation of uid ended, which is a poll, too.
func (p *Poller) Record(uid string, o instance.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Instance != nil {
		p.schedule.found(uid, poll{began: o.Started, ended: o.Ended, instance: o.Instance})
	}
	p.schedule.recordAnswer(uid, o.Ended, o.Instance)
	if o.Operation == instance.Delete && o.Instance == nil && o.Failure == nil {
		// Nothing is left to poll, however long its Machine takes to hear of it.
		p.schedule.untrack(uid)
	}
}

// found records a poll and wakes the machine if it should hear of it. Call it with the lock held.
func (p *Poller) found(m wire.Machine, l poll) {
	if p.schedule.found(m.UID, l) {
		p.client.Wake(m.Key())
	}
}

// isDriverLost says whether a failure only tells that the driver went away, which those who want a
// call are told better.
func isDriverLost(ctx context.Context, failure *instance.Failure) bool {
	if failure == nil {
		return false
	}
	broke := failure.Class == instance.OutcomeUnknown && failure.Reason == wire.ConnectionLost
	return failure.Class == instance.Unavailable || ctx.Err() != nil || broke
}

// observed returns what the last poll of uid found; false before the first.
func (s *schedule) observed(uid string) (instance.Observation, bool) {
	m, isTracked := s.machines[uid]
	if !isTracked || m.seen.Looks == 0 {
		return instance.Observation{}, false
	}
	return m.seen, true
}

// found records a poll of uid and says whether the machine should hear of it. Polls of machines
// that are not tracked any more, and polls older than what is known, are dropped.
func (s *schedule) found(uid string, l poll) bool {
	m, isTracked := s.machines[uid]
	if !isTracked {
		return false
	}
	if l.oneByOne && m.inFlight {
		m.inFlight = false
		s.enqueue(m)
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
	if !m.inFlight {
		s.enqueue(m)
	}
	return changed || isAbsent(l) && m.seen.Looks == 2 || m.correctsAnswer(previous.At)
}

// correctsAnswer says whether the last poll is the first after a call, and tells something else
// than its answer. What polls told that began before the answer was given, the machine did not
// believe.
func (m *tracked) correctsAnswer(previous time.Time) bool {
	return previous.Before(m.answered) && !m.seen.At.Before(m.answered) && !sameInstance(m.answer, m.seen.Instance)
}

// recordAnswer records what a call for uid was answered with.
func (s *schedule) recordAnswer(uid string, at time.Time, answer *instance.Instance) {
	if m, isTracked := s.machines[uid]; isTracked {
		m.answer, m.answered = answer, at
	}
}

// recordLost records that a poll of uid came to nothing, so that nothing is known that was not
// before.
func (s *schedule) recordLost(uid string, now time.Time) {
	if m, isTracked := s.machines[uid]; isTracked {
		m.inFlight = false
		m.due = now.Add(s.polling.Interval)
		s.enqueue(m)
	}
}

func isAbsent(l poll) bool {
	return l.failure != nil && l.failure.Class == instance.NotFound
}

// sameInstance says whether a and b tell a reader the same; how soon to poll again makes no
// difference.
func sameInstance(a, b *instance.Instance) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ProviderID == b.ProviderID && a.NodeName == b.NodeName && a.State == b.State &&
		a.Reason == b.Reason && a.Message == b.Message &&
		slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.LastKnownState, b.LastKnownState) &&
		slices.Equal(a.DuplicateProviderIDs, b.DuplicateProviderIDs) &&
		slices.Equal(a.ProviderIDAliases, b.ProviderIDAliases)
}

// sameFailure says whether a and b tell a reader the same.
func sameFailure(a, b *instance.Failure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Class == b.Class && a.Reason == b.Reason && a.Message == b.Message &&
		slices.Equal(a.Fields, b.Fields) &&
		a.ProviderID == b.ProviderID && slices.Equal(a.LastKnownState, b.LastKnownState)
}
