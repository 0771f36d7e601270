package testcloud_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

const (
	opCreate = "CreateThing"
	opList   = "ListThings"
)

// cloud holds things, which are numbers.
type cloud struct {
	*testing.T
	front  *testcloud.Front
	hooks  *testcloud.Hooks
	things int64
	saved  int
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{T: t}
	c.front = testcloud.NewFront(testcloud.Options{
		Operations: []string{opCreate, opList}, Effects: testcloud.AllEffects(),
		Aliases: func(uid string) []string { return []string{"#" + uid} },
		Save:    func(*testcloud.Call) error { c.saved++; return nil },
		Newest:  func() int64 { return c.things },
		Log:     slog.New(slog.DiscardHandler),
	})
	c.hooks = &testcloud.Hooks{Front: c.front}
	return c
}

var errInjected = errors.New("as a fault asks for")

// call makes a call, and returns the horizon of what it may list.
func (c *cloud) call(ctx context.Context, a testcloud.Arrival) (int64, error) {
	c.front.Lock()
	turn := c.front.Begin(a)
	c.front.Unlock()
	injected := func(*backendv1alpha1.FaultError) error { return errInjected }
	err := c.front.Run(ctx, turn, injected, func() error {
		return c.front.TakeEffect(turn, func() error {
			if a.Creates {
				c.things++
				turn.Changed(fmt.Sprint("thing-", c.things))
			}
			return nil
		})
	})
	c.front.End(ctx, turn, testcloud.Answer{Code: status.Code(err), Err: err})
	return turn.Horizon(), err
}

// create makes a thing for a machine.
func (c *cloud) create(ctx context.Context, machine string) error {
	_, err := c.call(ctx, testcloud.Arrival{
		Operation: opCreate, Clusters: []string{"cluster"}, Machines: []string{machine}, CreatesVM: true, Creates: true,
	})
	return err
}

func (c *cloud) inject(f *backendv1alpha1.Fault) {
	c.Helper()
	if _, err := c.hooks.InjectFault(c.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f}); err != nil {
		c.Fatal(err)
	}
}

// calls are those that name a machine.
func (c *cloud) calls(machine string) []*backendv1alpha1.Call {
	c.Helper()
	answer, err := c.hooks.ListCalls(c.Context(), &backendv1alpha1.ListCallsRequest{MachineUid: machine})
	if err != nil {
		c.Fatal(err)
	}
	return answer.GetCalls()
}

// failing is a fault of an error.
func failing(name backendv1alpha1.NamedError, times int32) *backendv1alpha1.Fault {
	return &backendv1alpha1.Fault{
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Times: times, Error: &backendv1alpha1.FaultError{Name: name},
	}
}

