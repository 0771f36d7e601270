package driver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// slowCreate makes creates wait for proceed; entered gets one word for each that has begun.
func slowCreate(f *fakeDriver) (entered, proceed chan struct{}) {
	entered, proceed = make(chan struct{}, 1), make(chan struct{})
	f.create = func(ctx context.Context, q *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		entered <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-proceed:
			return &driverv1alpha1.CreateMachineResponse{Machine: running(q.GetMachine())}, nil
		}
	}
	return entered, proceed
}

// awaitShutdown returns a log, and a channel that is closed once that says that connections are
// given up.
func awaitShutdown() (closed chan struct{}, log logr.Logger) {
	closed = make(chan struct{})
	var once sync.Once
	return closed, logSink(func(line string) {
		if strings.Contains(line, "this process is shutting down") {
			once.Do(func() { close(closed) })
		}
	})
}

func TestCallsUnderWayMayEndWhenTheProcessDoes(t *testing.T) {
	f := newFakeDriver()
	entered, proceed := slowCreate(f)
	path := socketPath(t)
	f.serve(t, path)
	closed, log := awaitShutdown()
	r := start(t, Config{ShutdownGrace: time.Hour, Log: log}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	r.lead()
	<-closed
	if err := r.StartDelete(t.Context(), machine("b")); failureClass(err) != instance.Unavailable {
		t.Errorf("a call of a process that shuts down: %v, want Unavailable", err)
	}
	select {
	case <-r.ended:
		t.Fatal("Start returned before the last call had ended")
	default:
	}
	close(proceed)
	<-r.ended
	if outcome, progress := r.Collect(m.Key(), m.UID); progress != Ended || outcome.Failure != nil {
		t.Errorf("%s %+v, want a success", progress, outcome.Failure)
	}
}

// The goroutine that serves the connection has ended by then: nobody but the call that ends can
// hand its slot on.
func TestAQuestionThatWaitsForASlotHoldsUpNoShutdown(t *testing.T) {
	f, _ := newSpecDriver()
	f.caps.Limits.MaxConcurrentRequests = 1
	entered, proceed := slowCreate(f)
	path := socketPath(t)
	f.serve(t, path)
	closed, log := awaitShutdown()
	r := start(t, Config{ShutdownGrace: time.Hour, Log: log}, path)
	r.awaitReady(t)
	if err := r.StartCreate(t.Context(), machine("a"), nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	if _, err := r.Prepare(machine("b"), nil, nil); !errors.Is(err, ErrPreparing) {
		t.Fatalf("a spec that is asked about for the first time: %v, want ErrPreparing", err)
	}
	r.lead()
	<-closed
	close(proceed)
	<-r.ended
}

func TestCallsUnderWayAreCutOff(t *testing.T) {
	// over is when the budget that counts begins.
	var over atomic.Bool
	budget := func(then time.Duration, leading bool) func() (time.Time, bool) {
		return func() (time.Time, bool) {
			if over.Load() {
				return time.Now().Add(then), leading
			}
			return time.Now().Add(time.Hour), true
		}
	}
	for _, test := range []struct {
		name string
		cfg  Config
	}{
		{"after the grace", Config{ShutdownGrace: time.Millisecond}},
		{"where there is no grace", Config{}},
		{"before the Lease ends", Config{ShutdownGrace: time.Hour, MutationBudget: budget(20*time.Millisecond, true)}},
		{"once the Lease is lost", Config{ShutdownGrace: time.Hour, MutationBudget: budget(time.Hour, false)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			over.Store(false)
			f := newFakeDriver()
			entered, _ := slowCreate(f)
			path := socketPath(t)
			f.serve(t, path)
			r := start(t, test.cfg, path)
			r.awaitReady(t)
			m := machine("a")
			if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
				t.Fatal(err)
			}
			<-entered
			over.Store(true)
			r.lead()
			<-r.ended
			outcome, progress := r.Collect(m.Key(), m.UID)
			if progress != Ended || outcome.Failure == nil || outcome.Failure.Class != instance.OutcomeUnknown || outcome.Failure.Reason != "Cancelled" {
				t.Errorf("%s %+v, want the call cancelled, with an unknown outcome", progress, outcome.Failure)
			}
		})
	}
}

func TestALaterLeaderCutsTheGraceShort(t *testing.T) {
	f := newFakeDriver()
	entered, _ := slowCreate(f)
	f.remove = func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
		return nil, says(codes.FailedPrecondition, "STALE_EPOCH", "epoch 8 was here")
	}
	path := socketPath(t)
	f.serve(t, path)
	var r *rig
	r = start(t, Config{ShutdownGrace: time.Hour, LeadershipLost: func() { r.lead() }}, path)
	r.awaitReady(t)
	if err := r.StartCreate(t.Context(), machine("a"), nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := r.StartDelete(t.Context(), machine("b")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Error("a create goes on beside a later leader")
	}
}

func TestAMachineRefusedForWantOfALeaseIsWoken(t *testing.T) {
	f := newFakeDriver()
	path := socketPath(t)
	f.serve(t, path)
	var held atomic.Bool
	held.Store(true)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock, MutationBudget: func() (time.Time, bool) {
		return clock.Now().Add(time.Minute), held.Load()
	}}, path)
	r.awaitReady(t)
	held.Store(false)
	m := machine("a")
	if err := r.Reserve(m, instance.Create); !isReason(err, "NotLeading") {
		t.Fatalf("%v, want NotLeading", err)
	}
	held.Store(true)
	clock.Step(leaseCheck)
	timeout := time.After(patience)
	for {
		select {
		case event := <-r.drivers.Events():
			if event.Object.GetName() != m.Name {
				continue
			}
		case <-timeout:
			t.Fatal("the machine was never woken")
		}
		break
	}
	if err := r.Reserve(m, instance.Create); err != nil {
		t.Errorf("with a Lease: %v", err)
	}
}

