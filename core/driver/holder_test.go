package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// isTaken says whether err refuses a machine because its uid is holder's.
func isTaken(err error, holder wire.Machine) bool {
	var failure *instance.Failure
	return errors.As(err, &failure) && failure.Class == instance.Conflict && failure.Reason == "NameTaken" &&
		strings.Contains(failure.Message, holder.Key().String())
}

func TestAUIDIsHeldByTheMachineThatCameFirst(t *testing.T) {
	f := newFakeDriver()
	f.remove = func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
		t.Error("a delete was sent")
		return nil, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{Polling: poller.Polling{Interval: time.Millisecond}}, path)
	r.awaitReady(t)
	m, elsewhere := machine("a"), machine("a")
	stranger := machine("copy")
	stranger.UID, elsewhere.Namespace = m.UID, "other"
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	r.Track(m, instance.PollPending)
	r.observed(t, m, inState(instance.Running))

	for _, other := range []wire.Machine{stranger, elsewhere} {
		for name, err := range map[string]error{
			"reserve": r.Reserve(other, instance.Create), "create": r.StartCreate(t.Context(), other, nil, nil), "delete": r.StartDelete(t.Context(), other),
		} {
			if !isTaken(err, m) {
				t.Errorf("%s for %s: %v, want NameTaken with the holder's name", name, other.Key(), err)
			}
		}
		if _, progress := r.Collect(other.Key(), other.UID); progress != Idle {
			t.Errorf("%s: progress %s, want Idle", other.Key(), progress)
		}
		r.Track(other, instance.PollPending)
		if _, ok := r.Observed(other.Key(), other.UID); ok {
			t.Errorf("%s has the holder's observation", other.Key())
		}
		r.Untrack(other.Key(), other.UID)
		r.Forget(other.Key(), other.UID)
	}
	r.observed(t, m, inState(instance.Running))
	if outcome := r.outcome(t, m); outcome.Instance == nil {
		t.Errorf("the holder's outcome is %+v, want its VM", outcome)
	}

	r.Forget(m.Key(), m.UID)
	if err := r.Reserve(stranger, instance.Create); err != nil {
		t.Errorf("after Forget: %v, want the uid free", err)
	}
	if err := r.Reserve(m, instance.Create); !isTaken(err, stranger) {
		t.Errorf("the old holder: %v, want NameTaken", err)
	}
}

func TestTheNextHolderDoesNotGetTheOutcomeOfTheLast(t *testing.T) {
	f := newFakeDriver()
	entered, proceed := make(chan struct{}, 2), make(chan struct{})
	f.create = func(_ context.Context, q *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		entered <- struct{}{}
		<-proceed
		return &driverv1alpha1.CreateMachineResponse{Machine: running(q.GetMachine())}, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	m, next := machine("a"), machine("next")
	next.UID = m.UID
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	r.Forget(m.Key(), m.UID)
	r.Track(next, instance.PollPending)
	if err := r.StartCreate(t.Context(), next, nil, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("beside the last holder's call: %v, want ErrBusy", err)
	}
	close(proceed)
	r.await(t, "the end of the last holder's call", func() bool {
		outcome, progress := r.Collect(next.Key(), next.UID)
		if progress == Ended {
			t.Fatalf("the next holder got the outcome %+v", outcome)
		}
		return progress == Idle
	})
	if err := r.StartCreate(t.Context(), next, nil, nil); err != nil {
		t.Fatal(err)
	}
	r.outcome(t, next)
}