func TestCallsAreToldByWhatTheyName(t *testing.T) {
	c := newCloud(t)
	for _, machine := range []string{"a", "#b"} {
		if err := c.create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	both := testcloud.Arrival{Operation: opList, Clusters: []string{"cluster"}, Machines: []string{"a", "#b"}}
	if _, err := c.call(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[string]int{"": 3, "a": 2, "b": 2, "c": 0} {
		if got := c.calls(machine); len(got) != want {
			t.Errorf("%q: %d calls, want %d", machine, len(got), want)
		}
	}
	first := c.calls("a")[0]
	if first.GetProgress() != testcloud.Answered || !first.GetDone() || first.GetResourceId() != "thing-1" || first.GetMachineUid() != "a" {
		t.Errorf("the first call: %v", first)
	}
	if counts := c.front.Ledger.Counts("cluster"); counts[opCreate] != 2 || counts[opList] != 1 {
		t.Errorf("counts: %v", counts)
	}
	if c.saved < 3*3 {
		t.Errorf("%d times saved, want each call as it came, when it had taken effect, and at its end", c.saved)
	}
}

func TestFaultsStrikeWhatTheyMatch(t *testing.T) {
	const quota, internal = backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL
	list := testcloud.Arrival{Operation: opList}
	for _, test := range []struct {
		name  string
		fault func() *backendv1alpha1.Fault
		// creates and lists are how many of three calls each fail.
		creates, lists int
	}{
		{"any call", func() *backendv1alpha1.Fault { return failing(internal, 0) }, 3, 3},
		{"once", func() *backendv1alpha1.Fault { return failing(internal, 1) }, 1, 0},
		{"a quota is for what creates", func() *backendv1alpha1.Fault { return failing(quota, 0) }, 3, 0},
		{"one operation", func() *backendv1alpha1.Fault {
			f := failing(internal, 0)
			f.Match = &backendv1alpha1.FaultMatch{Operation: opList}
			return f
		}, 0, 3},
		{"one machine, after the first", func() *backendv1alpha1.Fault {
			f := failing(internal, 0)
			f.Match, f.Skip = &backendv1alpha1.FaultMatch{MachineUid: "m"}, 1
			return f
		}, 2, 0},
		{"another machine", func() *backendv1alpha1.Fault {
			f := failing(internal, 0)
			f.Match = &backendv1alpha1.FaultMatch{MachineUid: "n"}
			return f
		}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			c.inject(test.fault())
			creates, lists := 0, 0
			for range 3 {
				if err := c.create(t.Context(), "m"); errors.Is(err, errInjected) {
					creates++
				}
			}
			for range 3 {
				if _, err := c.call(t.Context(), list); errors.Is(err, errInjected) {
					lists++
				}
			}
			if creates != test.creates || lists != test.lists {
				t.Errorf("%d creates and %d lists failed, want %d and %d", creates, lists, test.creates, test.lists)
			}
		})
	}
}

func TestARepeatedCallUsesNoFaultUp(t *testing.T) {
	c := newCloud(t)
	c.inject(failing(backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, 1))
	for _, call := range []struct {
		token   string
		refused bool
	}{{"first", true}, {"after another login", true}, {"later", false}} {
		_, err := c.call(t.Context(), testcloud.Arrival{Operation: opList, Request: "r", Token: call.token})
		if errors.Is(err, errInjected) != call.refused {
			t.Errorf("%s: %v", call.token, err)
		}
	}
}

func TestAHeldCallTakesEffectWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.create(ctx, "m") }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if one := c.calls("m")[0]; one.GetProgress() != testcloud.Abandoned || one.GetDone() {
			t.Errorf("held: %v", one)
		}
		if _, err := c.hooks.RemoveFaults(t.Context(), &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if one := c.calls("m")[0]; one.GetProgress() != testcloud.Abandoned || !one.GetDone() {
			t.Errorf("let go: %v", one)
		}
	})
}

func TestLatencyAndTheEndOfTheCloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.inject(&backendv1alpha1.Fault{
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY, Times: 1,
			Latency: &backendv1alpha1.FaultLatency{Min: durationpb.New(time.Minute), Max: durationpb.New(time.Minute)},
		})
		began := time.Now()
		if err := c.create(t.Context(), "slow"); err != nil || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		c.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG})
		ended := make(chan error, 1)
		go func() { ended <- c.create(t.Context(), "last") }()
		synctest.Wait()
		c.front.Lock()
		first, second := c.front.Close(), c.front.Close()
		c.front.Unlock()
		if err := <-ended; !errors.Is(err, testcloud.ErrBroken) || c.things != 1 {
			t.Errorf("%d things, %v", c.things, err)
		}
		if !first || second {
			t.Errorf("closed: %t, %t", first, second)
		}
	})
}

func TestAStaleListEndsWhereTheFaultBegan(t *testing.T) {
	c := newCloud(t)
	for range 2 {
		if err := c.create(t.Context(), "m"); err != nil {
			t.Fatal(err)
		}
	}
	c.inject(&backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE})
	if err := c.create(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if horizon, err := c.call(t.Context(), testcloud.Arrival{Operation: opList}); err != nil || horizon != 2 {
		t.Errorf("the horizon is %d, %v", horizon, err)
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	c := newCloud(t)
	for name, f := range map[string]*backendv1alpha1.Fault{
		"no effect":   {},
		"operation":   {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Match: &backendv1alpha1.FaultMatch{Operation: "Explode"}},
		"no error":    {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR},
		"error":       failing(99, 0),
		"probability": {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Probability: 2},
		"times":       {Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG, Times: -1},
	} {
		if _, err := c.hooks.InjectFault(t.Context(), &backendv1alpha1.InjectFaultRequest{Fault: f}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
