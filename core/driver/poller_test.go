package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// cloud is what a fakeDriver's polls see, and how it was asked.
type cloud struct {
	mu     sync.Mutex
	states map[string]driverv1alpha1.MachineState
	// hidden are left out of lists, nameless are listed by their uid alone.
	hidden, nameless map[string]bool
	// asked gets "list" or a uid for each poll.
	asked chan string
}

func newCloud(f *fakeDriver, all []wire.Machine) *cloud {
	c := &cloud{states: map[string]driverv1alpha1.MachineState{}, hidden: map[string]bool{}, nameless: map[string]bool{}, asked: make(chan string, 10_000)}
	for _, m := range all {
		c.states[m.UID] = driverv1alpha1.MachineState_MACHINE_STATE_CREATING
	}
	f.get = func(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
		c.asked <- r.GetMachine().GetUid()
		c.mu.Lock()
		defer c.mu.Unlock()
		state, there := c.states[r.GetMachine().GetUid()]
		if !there {
			return nil, says(codes.NotFound, "MACHINE_NOT_FOUND", "no such machine")
		}
		m := running(r.GetMachine())
		m.State = state
		return &driverv1alpha1.GetMachineStatusResponse{Machine: m}, nil
	}
	f.list = func(_ context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
		if r.GetPageToken() == "" {
			c.asked <- "list"
		}
		return c.page(all, r), nil
	}
	return c
}

// page serves the machines two pages long: the first holds all but the last.
func (c *cloud) page(all []wire.Machine, r *driverv1alpha1.ListMachinesRequest) *driverv1alpha1.ListMachinesResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	page := &driverv1alpha1.ListMachinesResponse{}
	from, to := 0, len(all)-1
	if r.GetPageToken() == "last" {
		from, to = len(all)-1, len(all)
	}
	for _, m := range all[from:to] {
		state, there := c.states[m.UID]
		if !there || c.hidden[m.UID] {
			continue
		}
		one := running(m.Ref())
		one.State = state
		if c.nameless[m.UID] {
			one.Ref = &driverv1alpha1.MachineRef{Namespace: m.UID, Name: m.UID, Uid: m.UID}
		}
		page.Machines = append(page.Machines, one)
	}
	if r.GetPageToken() == "" {
		page.NextPageToken = "last"
	}
	return page
}

func (c *cloud) set(uid string, state driverv1alpha1.MachineState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[uid] = state
}

func inState(state instance.State) func(instance.Observation) bool {
	return func(o instance.Observation) bool { return o.Instance != nil && o.Instance.State == state }
}

// drain returns what was asked since it was last called.
func (c *cloud) drain() map[string]int {
	asked := map[string]int{}
	for {
		select {
		case one := <-c.asked:
			asked[one]++
		default:
			return asked
		}
	}
}

func TestHandfulIsPolledOneByOneAndManyByOneList(t *testing.T) {
	all := machines(6)
	f := newFakeDriver()
	c := newCloud(f, all)
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	for _, m := range all[:4] {
		r.Track(m, instance.PollPending)
	}
	clock.Step(time.Second)
	for _, m := range all[:4] {
		r.observed(t, m, inState(instance.Creating))
	}
	if asked := c.drain(); asked["list"] != 0 || len(asked) != 4 {
		t.Errorf("four machines were asked for as %v, want each alone", asked)
	}
	for _, m := range all[4:] {
		r.Track(m, instance.PollPending)
	}
	for _, m := range all {
		c.set(m.UID, driverv1alpha1.MachineState_MACHINE_STATE_RUNNING)
	}
	clock.Step(time.Second)
	for _, m := range all {
		r.observed(t, m, inState(instance.Running))
	}
	if asked := c.drain(); asked["list"] != 1 || len(asked) != 1 {
		t.Errorf("six machines were asked for as %v, want one list", asked)
	}
	for _, m := range all {
		r.Untrack(m.Key(), m.UID)
		if _, ok := r.Observed(m.Key(), m.UID); ok {
			t.Errorf("%s: an observation outlives Untrack", m.Name)
		}
	}
}

func TestAMachineThatAListDoesNotShowIsAskedFor(t *testing.T) {
	all := machines(8)
	f := newFakeDriver()
	c := newCloud(f, all)
	stale, nameless, lost := all[0], all[1], all[7]
	c.hidden[stale.UID], c.nameless[nameless.UID] = true, true
	delete(c.states, lost.UID)
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	for _, m := range all {
		r.Track(m, instance.PollPending)
	}
	clock.Step(time.Second)
	r.observed(t, stale, inState(instance.Creating))
	r.observed(t, nameless, inState(instance.Creating))
	first := r.observed(t, lost, func(o instance.Observation) bool { return o.Failure != nil })
	if first.Failure.Class != instance.NotFound || first.Looks != 1 || first.Instance != nil {
		t.Errorf("observation %+v, want one NotFound", first)
	}
	if asked := c.drain(); asked["list"] != 1 || asked[stale.UID] != 1 || asked[nameless.UID] != 1 || asked[lost.UID] != 1 || len(asked) != 4 {
		t.Errorf("asked %v, want one list, the two machines that it did not show, and the one without a name", asked)
	}
	clock.Step(time.Second)
	r.observed(t, lost, func(o instance.Observation) bool { return o.Looks == 2 })
}