func isReason(err error, reason string) bool {
	var failure *instance.Failure
	return errors.As(err, &failure) && failure.Class == instance.Unavailable && failure.Reason == reason
}

// A process that was stopped between its look at the Lease and the call may have lost the Lease
// meanwhile: it sends nothing that could outlive it.
func TestSAFE6_NothingOutlivesTheLeaseAfterAStop(t *testing.T) {
	for name, test := range map[string]struct {
		// stop is for how long the process stands still after Reserve has looked at the Lease.
		stop time.Duration
		sent bool
	}{
		"a short stop leaves less time for the call": {40 * time.Second, true},
		"too little is left for a call":              {57 * time.Second, false},
		"the Lease is over":                          {time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeDriver()
			deadlines := make(chan time.Duration, 1)
			f.create = func(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
				deadline, _ := ctx.Deadline()
				deadlines <- time.Until(deadline)
				return &driverv1alpha1.CreateMachineResponse{Machine: running(r.GetMachine())}, nil
			}
			path := socketPath(t)
			f.serve(t, path)
			clock := clocktesting.NewFakeClock(time.Now())
			latest := clock.Now().Add(time.Minute)
			// looks counts down to the last one before the call.
			var looks atomic.Int32
			looks.Store(1000)
			r := start(t, Config{Clock: clock, MutationBudget: func() (time.Time, bool) {
				if looks.Add(-1) == 0 {
					clock.Step(test.stop)
				}
				return latest, true
			}}, path)
			r.awaitReady(t)
			looks.Store(2)
			m := machine("a")
			if err := r.Reserve(m, instance.Create); err != nil {
				t.Fatal(err)
			}
			if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
				t.Fatal(err)
			}
			outcome := r.outcome(t, m)
			if looks.Load() != 0 {
				t.Errorf("the Lease was looked at %d times, want twice", 2-looks.Load())
			}
			if !test.sent {
				if !isReason(outcome.Failure, "LeaseExpiring") || len(deadlines) > 0 {
					t.Errorf("outcome %+v, want that too little of the Lease is left, and no call", outcome)
				}
				return
			}
			if outcome.Failure != nil {
				t.Fatalf("outcome %+v, want a success", outcome.Failure)
			}
			if left := time.Minute - test.stop - leaseMargin; <-deadlines > left {
				t.Errorf("the call may take longer than the %s that are left of the Lease", left)
			}
		})
	}
}

// A deadline that counted from after the look at the Lease would outlive it by as long as the
// process was stopped in between.
func TestSAFE6_DeadlineCountsFromBeforeTheLookAtTheLease(t *testing.T) {
	path := socketPath(t)
	newFakeDriver().serve(t, path)
	const allowed = 10 * time.Second
	looks := make(chan time.Time, 1000)
	r := start(t, Config{MutationBudget: func() (time.Time, bool) {
		now := time.Now()
		looks <- now
		return now.Add(allowed + leaseMargin), true
	}}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.Reserve(m, instance.Create); err != nil {
		t.Fatal(err)
	}
	for len(looks) > 0 {
		<-looks
	}
	var deadline time.Time
	call := func(ctx context.Context, _ *connection.Session) (*driverv1alpha1.Machine, error) {
		deadline, _ = ctx.Deadline()
		return running(m.Ref()), nil
	}
	if err := r.start(t.Context(), mutation{m, instance.Create, call}); err != nil {
		t.Fatal(err)
	}
	r.outcome(t, m)
	if looked := <-looks; deadline.After(looked.Add(allowed)) {
		t.Errorf("the call may take %s from the look at the Lease on, want at most %s", deadline.Sub(looked), allowed)
	}
}
