package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestAnOutageIsNoObservation(t *testing.T) {
	f := newFakeDriver()
	f.caps.Limits.MaxConcurrentRequests = 1
	entered := make(chan struct{}, 2)
	f.get = func(ctx context.Context, _ *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	path := socketPath(t)
	server := f.serve(t, path)
	r := start(t, Config{Polling: poller.Polling{Interval: time.Millisecond}}, path)
	r.awaitReady(t)
	// One look is under way, the other waits for its turn.
	asking, waiting := machine("a"), machine("b")
	r.Track(asking, instance.PollPending)
	r.Track(waiting, instance.PollSettled)
	<-entered
	server.Stop()
	r.await(t, "the loss of the driver", func() bool {
		err := r.Reserve(asking, instance.Create)
		r.notifier.enqueue(asking.Key())
		return failureClass(err) == instance.Unavailable
	})
	for _, m := range []wire.Machine{asking, waiting} {
		if got, ok := r.Observed(m.Key(), m.UID); ok {
			t.Errorf("%s: observation %+v of an outage", m.Name, got)
		}
	}
	var failure *instance.Failure
	if err := r.Reserve(asking, instance.Create); !errors.As(err, &failure) || failure.Message != connection.NotConnected {
		t.Errorf("a call meanwhile: %v, want %q", err, connection.NotConnected)
	}
	newFakeDriver().serve(t, path)
	for _, m := range []wire.Machine{asking, waiting} {
		r.observed(t, m, inState(instance.Running))
	}
}

func TestARateLimitShrinksWhatTheDriverGets(t *testing.T) {
	f := newFakeDriver()
	f.caps.Limits.MaxConcurrentRequests = 2
	f.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		return nil, says(codes.ResourceExhausted, "RATE_LIMITED", "slow down")
	}
	path := socketPath(t)
	f.serve(t, path)
	clock := clocktesting.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	a, b, c := machine("a"), machine("b"), machine("c")
	if err := r.StartCreate(t.Context(), a, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := r.outcome(t, a); got.Failure == nil || got.Failure.Class != instance.RateLimited {
		t.Fatalf("outcome %+v, want RateLimited", got)
	}
	if err := r.Reserve(b, instance.Create); !isHeld(err, instance.RateLimited) {
		t.Errorf("a call at once: %v, want it held back", err)
	}
	clock.Step(time.Second)
	r.await(t, "b's turn", func() bool { return r.Reserve(b, instance.Create) == nil })
	if err := r.Reserve(c, instance.Create); err == nil {
		t.Error("two requests are set aside for a driver whose rate is limited")
	}
}

func TestAListThatBreaksTheContractIsNotBelieved(t *testing.T) {
	one := running(machine("m0000").Ref())
	for name, page := range map[string]*driverv1alpha1.ListMachinesResponse{
		"a machine twice":    {Machines: []*driverv1alpha1.Machine{one, proto.CloneOf(one)}},
		"a list without end": {NextPageToken: "again"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeDriver()
			f.list = func(context.Context, *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
				return page, nil
			}
			path := socketPath(t)
			f.serve(t, path)
			r := start(t, Config{Polling: poller.Polling{Interval: time.Millisecond}}, path)
			r.awaitReady(t)
			for _, m := range machines(6) {
				r.Track(m, instance.PollPending)
			}
			for _, m := range machines(6) {
				got := r.observed(t, m, func(o instance.Observation) bool { return o.Failure != nil })
				if got.Failure.Class != instance.OutcomeUnknown || got.Failure.Reason != "InvalidAnswer" {
					t.Errorf("%s: %v, want an unknown outcome", m.Name, got.Failure)
				}
			}
		})
	}
}
