package driver

import (
	"context"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// lookOut looks at tracked machines as they fall due, until ctx ends with the connection.
func (d *Driver) lookOut(ctx context.Context, s *session) {
	var looks sync.WaitGroup
	defer looks.Wait()
	for {
		batches, next := d.dueLooks(s)
		for _, b := range batches {
			looks.Go(func() {
				if b.list {
					d.list(ctx, s, b)
					return
				}
				d.lookAt(ctx, s, b.machine)
			})
		}
		if !d.waitUntil(ctx, next) {
			return
		}
	}
}

// dueLooks hands out what is due now, and when to ask again; zero for not before something changes.
func (d *Driver) dueLooks(s *session) ([]batch, time.Time) {
	canList := s.caps.Has(driverv1alpha1.Feature_FEATURE_LIST) && !s.cannotList.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Clock.Now()
	for _, uid := range d.slots.turns(now) {
		if record, known := d.calls[uid]; known {
			d.alarm.ring(record.machine)
		}
	}
	if !d.wakeAt.IsZero() && !now.Before(d.wakeAt) {
		d.wake()
	}
	d.next = earlier(earlier(d.slots.expiry(), d.gateTurns(now)), d.wakeAt)
	if d.why != "" {
		return nil, d.next
	}
	batches, due := d.watch.due(now, canList)
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
	case <-d.sooner:
	}
	return true
}

// lookAt looks at one machine.
func (d *Driver) lookAt(ctx context.Context, s *session, m Machine) {
	request := &driverv1alpha1.GetMachineStatusRequest{
		Meta:           d.meta(),
		Machine:        ref(m),
		Provider:       provider(m),
		ProviderId:     m.ProviderID,
		LastKnownState: m.LastKnownState,
	}
	found := look{began: d.cfg.Clock.Now(), ended: d.cfg.Clock.Now(), oneByOne: true}
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
		found.instance, found.failure = d.reader(s).looked(m, answer.GetMachine())
	}
	if lost(ctx, found.failure) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.watch.notLooked(m.UID, found.ended)
		d.lookSooner(found.ended.Add(d.cfg.Polling.Interval))
		return
	}
	d.found(m, found)
}

// list looks at all tracked machines of the cluster by the account of one, and confirms the absence of those of the account
// that it does not show.
func (d *Driver) list(ctx context.Context, s *session, b batch) {
	began := d.cfg.Clock.Now()
	machines, failure := d.pages(ctx, s, b.machine)
	ended := d.cfg.Clock.Now()
	if failure == nil {
		var looks sync.WaitGroup
		for _, m := range d.listed(s, b.account, machines, look{began: began, ended: ended}) {
			looks.Go(func() { d.lookAt(ctx, s, m) })
		}
		looks.Wait()
		return
	}
	if failure.Class == instance.Unimplemented {
		s.cannotList.Store(true)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.lookSooner(ended)
	defer d.watch.listEnded(b.account, ended)
	if failure.Class == instance.Unimplemented {
		return
	}
	away := lost(ctx, failure)
	for _, uid := range d.watch.dueOf(b.account, ended) {
		if away {
			d.watch.notLooked(uid, ended)
			continue
		}
		if d.watch.found(uid, look{began: began, ended: ended, failure: failure}) {
			d.alarm.ring(d.watch.watched[uid].machine.key())
		}
	}
}

// pages gets a complete list, or fails.
func (d *Driver) pages(ctx context.Context, s *session, account Machine) (map[string]*driverv1alpha1.Machine, *instance.Failure) {
	ctx, cancel := context.WithTimeout(ctx, maxListPages*s.caps.Deadlines.ListPage)
	defer cancel()
	list, token := newRoll(), ""
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

// listed records a complete list and returns whom it did not show.
func (d *Driver) listed(s *session, a account, machines map[string]*driverv1alpha1.Machine, l look) []Machine {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.lookSooner(l.ended)
	reader := d.reader(s)
	shown := map[string]struct{}{}
	for uid, m := range machines {
		watched, tracked := d.watch.watched[uid]
		if !tracked {
			continue
		}
		shown[uid] = struct{}{}
		l.instance, l.failure = reader.looked(watched.machine, m)
		if d.watch.found(uid, l) {
			d.alarm.ring(watched.machine.key())
		}
	}
	d.adapt(nil, l.began)
	missing := d.watch.missing(a, shown, l.ended)
	d.watch.listEnded(a, l.ended.Add(d.watch.rest(l)))
	return missing
}

// ask makes one call that changes nothing, when the driver has room for it.
func (d *Driver) ask(ctx context.Context, timeout time.Duration, call func(context.Context) error) *instance.Failure {
	d.mu.Lock()
	turn := d.slots.look()
	d.mu.Unlock()
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			d.mu.Lock()
			defer d.mu.Unlock()
			d.slots.abandon(turn)
			d.handOut()
			return unavailable("DriverNotReady", notConnected)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, departed := watchDeparture(ctx)
	began := d.cfg.Clock.Now()
	var failure *instance.Failure
	if err := call(ctx); err != nil {
		failure = classify(d.name, err, departed.left.Load())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slots.releaseLook()
	d.adapt(failure, began)
	d.handOut()
	return failure
}

// lost says whether a failure only tells that the driver went away, which those who want a call are told better.
func lost(ctx context.Context, failure *instance.Failure) bool {
	if failure == nil {
		return false
	}
	broke := failure.Class == instance.OutcomeUnknown && failure.Reason == connectionLost
	return failure.Class == instance.Unavailable || ctx.Err() != nil || broke
}

// found records a look and wakes the machine if it should hear of it.
func (d *Driver) found(m Machine, l look) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watch.found(m.UID, l) {
		d.alarm.ring(m.key())
	}
	d.lookSooner(l.ended.Add(d.cfg.Polling.Interval))
}
