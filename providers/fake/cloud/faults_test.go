package cloud

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

func hours(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * time.Hour) }

func TestEveryNamedErrorHasItsCode(t *testing.T) {
	for name, want := range map[backendv1alpha1.NamedError]codes.Code{
		backendv1alpha1.NamedError_NAMED_ERROR_QUOTA:       codes.ResourceExhausted,
		backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY:    codes.ResourceExhausted,
		backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS: codes.Unauthenticated,
		backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION:  codes.PermissionDenied,
		backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT:  codes.ResourceExhausted,
		backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL:    codes.Internal,
		backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE: codes.Unavailable,
		backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY:  codes.NotFound,
	} {
		t.Run(name.String(), func(t *testing.T) {
			w := open(t, Options{})
			w.inject(&backendv1alpha1.Fault{
				Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Times: 1,
				Error: &backendv1alpha1.FaultError{Name: name, RetryAfter: durationpb.New(7 * time.Second)},
			})
			_, err := w.api.CreateNIC(t.Context(), &fakecloudv1alpha1.CreateNICRequest{})
			if status.Code(err) != want || said(err).GetRetryAfter().AsDuration() != 7*time.Second {
				t.Errorf("got %v, want %v", err, want)
			}
			w.createNIC("m1") // the fault is used up
		})
	}
}

func TestErrorBeforeAndAfterTheEffect(t *testing.T) {
	for point, left := range map[backendv1alpha1.FaultPoint]int64{testcloud.BeforeEffect: 0, testcloud.AfterEffect: 1} {
		t.Run(point.String(), func(t *testing.T) {
			w := open(t, Options{})
			w.inject(&backendv1alpha1.Fault{
				Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Point: point,
				Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, Message: "own words"},
			})
			_, err := w.api.CreateNIC(t.Context(), &fakecloudv1alpha1.CreateNICRequest{})
			if status.Convert(err).Message() != "own words" {
				t.Errorf("got %v", err)
			}
			if got := w.totals().GetResourcesLeft(); got != left {
				t.Errorf("%d resources, want %d", got, left)
			}
		})
	}
}

// A call that is held takes effect although its caller has gone, and the ledger tells.
func TestHeldCallOutlivesItsCaller(t *testing.T) {
	for point, done := range map[backendv1alpha1.FaultPoint]bool{testcloud.BeforeEffect: false, testcloud.AfterEffect: true} {
		t.Run(point.String(), func(t *testing.T) {
			w := open(t, Options{})
			fault := w.inject(&backendv1alpha1.Fault{
				Match:  &backendv1alpha1.FaultMatch{Operation: opCreateNIC, MachineUid: "m1"},
				Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD, Point: point, Times: 1,
			})
			w.createNIC("m2") // another machine's call is not held
			ctx, leave := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			go func() {
				_, err := w.api.CreateNIC(ctx, &fakecloudv1alpha1.CreateNICRequest{Tags: marks("m1")})
				answered <- err
			}()
			held := w.await(func(c *backendv1alpha1.Call) bool { return len(c.GetFaultIds()) > 0 && (!done || c.GetDone()) })
			if held.GetDone() != done {
				t.Errorf("held %v: done is %v", point, held.GetDone())
			}
			leave()
			left := w.await(at(opCreateNIC, testcloud.Abandoned))
			if left.GetDone() != done || left.GetAnswerTime() != nil {
				t.Errorf("when the caller left: %v", left)
			}
			w.remove(fault)
			if err := <-answered; err != nil {
				t.Errorf("the call: %v", err)
			}
			if got := w.totals().GetResourcesLeft(); got != 2 {
				t.Errorf("%d resources, want 2: the call had been received", got)
			}
		})
	}
}

func TestHangEndsWithItsCallerWithoutEffect(t *testing.T) {
	w := open(t, Options{})
	w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := w.api.CreateNIC(ctx, &fakecloudv1alpha1.CreateNICRequest{}); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	if got := w.totals().GetResourcesLeft(); got != 0 {
		t.Errorf("%d resources, want none", got)
	}
}

func TestLostAnswerHasItsEffect(t *testing.T) {
	w := open(t, Options{})
	w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST, Times: 1})
	_, err := w.api.CreateNIC(t.Context(), &fakecloudv1alpha1.CreateNICRequest{ClientToken: "m1"})
	if status.Code(err) != codes.Unavailable || len(status.Convert(err).Details()) != 0 {
		t.Errorf("got %v, want a broken connection", err)
	}
	if got := w.totals().GetResourcesLeft(); got != 1 {
		t.Errorf("%d resources, want 1", got)
	}
	if one := w.await(at(opCreateNIC, testcloud.Abandoned)); !one.GetDone() {
		t.Errorf("ledger: %v", one)
	}
}

func TestBootFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, Options{BootLatency: time.Second})
		w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS, Times: 1})
		never := w.create("m1")
		w.inject(&backendv1alpha1.Fault{
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS, Times: 1,
			Error: &backendv1alpha1.FaultError{Message: "no bootable device"},
		})
		fails := w.create("m2")
		well := w.create("m3")
		elapse(time.Hour)
		w.expect(never.GetId(), building)
		w.expect(fails.GetId(), failed)
		w.expect(well.GetId(), running)
	})
}

func TestLatencyIsHalfBeforeHalfAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, Options{MinCallLatency: 2 * time.Second, MaxCallLatency: 2 * time.Second})
		begin := time.Now()
		w.createNIC("m1")
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
		one := w.await(at(opCreateNIC, testcloud.Answered))
		if before := one.GetDoneTime().AsTime().Sub(one.GetReceiveTime().AsTime()); before != time.Second {
			t.Errorf("took effect after %v", before)
		}
		w.inject(&backendv1alpha1.Fault{
			Effect:  backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY,
			Latency: &backendv1alpha1.FaultLatency{Min: durationpb.New(time.Minute), Max: durationpb.New(2 * time.Minute)},
		})
		begin = time.Now()
		w.createNIC("m2")
		if took := time.Since(begin); took < time.Minute || took > 2*time.Minute+2*time.Second {
			t.Errorf("with a fault: took %v", took)
		}
	})
}

func TestSkipTimesAndProbability(t *testing.T) {
	strikes := func(f *backendv1alpha1.Fault) string {
		w := open(t, Options{})
		f.Effect = backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR
		f.Error = &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL}
		w.inject(f)
		pattern := ""
		for range 40 {
			mark := "."
			if _, err := w.api.ListNICs(t.Context(), &fakecloudv1alpha1.ListNICsRequest{}); err != nil {
				mark = "x"
			}
			pattern += mark
		}
		return pattern
	}
	if got := strikes(&backendv1alpha1.Fault{Skip: 2, Times: 3}); got != "..xxx..................................." {
		t.Errorf("skip 2, times 3: %s", got)
	}
	first, second := strikes(&backendv1alpha1.Fault{Probability: 0.5, Seed: 7}), strikes(&backendv1alpha1.Fault{Probability: 0.5, Seed: 7})
	if first != second {
		t.Errorf("the same seed struck differently:\n%s\n%s", first, second)
	}
	if other := strikes(&backendv1alpha1.Fault{Probability: 0.5, Seed: 8}); other == first {
		t.Errorf("another seed struck alike: %s", other)
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	w := open(t, Options{})
	for name, f := range map[string]*backendv1alpha1.Fault{
		"no effect":   {},
		"operation":   {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Match: &backendv1alpha1.FaultMatch{Operation: "Explode"}},
		"error":       {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR},
		"probability": {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Probability: 2},
		"times":       {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Times: -1},
	} {
		if _, err := w.hooks.InjectFault(t.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if answer, err := w.hooks.ListFaults(t.Context(), nil); err != nil || len(answer.GetFaults()) != 0 {
		t.Errorf("faults in force: %v, %v", answer, err)
	}
}

// The end of the cloud ends what is held, without its effect.
func TestCloseEndsWaits(t *testing.T) {
	w := open(t, Options{})
	w.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD})
	answered := make(chan error, 1)
	go func() {
		_, err := w.api.CreateNIC(context.Background(), &fakecloudv1alpha1.CreateNICRequest{})
		answered <- err
	}()
	w.await(at(opCreateNIC, testcloud.Received))
	if err := w.cloud.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if err := <-answered; !errors.Is(err, testcloud.ErrBroken) {
		t.Errorf("got %v", err)
	}
}

// A list that is behind lacks what is new, and nothing else.
func TestAStaleListLacksWhatIsNew(t *testing.T) {
	w := open(t, Options{})
	list := func() (vms, nics int) {
		t.Helper()
		ofVMs, errVMs := w.api.ListVMs(t.Context(), &fakecloudv1alpha1.ListVMsRequest{})
		ofNICs, errNICs := w.api.ListNICs(t.Context(), &fakecloudv1alpha1.ListNICsRequest{})
		if err := errors.Join(errVMs, errNICs); err != nil {
			t.Fatal(err)
		}
		return len(ofVMs.GetVms()), len(ofNICs.GetNics())
	}
	behind := &backendv1alpha1.Fault{
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE, Match: &backendv1alpha1.FaultMatch{Operation: opListVMs},
	}
	w.inject(behind)
	w.create("m1")
	if vms, nics := list(); vms != 0 || nics != 1 {
		t.Errorf("behind from the beginning: %d VMs and %d NICs, want 0 and 1", vms, nics)
	}
	w.remove()
	w.inject(behind)
	w.create("m2")
	if vms, nics := list(); vms != 1 || nics != 2 {
		t.Errorf("behind: %d VMs and %d NICs, want 1 and 2", vms, nics)
	}
	w.remove()
	if vms, nics := list(); vms != 2 || nics != 2 {
		t.Errorf("after that: %d VMs and %d NICs, want 2 and 2", vms, nics)
	}
}
