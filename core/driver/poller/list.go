package poller

import (
	"context"
	"sync"

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
		p.found(p.schedule.machines[uid].machine, l)
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
		if !isTracked {
			continue
		}
		shown[uid] = struct{}{}
		l.instance, l.failure = reader.Poll(entry.machine, m)
		p.found(entry.machine, l)
	}
	missing := p.schedule.unlisted(account, shown, l.ended)
	p.schedule.endList(account, l.ended.Add(p.schedule.restAfter(l)))
	return missing
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
			s.CannotList()
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
