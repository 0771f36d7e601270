package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// isHeld says whether err holds a machine back for a failure of that class.
func isHeld(err error, class instance.Class) bool {
	held, is := errors.AsType[*HeldError](err)
	return is && held.Failure.Class == class
}

// quotaRig is a cloud account with a quota, whom machines ask for VMs as the machine controller
// does.
type quotaRig struct {
	*rig
	clock *clocktesting.FakeClock

	mu      sync.Mutex
	creates int
	deletes int
	vms     map[string]bool
	answer  func(vms int) error // nil makes a VM
}

func newQuotaRig(t *testing.T, answer func(vms int) error) *quotaRig {
	t.Helper()
	q := &quotaRig{vms: map[string]bool{}, answer: answer}
	f := newFakeDriver()
	f.create = func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.creates++
		if err := q.answer(len(q.vms)); err != nil {
			return nil, err
		}
		q.vms[r.GetMachine().GetUid()] = true
		return &driverv1alpha1.CreateMachineResponse{Machine: running(r.GetMachine())}, nil
	}
	f.remove = func(context.Context, *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.deletes++
		return &driverv1alpha1.DeleteMachineResponse{}, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	q.clock = clocktesting.NewFakeClock(time.Now())
	q.rig = start(t, Config{Clock: q.clock}, path)
	q.awaitReady(t)
	return q
}

func (q *quotaRig) set(answer func(vms int) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answer = answer
}

func (q *quotaRig) counts() (creates, vms int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.creates, len(q.vms)
}

// ask lets each machine without a VM ask once, and waits until no call is under way. Who was
// refused asks again in the same round, as one does that was woken by the end of its call.
func (q *quotaRig) ask(t *testing.T, all []wire.Machine) (held map[instance.Class]int) {
	t.Helper()
	held = map[instance.Class]int{}
	// Two rounds in which nobody gets on: the first may give a turn to one that it has passed
	// already.
	for quiet := 0; quiet < 2; quiet++ {
		again := false
		clear(held)
		for _, m := range all {
			q.mu.Lock()
			has := q.vms[m.UID]
			q.mu.Unlock()
			if _, progress := q.Collect(m.Key(), m.UID); progress == UnderWay {
				again = true
				continue
			}
			if has {
				continue
			}
			err := q.Reserve(m, instance.Create)
			if err == nil {
				err = q.StartCreate(t.Context(), m, nil, nil)
			}
			if h, is := errors.AsType[*HeldError](err); is {
				held[h.Failure.Class]++
			}
			again = again || err == nil || errors.Is(err, ErrThrottled)
		}
		if again {
			quiet = -1
		}
	}
	return held
}

func quotaOf(n int) func(int) error {
	return func(vms int) error {
		if vms < n {
			return nil
		}
		return says(codes.ResourceExhausted, "QUOTA_EXCEEDED", fmt.Sprintf("Quota exceeded: %d of %d", n, n))
	}
}

func TestSAFE7_AQuotaIsProbedByOneMachineAtATime(t *testing.T) {
	q := newQuotaRig(t, quotaOf(10))
	all := machines(200)
	if held := q.ask(t, all); held[instance.Quota] != 190 {
		t.Errorf("held back are %v, want the 190 that the quota does not allow", held)
	}
	creates, vms := q.counts()
	if vms != 10 || creates > 30 {
		t.Errorf("%d creates made %d VMs, want 10 and few more", creates, vms)
	}
	for range 60 {
		q.clock.Step(time.Second)
		q.ask(t, all)
	}
	if now, _ := q.counts(); now-creates > 12 {
		t.Errorf("%d creates in a minute that could not succeed", now-creates)
	}
	// The quota is raised: it is noticed within half a minute, and then everybody has a VM at once.
	q.set(quotaOf(1000))
	waited := 0
	for ; len(q.ask(t, all)) > 0 && waited < 31; waited++ {
		q.clock.Step(time.Second)
	}
	if _, vms := q.counts(); vms != 200 || waited > 30 {
		t.Errorf("%d s after the quota was raised there are %d VMs", waited, vms)
	}
}

func TestSAFE7_RefusedCredentialsAreTriedAHandfulOfTimes(t *testing.T) {
	bad := func(int) error { return says(codes.Unauthenticated, "CREDENTIALS_INVALID", "The key is unknown.") }
	q := newQuotaRig(t, bad)
	all := machines(200)
	if held := q.ask(t, all); held[instance.Credentials] != 200 {
		t.Errorf("held back are %v, want all", held)
	}
	for range 59 {
		q.clock.Step(5 * time.Second)
		q.ask(t, all)
	}
	if creates, _ := q.counts(); creates > firstWindow {
		t.Errorf("%d creates with bad credentials, want at most %d", creates, firstWindow)
	}
	// Deletes have their own breaker: what may not create may well delete.
	if err := q.StartDelete(t.Context(), all[0]); err != nil {
		t.Errorf("a delete: %v", err)
	}
	q.outcome(t, all[0])
	// Other credentials are another account.
	renewed := all[1]
	renewed.Secrets = map[string][]byte{"key": []byte("new")}
	if err := q.Reserve(renewed, instance.Create); err != nil {
		t.Errorf("with new credentials: %v", err)
	}
	q.Forget(renewed.Key(), renewed.UID)
	// After five minutes one probe finds that the old ones are good again.
	q.set(quotaOf(1000))
	q.clock.Step(5 * time.Second)
	if held := q.ask(t, all); len(held) > 0 {
		t.Errorf("after five minutes %v are held back still", held)
	}
}

// firstWindow is how many calls of an account that is new the limiter lets through.
const firstWindow = 4

// A machine that came when too many called already is told as soon as they are refused, though its
// turn is far away.
func TestSAFE7_WhoQueuesIsToldOfTheRefusal(t *testing.T) {
	refused := make(chan struct{})
	q := newQuotaRig(t, func(int) error {
		<-refused
		return says(codes.Unauthenticated, "CREDENTIALS_INVALID", "The key is unknown.")
	})
	all := machines(firstWindow + 1)
	last := all[firstWindow]
	for _, m := range all[:firstWindow] {
		if err := q.StartCreate(t.Context(), m, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Reserve(last, instance.Create); !errors.Is(err, ErrThrottled) {
		t.Fatalf("one more: %v, want that there are too many", err)
	}
	close(refused)
	timeout := time.After(patience)
	for woken := false; !woken; {
		select {
		case event := <-q.drivers.Events():
			woken = event.Object.GetName() == last.Name
		case <-timeout:
			t.Fatal("it was never woken")
		}
	}
	if err := q.Reserve(last, instance.Create); !isHeld(err, instance.Credentials) {
		t.Errorf("woken, it gets %v, want the cloud's refusal", err)
	}
}

func TestSAFE7_RetryInfoIsWaitedFor(t *testing.T) {
	q := newQuotaRig(t, func(int) error {
		return says(codes.ResourceExhausted, "RATE_LIMITED", "slow down", &errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	})
	all := machines(20)
	if held := q.ask(t, all); held[instance.RateLimited] != 20 {
		t.Errorf("held back are %v, want all", held)
	}
	before, _ := q.counts()
	q.clock.Step(6 * time.Second)
	q.ask(t, all)
	if now, _ := q.counts(); now != before {
		t.Errorf("%d calls before the time is over that the cloud asks for", now-before)
	}
	q.set(quotaOf(1000))
	q.clock.Step(time.Second)
	if held := q.ask(t, all); len(held) > 0 {
		t.Errorf("%v are held back after it", held)
	}
}
