package poller

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// pollList polls all tracked machines of the cluster by the account of one. It confirms the
// absence of those of the account that the list does not show.
func (p *Poller) pollList(ctx context.Context, s *connection.Session, b batch) {
	began := p.clock.Now()
	machines, failure := p.List(ctx, s, b.machine)
	l := poll{began: began, ended: p.clock.Now(), failure: failure}
	if failure != nil {
		p.recordFailedList(b.account, l, isDriverLost(ctx, failure))
		return
	}
	var polls sync.WaitGroup
	for _, m := range p.recordList(s, b.account, machines, l) {
		polls.Go(func() { p.pollOne(ctx, s, m) })
	}
	polls.Wait()
}

// List returns a complete list of what the account holds of the cluster, by uid, or fails. Where
// the driver turns out to have no ListMachines, the failure's class is Unimplemented, and nobody
// tries again on this session.
func (p *Poller) List(
	ctx context.Context, s *connection.Session, account wire.Machine,
) (map[string]*driverv1alpha1.Machine, *instance.Failure) {
	ctx, cancel := context.WithTimeout(ctx, maxListPages*s.Capabilities.Deadlines.ListPage)
	defer cancel()
	list, token := newPagedList(), ""
	for {
		request := &driverv1alpha1.ListMachinesRequest{
			Meta: s.Meta(), Provider: account.Provider(), PageSize: p.polling.PageSize, PageToken: token,
		}
		if failure := wire.CheckRequest(request); failure != nil {
			return nil, failure
		}
		var page *driverv1alpha1.ListMachinesResponse
		failure := p.client.Call(ctx, s, s.Capabilities.Deadlines.ListPage, func(ctx context.Context) (err error) {
			page, err = s.Machines.ListMachines(ctx, request)
			return err
		})
		if failure != nil && failure.Class == instance.Unimplemented {
			s.DisableList()
		}
		if failure != nil {
			return nil, failure
		}
		complete, wrong := list.add(page)
		if wrong != "" {
			return nil, wire.InvalidAnswer(wrong)
		}
		if complete {
			return list.machines, nil
		}
		token = page.GetNextPageToken()
	}
}

// recordList records a complete list and returns whom it did not show.
func (p *Poller) recordList(
	s *connection.Session, account uint64, machines map[string]*driverv1alpha1.Machine, l poll,
) []wire.Machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.client.PollSoon()
	reader := s.Reader()
	shown := map[string]struct{}{}
	for uid, m := range machines {
		entry, isTracked := p.schedule.machines[uid]
		// Whose VM a uid without a name is, the driver tells of one machine alone.
		if !isTracked || wire.IsNameless(m) {
			continue
		}
		shown[uid] = struct{}{}
		l.instance, l.failure = reader.Poll(entry.machine, m)
		p.recordPoll(entry.machine, l)
	}
	missing := p.schedule.takeMissing(account, shown, l.ended)
	p.schedule.endList(account, l.ended.Add(p.schedule.restAfter(l)))
	return missing
}

// recordFailedList records how a list failed, for those who are due; lost says that it only tells
// that the driver went away.
func (p *Poller) recordFailedList(account uint64, l poll, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.client.PollSoon()
	defer p.schedule.endList(account, l.ended)
	if l.failure.Class == instance.Unimplemented {
		return
	}
	for _, uid := range p.schedule.dueOf(account, l.ended) {
		if lost {
			p.schedule.recordLost(uid, l.ended)
			continue
		}
		p.recordPoll(p.schedule.machines[uid].machine, l)
	}
}

// recordPoll records a poll and wakes the machine if it should hear of it. Call it with the lock
// held.
func (p *Poller) recordPoll(m wire.Machine, l poll) {
	if p.schedule.recordPoll(m.UID, l) {
		p.client.Wake(m.Key())
	}
}

// CallBegan notes that a call that makes or deletes uid's VM is under way.
func (p *Poller) CallBegan(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule.calls[uid] = struct{}{}
}

// CallEnded undoes CallBegan.
func (p *Poller) CallEnded(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.schedule.calls, uid)
}

// Record takes over how a mutation of uid ended, which is a poll, too.
func (p *Poller) Record(uid string, o instance.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Instance != nil {
		p.schedule.recordPoll(uid, poll{began: o.Started, ended: o.Ended, instance: o.Instance})
	}
	p.schedule.recordAnswer(uid, o.Ended, o.Instance)
	if o.Operation == instance.Delete && o.Instance == nil && o.Failure == nil {
		// Nothing is left to poll, however long its Machine takes to hear of it.
		p.schedule.untrack(uid)
	}
}

// Observed returns what the last poll found; false before the first one.
func (p *Poller) Observed(uid string) (instance.Observation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.schedule.observed(uid)
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

// Bounds on a list. They are far beyond any cluster: what exceeds them does not end, or no memory
// holds it.
const (
	maxPages    = 10_000
	maxListed   = 1 << 17
	maxListSize = 256 << 20
	// maxListPages is how many deadlines of a page a whole list may take.
	maxListPages = 15
)

// pagedList is a list that is being read, page by page.
type pagedList struct {
	machines map[string]*driverv1alpha1.Machine
	// tokens are those that led to the pages so far, size is theirs in bytes.
	tokens map[string]struct{}
	size   int
}

func newPagedList() *pagedList {
	return &pagedList{machines: map[string]*driverv1alpha1.Machine{}, tokens: map[string]struct{}{"": {}}}
}

// add takes over a page. complete says that it was the last; wrong, unless empty, why the list is
// none.
func (r *pagedList) add(page *driverv1alpha1.ListMachinesResponse) (complete bool, wrong string) {
	r.size += proto.Size(page)
	if r.size > maxListSize || len(r.machines)+len(page.GetMachines()) > maxListed {
		return false, "machines: there are more than core can hold"
	}
	for _, m := range page.GetMachines() {
		uid := m.GetRef().GetUid()
		if _, twice := r.machines[uid]; twice {
			return false, "machines: one of them is listed twice"
		}
		r.machines[uid] = m
	}
	token := page.GetNextPageToken()
	if token == "" {
		return true, ""
	}
	if _, again := r.tokens[token]; again || len(r.tokens) == maxPages {
		return false, "next_page_token: the list does not end"
	}
	r.tokens[token] = struct{}{}
	return false, ""
}

// observed returns what the last poll of uid found; false before the first.
func (s *schedule) observed(uid string) (instance.Observation, bool) {
	m, isTracked := s.machines[uid]
	if !isTracked || m.seen.Looks == 0 {
		return instance.Observation{}, false
	}
	return m.seen, true
}

// recordPoll records a poll of uid and says whether the machine should hear of it. Polls of
// machines that are not tracked any more, and polls older than what is known, are dropped.
func (s *schedule) recordPoll(uid string, l poll) bool {
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
