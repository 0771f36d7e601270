package driver

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func TestADriverThatIsNotThereYetIsWaitedFor(t *testing.T) {
	path := socketPath(t)
	r := start(t, Config{}, path)
	err := r.StartCreate(t.Context(), machine("asking"), nil, nil)
	if failureClass(err) != instance.Unavailable {
		t.Fatalf("without a driver: %v, want Unavailable", err)
	}
	newFakeDriver().serve(t, path)
	r.awaitReady(t)
	if got := r.Capabilities(); got.VendorVersion != "v1" || got.ProviderIDPrefix != prefix || !got.Has(driverv1alpha1.Feature_FEATURE_LIST) {
		t.Errorf("capabilities %+v", got)
	}
}

func TestADriverThatBreaksTheHandshakeIsRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*fakeDriver)
		says  string
	}{
		{"another driver", func(f *fakeDriver) { f.info.Name = "other" }, "calls itself"},
		{"another contract", func(f *fakeDriver) { f.info.ApiPackages = []string{"millwright.driver.v9"} }, "core needs millwright.driver.v1alpha1"},
		{"no version", func(f *fakeDriver) { f.info.VendorVersion = "" }, "vendor_version"},
		{"no prefix", func(f *fakeDriver) { f.caps.ProviderIdPrefix = "" }, "provider_id_prefix"},
		{"not ready", func(f *fakeDriver) {
			f.probe = func() *driverv1alpha1.ProbeResponse { return &driverv1alpha1.ProbeResponse{Reason: "warming up"} }
		}, "warming up"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeDriver()
			test.spoil(f)
			path := socketPath(t)
			server := f.serve(t, path)
			told := make(chan string, 1)
			r := start(t, Config{Log: logSink(func(line string) {
				if strings.Contains(line, test.says) {
					select {
					case told <- line:
					default:
					}
				}
			})}, path)
			select {
			case <-told:
			case <-time.After(patience):
				t.Fatalf("no word of %q", test.says)
			}
			if err := r.StartDelete(t.Context(), machine("asking")); failureClass(err) != instance.Unavailable {
				t.Errorf("a call to such a driver: %v, want Unavailable", err)
			}
			// The right driver in its place is taken at once.
			server.Stop()
			newFakeDriver().serve(t, path)
			r.awaitReady(t)
		})
	}
}

func TestFeaturesOfTheFutureAreIgnored(t *testing.T) {
	f := newFakeDriver()
	f.caps.Features = append(f.caps.Features, driverv1alpha1.Feature(4711))
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	if got := r.Capabilities().Features; len(got) != 1 || got[0] != driverv1alpha1.Feature_FEATURE_LIST {
		t.Errorf("features %v, want the one that core knows", got)
	}
}

