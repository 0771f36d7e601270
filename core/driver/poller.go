package driver

import (
	"context"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// runPoller polls tracked machines as they fall due, until ctx ends with the connection.
func (d *Driver) runPoller(ctx context.Context, s *session) {
	var polls sync.WaitGroup
	defer polls.Wait()
	for {
		batches, next := d.duePolls(s)
		for _, b := range batches {
			polls.Go(func() {
				if b.list {
					d.pollList(ctx, s, b)
					return
				}
				d.pollOne(ctx, s, b.machine)
			})
		}
		if !d.waitUntil(ctx, next) {
			return
		}
	}
}

// duePolls hands out what is due now, and when to ask again; zero for not before something changes.
func (d *Driver) duePolls(s *session) ([]batch, time.Time) {
	canList := s.caps.Has(driverv1alpha1.Feature_FEATURE_LIST) && !s.cannotList.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	d.wakeCallers()
	d.next = d.limiter.Due(now)
	if d.why != "" {
		return nil, d.next
	}
	batches, due := d.schedule.due(now, canList)
	d.next = earlier(d.next, due)
	return batches, d.next
}

// waitUntil waits for an instant, or until something may be due sooner; false when ctx has ended.
func (d *Driver) waitUntil(ctx context.Context, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		wait := next.Sub(d.cfg.Clock.Now())
		if wait <= 0 {
			return ctx.Err() == nil
		}
		timer := d.cfg.Clock.NewTimer(wait)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-d.wakeup:
	}
	return true
}

// pollOne polls one machine.
func (d *Driver) pollOne(ctx context.Context, s *session, m Machine) {
	request := &driverv1alpha1.GetMachineStatusRequest{
		Meta:           d.meta(),
		Machine:        ref(m),
		Provider:       provider(m),
		ProviderId:     m.ProviderID,
		LastKnownState: m.LastKnownState,
	}
	found := poll{began: d.cfg.Clock.Now(), ended: d.cfg.Clock.Now(), oneByOne: true}
	if violations := contract.CheckRequest(request); len(violations) > 0 {
		found.failure = invalidRequest(violations)
		d.found(m, found)
		return
	}
	var answer *driverv1alpha1.GetMachineStatusResponse
	found.failure = d.ask(ctx, s.caps.Deadlines.Status, func(ctx context.Context) (err error) {
		found.began = d.cfg.Clock.Now()
		answer, err = s.machines.GetMachineStatus(ctx, request)
		return err
	})
	found.ended = d.cfg.Clock.Now()
	if found.failure == nil {
		found.instance, found.failure = d.reader(s).readPoll(m, answer.GetMachine())
	}
	if isDriverLost(ctx, found.failure) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.schedule.recordLost(m.UID, found.ended)
		d.notifyPoller(found.ended.Add(d.cfg.Polling.Interval))
		return
	}
	d.found(m, found)
}

// pollList polls all tracked machines of the cluster by the account of one, and confirms the
// absence of those of the account that it does not show.
func (d *Driver) pollList(ctx context.Context, s *session, b batch) {
	began := d.cfg.Clock.Now()
	machines, failure := d.listPages(ctx, s, b.machine)
	ended := d.cfg.Clock.Now()
	if failure == nil {
		var polls sync.WaitGroup
		for _, m := range d.recordList(s, b.account, machines, poll{began: began, ended: ended}) {
			polls.Go(func() { d.pollOne(ctx, s, m) })
		}
		polls.Wait()
		return
	}
	if failure.Class == instance.Unimplemented {
		s.cannotList.Store(true)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.notifyPoller(ended)
	defer d.schedule.endList(b.account, ended)
	if failure.Class == instance.Unimplemented {
		return
	}
	away := isDriverLost(ctx, failure)
	for _, uid := range d.schedule.dueOf(b.account, ended) {
		if away {
			d.schedule.recordLost(uid, ended)
			continue
		}
		if d.schedule.found(uid, poll{began: began, ended: ended, failure: failure}) {
			d.notifier.enqueue(d.schedule.machines[uid].machine.key())
		}
	}
}

// listPages gets a complete list, or fails.
func (d *Driver) listPages(ctx context.Context, s *session, account Machine) (map[string]*driverv1alpha1.Machine, *instance.Failure) {
	ctx, cancel := context.WithTimeout(ctx, maxListPages*s.caps.Deadlines.ListPage)
	defer cancel()
	list, token := newPagedList(), ""
	for {
		request := &driverv1alpha1.ListMachinesRequest{
			Meta: d.meta(), Provider: provider(account), PageSize: d.cfg.Polling.PageSize, PageToken: token,
		}
		if violations := contract.CheckRequest(request); len(violations) > 0 {
			return nil, invalidRequest(violations)
		}
		var page *driverv1alpha1.ListMachinesResponse
		failure := d.ask(ctx, s.caps.Deadlines.ListPage, func(ctx context.Context) (err error) {
			page, err = s.machines.ListMachines(ctx, request)
			return err
		})
		if failure != nil {
			return nil, failure
		}
		complete, wrong := list.add(page)
		if wrong != "" {
			return nil, invalidAnswer(wrong)
		}
		if complete {
			return list.machines, nil
		}
		token = page.GetNextPageToken()
	}
}

// recordList records a complete list and returns whom it did not show.
func (d *Driver) recordList(s *session, a account, machines map[string]*driverv1alpha1.Machine, l poll) []Machine {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.notifyPoller(l.ended)
	reader := d.reader(s)
	shown := map[string]struct{}{}
	for uid, m := range machines {
		entry, isTracked := d.schedule.machines[uid]
		if !isTracked {
			continue
		}
		shown[uid] = struct{}{}
		l.instance, l.failure = reader.readPoll(entry.machine, m)
		if d.schedule.found(uid, l) {
			d.notifier.enqueue(entry.machine.key())
		}
	}
	missing := d.schedule.unlisted(a, shown, l.ended)
	d.schedule.endList(a, l.ended.Add(d.schedule.restAfter(l)))
	return missing
}

// ask makes one call that changes nothing, when the driver has room for it.
func (d *Driver) ask(ctx context.Context, timeout time.Duration, call func(context.Context) error) *instance.Failure {
	d.mu.Lock()
	turn := d.limiter.AcquirePoll(d.cfg.Clock.Now())
	d.mu.Unlock()
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			d.mu.Lock()
			defer d.mu.Unlock()
			d.limiter.AbandonPoll(turn)
			d.wakeCallers()
			return unavailable("DriverNotReady", notConnected)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, request := trackSent(ctx)
	var failure *instance.Failure
	if err := call(ctx); err != nil {
		failure = classify(d.name, err, request.sent.Load())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limiter.ReleasePoll()
	d.wakeCallers()
	return failure
}

// isDriverLost says whether a failure only tells that the driver went away, which those who want a
// call are told better.
func isDriverLost(ctx context.Context, failure *instance.Failure) bool {
	if failure == nil {
		return false
	}
	broke := failure.Class == instance.OutcomeUnknown && failure.Reason == connectionLost
	return failure.Class == instance.Unavailable || ctx.Err() != nil || broke
}

// found records a poll and wakes the machine if it should hear of it.
func (d *Driver) found(m Machine, l poll) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.schedule.found(m.UID, l) {
		d.notifier.enqueue(m.key())
	}
	d.notifyPoller(l.ended.Add(d.cfg.Polling.Interval))
}