// A machine that is gone from a list before its delete is answered is not asked for: the answer
// says as much.
func TestAMachineIsNotAskedForBesideItsDelete(t *testing.T) {
	all := machines(8)
	f := newFakeDriver()
	c := newCloud(f, all)
	going := all[0]
	gone, answer := make(chan struct{}), make(chan struct{})
	f.remove = func(ctx context.Context, _ *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
		c.mu.Lock()
		delete(c.states, going.UID)
		c.mu.Unlock()
		close(gone)
		select {
		case <-answer:
			return nil, says(codes.Unavailable, "CLOUD_UNAVAILABLE", "the cloud is away")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	for _, m := range all {
		r.Track(m, instance.PollPending)
	}
	if err := r.StartDelete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	<-gone
	clock.Step(time.Second)
	r.observed(t, all[1], inState(instance.Creating))
	c.set(all[1].UID, driverv1alpha1.MachineState_MACHINE_STATE_RUNNING)
	clock.Step(time.Second)
	r.observed(t, all[1], inState(instance.Running))
	if asked := c.drain(); asked["list"] != 2 || len(asked) != 1 {
		t.Errorf("while the delete is under way, asked are %v, want two lists", asked)
	}
	close(answer)
	if outcome := r.outcome(t, going); outcome.Failure == nil {
		t.Fatalf("outcome %+v, want a failure", outcome)
	}
	clock.Step(time.Second)
	r.observed(t, going, func(o instance.Observation) bool { return o.Failure != nil && o.Failure.Class == instance.NotFound })
}

// A fleet of two is small, and a server that somebody deleted by hand is noticed within a settled
// interval.
func TestServerOfAFleetOfTwoDeletedByHandIsNoticed(t *testing.T) {
	all := machines(2)
	f := newFakeDriver()
	c := newCloud(f, all)
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	for _, m := range all {
		r.Track(m, instance.PollSettled)
	}
	clock.Step(time.Second)
	for _, m := range all {
		r.observed(t, m, inState(instance.Creating))
	}
	if asked := c.drain(); asked["list"] != 1 || len(asked) != 1 {
		t.Errorf("two settled machines were asked for as %v, want one list", asked)
	}
	c.mu.Lock()
	delete(c.states, all[1].UID)
	c.mu.Unlock()
	clock.Step(time.Minute)
	first := r.observed(t, all[1], func(o instance.Observation) bool { return o.Failure != nil })
	if first.Failure.Class != instance.NotFound || first.Looks != 1 {
		t.Errorf("observation %+v, want one NotFound", first)
	}
	if asked := c.drain(); asked["list"] != 1 || asked[all[1].UID] != 1 || len(asked) != 2 {
		t.Errorf("asked %v, want one list and the machine that it did not show", asked)
	}
	clock.Step(time.Second)
	r.observed(t, all[1], func(o instance.Observation) bool { return o.Looks == 2 })
}

func TestMachineOfWhichNothingIsLeftIsNotPolled(t *testing.T) {
	all := machines(2)
	f := newFakeDriver()
	c := newCloud(f, all)
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	for _, m := range all {
		r.Track(m, instance.PollPending)
	}
	if err := r.StartDelete(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	if outcome := r.outcome(t, all[0]); outcome.Instance != nil || outcome.Failure != nil {
		t.Fatalf("outcome %+v, want that nothing is left", outcome)
	}
	clock.Step(time.Second)
	r.observed(t, all[1], inState(instance.Creating))
	if asked := c.drain(); asked[all[0].UID] != 0 {
		t.Errorf("asked %v, among them for the machine of which nothing is left", asked)
	}
}

func TestAListThatIsNotImplementedIsNotAskedForAgain(t *testing.T) {
	all := machines(6)
	f := newFakeDriver()
	c := newCloud(f, all)
	var lists atomic.Int32
	f.list = func(context.Context, *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
		lists.Add(1)
		return nil, status.Error(codes.Unimplemented, "")
	}
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	for _, m := range all {
		r.Track(m, instance.PollPending)
	}
	clock.Step(time.Second)
	for _, m := range all {
		r.observed(t, m, inState(instance.Creating))
		c.set(m.UID, driverv1alpha1.MachineState_MACHINE_STATE_RUNNING)
	}
	clock.Step(2 * time.Second)
	for _, m := range all {
		r.observed(t, m, inState(instance.Running))
	}
	if got := lists.Load(); got != 1 {
		t.Errorf("%d lists, want 1", got)
	}
}

func TestFailedPollIsReportedUntilOneSucceeds(t *testing.T) {
	for _, n := range []int{1, 6} {
		t.Run(fmt.Sprintf("%d machines", n), func(t *testing.T) {
			all := machines(n)
			f := newFakeDriver()
			c := newCloud(f, all)
			list, get := f.list, f.get
			var refuse atomic.Bool
			refused := says(codes.Unauthenticated, "CREDENTIALS_INVALID", "wrong password")
			f.list = func(ctx context.Context, q *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
				if refuse.Load() {
					return nil, refused
				}
				return list(ctx, q)
			}
			f.get = func(ctx context.Context, q *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
				if refuse.Load() {
					return nil, refused
				}
				return get(ctx, q)
			}
			path := socketPath(t)
			f.serve(t, path)
			clock := clocktesting.NewFakeClock(time.Now())
			r := start(t, Config{Clock: clock}, path)
			r.awaitReady(t)
			for _, m := range all {
				r.Track(m, instance.PollPending)
			}
			clock.Step(time.Second)
			for _, m := range all {
				r.observed(t, m, inState(instance.Creating))
			}
			refuse.Store(true)
			clock.Step(2 * time.Second)
			for _, m := range all {
				got := r.observed(t, m, func(o instance.Observation) bool { return o.Failure != nil })
				if got.Failure.Class != instance.Credentials || !inState(instance.Creating)(got) {
					t.Errorf("%s: %+v, want refused credentials beside what was last seen", m.Name, got)
				}
			}
			refuse.Store(false)
			c.set(all[0].UID, driverv1alpha1.MachineState_MACHINE_STATE_RUNNING)
			clock.Step(4 * time.Second)
			r.observed(t, all[0], func(o instance.Observation) bool { return o.Failure == nil && inState(instance.Running)(o) })
		})
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	const limit, count = 3, 40
	f := newFakeDriver()
	f.caps.Limits.MaxConcurrentRequests = limit
	var now, most atomic.Int32
	enter := func() func() {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		return func() { now.Add(-1) }
	}
	create, get := f.create, f.get
	f.create = func(ctx context.Context, q *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		defer enter()()
		return create(ctx, q)
	}
	f.get = func(ctx context.Context, q *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
		defer enter()()
		return get(ctx, q)
	}
	f.caps.Features = nil
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{Polling: poller.Polling{Interval: time.Millisecond}}, path)
	r.awaitReady(t)
	todo := map[string]wire.Machine{}
	for _, m := range machines(count) {
		todo[m.Name] = m
		r.Track(m, instance.PollPending)
	}
	throttled := 0
	advance := func(m wire.Machine) {
		if _, progress := r.Collect(m.Key(), m.UID); progress == Ended {
			delete(todo, m.Name)
			return
		}
		switch err := r.StartCreate(t.Context(), m, nil, nil); {
		case errors.Is(err, ErrThrottled):
			throttled++
		case err != nil && !errors.Is(err, ErrBusy):
			t.Fatal(err)
		}
	}
	for _, m := range machines(count) {
		advance(m)
	}
	timeout := time.After(patience)
	for len(todo) > 0 {
		select {
		case event := <-r.drivers.Events():
			if m, open := todo[event.Object.GetName()]; open {
				advance(m)
			}
		case <-timeout:
			t.Fatalf("%d machines were never woken", len(todo))
		}
	}
	if got := most.Load(); got > limit || throttled == 0 {
		t.Errorf("%d requests at once with a limit of %d; %d were throttled", got, limit, throttled)
	}
}

func TestMetricsCountCallsAndLogsHoldNoPayload(t *testing.T) {
	const canary = "c4n4ry"
	var mu sync.Mutex
	var lines []string
	registry := prometheus.NewRegistry()
	path := socketPath(t)
	newFakeDriver().serve(t, path)
	r := start(t, Config{Registry: registry, Log: logSink(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	})}, path)
	r.awaitReady(t)
	m := machine("a")
	m.Spec = []byte(`{"password":"` + canary + `"}`)
	m.Secrets, m.LastKnownState = map[string][]byte{"x": []byte(canary)}, []byte(canary)
	if err := r.StartCreate(t.Context(), m, []byte(canary), nil); err != nil {
		t.Fatal(err)
	}
	r.outcome(t, m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(families)
	for _, want := range []string{"CreateMachine", "GetPluginInfo", "millwright_driver_up", driverName} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics do not name %s", want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if log := strings.Join(lines, "\n"); strings.Contains(log, canary) || !strings.Contains(log, "CreateMachine") {
		t.Errorf("the log holds a payload or no call:\n%s", log)
	}
}