func TestAKilledDriverLeavesTheOutcomeUnknownAndIsFoundAgain(t *testing.T) {
	f := newFakeDriver()
	entered := make(chan struct{})
	f.create = func(ctx context.Context, _ *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	path := socketPath(t)
	server := f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	server.Stop()
	if got := r.outcome(t, m); got.Failure == nil || got.Failure.Class != instance.OutcomeUnknown {
		t.Errorf("outcome %+v, want unknown", got)
	}
	again := newFakeDriver()
	again.info.VendorVersion = "v2"
	again.caps.Limits = &driverv1alpha1.Limits{MaxConcurrentRequests: 3, CreateSettle: durationpb.New(time.Minute)}
	again.serve(t, path)
	// A call that meets the broken connection before core has noticed is Unavailable, at its start
	// or at its end.
	for created := false; !created; {
		r.await(t, "the new driver", func() bool { return r.StartCreate(t.Context(), m, nil, nil) == nil })
		got := r.outcome(t, m)
		created = got.Failure == nil
		if !created && got.Failure.Class != instance.Unavailable {
			t.Fatalf("outcome %+v, want Unavailable or a success", got)
		}
	}
	if got := r.Capabilities(); got.VendorVersion != "v2" || got.MaxConcurrentRequests != 3 || got.CreateSettle != time.Minute {
		t.Errorf("capabilities %+v, want the new driver's", got)
	}
}

// A driver that leaves out how long a create may land late has not said that none does.
func TestCreateSettle(t *testing.T) {
	for name, tc := range map[string]struct {
		limits *driverv1alpha1.Limits
		want   time.Duration
	}{
		"no limits": {nil, contract.DefaultCreateSettle},
		"left out":  {&driverv1alpha1.Limits{MaxConcurrentRequests: 3}, contract.DefaultCreateSettle},
		"promised":  {&driverv1alpha1.Limits{CreateSettle: durationpb.New(0)}, 0},
		"a minute":  {&driverv1alpha1.Limits{CreateSettle: durationpb.New(time.Minute)}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeDriver()
			f.caps.Limits = tc.limits
			path := socketPath(t)
			r := start(t, Config{}, path)
			if got := r.Capabilities().CreateSettle; got != contract.DefaultCreateSettle {
				t.Errorf("before the driver was reached: %v, want %v", got, contract.DefaultCreateSettle)
			}
			f.serve(t, path)
			r.awaitReady(t)
			if got := r.Capabilities().CreateSettle; got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestADriverThatStopsGracefullyFinishesItsCalls(t *testing.T) {
	f := newFakeDriver()
	entered, proceed := make(chan struct{}), make(chan struct{})
	f.create = func(_ context.Context, q *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		close(entered)
		<-proceed
		return &driverv1alpha1.CreateMachineResponse{Machine: running(q.GetMachine())}, nil
	}
	path := socketPath(t)
	server := f.serve(t, path)
	away := make(chan struct{})
	var once sync.Once
	r := start(t, Config{Log: logSink(func(line string) {
		if strings.Contains(line, "driver is away") {
			once.Do(func() { close(away) })
		}
	})}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.GracefulStop()
	}()
	<-away
	close(proceed)
	if got := r.outcome(t, m); got.Failure != nil {
		t.Errorf("outcome %+v, want a success", got)
	}
	<-stopped
}

func TestDeadlines(t *testing.T) {
	f := newFakeDriver()
	f.caps.Limits.Deadlines = &driverv1alpha1.Deadlines{Mutation: durationpb.New(30 * time.Millisecond)}
	f.create = func(ctx context.Context, _ *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{Deadlines: connection.Deadlines{Mutation: time.Hour}}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	got := r.outcome(t, m)
	if got.Failure == nil || got.Failure.Class != instance.OutcomeUnknown || got.Failure.Message != "the driver did not answer in time" {
		t.Errorf("outcome %+v, want an unknown one for want of time", got.Failure)
	}
}

func TestNoMutationOutlivesTheLease(t *testing.T) {
	f := newFakeDriver()
	deadline := make(chan time.Time, 1)
	f.remove = func(ctx context.Context, _ *driverv1alpha1.DeleteMachineRequest) (*driverv1alpha1.DeleteMachineResponse, error) {
		at, _ := ctx.Deadline()
		deadline <- at
		return &driverv1alpha1.DeleteMachineResponse{}, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	var left atomic.Int64
	left.Store(int64(time.Minute))
	r := start(t, Config{MutationBudget: func() (time.Time, bool) {
		return time.Now().Add(time.Duration(left.Load())), left.Load() > 0
	}}, path)
	r.awaitReady(t)
	m := machine("a")
	for _, test := range []struct {
		left time.Duration
		want string
	}{
		{shortestMutation - time.Second, "LeaseExpiring"},
		{0, "NotLeading"},
	} {
		left.Store(int64(test.left))
		var failure *instance.Failure
		if err := r.StartDelete(t.Context(), m); !errors.As(err, &failure) || failure.Class != instance.Unavailable || failure.Reason != test.want {
			t.Errorf("with %v left: %v, want %s", test.left, err, test.want)
		}
	}
	left.Store(int64(10 * time.Second))
	if err := r.StartDelete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if at := <-deadline; time.Until(at) > 10*time.Second {
		t.Errorf("the deadline is %v away, beyond the Lease", time.Until(at))
	}
	r.outcome(t, m)
}

func TestALeaderThatLosesItsLeaseCancelsItsCalls(t *testing.T) {
	f := newFakeDriver()
	entered := make(chan struct{})
	f.create = func(ctx context.Context, _ *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	m := machine("a")
	if err := r.StartCreate(t.Context(), m, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-entered
	r.lead()
	<-r.ended
	outcome, progress := r.Collect(m.Key(), m.UID)
	if progress != Ended || outcome.Failure == nil || outcome.Failure.Class != instance.OutcomeUnknown {
		t.Errorf("%s %+v, want the call ended with an unknown outcome", progress, outcome.Failure)
	}
	if err := r.StartCreate(t.Context(), m, nil, nil); failureClass(err) != instance.Unavailable {
		t.Errorf("a call without leadership: %v, want Unavailable", err)
	}
}

func TestAServerThatIsNoDriver(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{}, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	newFakeDriver().serve(t, path)
	r.awaitReady(t)
}
