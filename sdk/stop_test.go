package sdk_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
	"github.com/millwright-dev/millwright/sdk/socket"
)

// slowSaw is a driver whose creates wait: entered tells of each, and each ends with what release
// gives it.
type slowSaw struct {
	sawmill
	entered chan struct{}
	release chan struct{}
}

func newSlowSaw(ignoring bool) *slowSaw {
	s := &slowSaw{entered: make(chan struct{}, 1), release: make(chan struct{})}
	s.create = func(ctx context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
		s.entered <- struct{}{}
		if ignoring {
			<-s.release
			return running(r.GetMeta(), r.GetMachine()), nil
		}
		select {
		case <-s.release:
			return running(r.GetMeta(), r.GetMachine()), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s
}

// begin starts a create and returns, once the driver has it, where its end will be told.
func (s *slowSaw) begin(t *testing.T, at *served) <-chan error {
	t.Helper()
	conn := at.dial(t)
	ended := make(chan error, 1)
	go func() {
		_, err := driverv1alpha1.NewMachineServiceClient(conn).CreateMachine(context.Background(), goodCreate())
		ended <- err
	}()
	await(t, s.entered, "the call to arrive")
	return ended
}

func TestAGracefulStopLetsCallsEnd(t *testing.T) {
	driver := newSlowSaw(false)
	s := serve(t, driver, sdk.Options{})
	ended := driver.begin(t, s)
	// Who watches the health must not hold up the stop.
	watch, err := healthv1.NewHealthClient(s.dial(t)).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := watch.Recv(); err != nil || now.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("health: %v, %v; want SERVING", now, err)
	}
	s.stop()
	for {
		if now, err := watch.Recv(); err != nil {
			break // the stream has ended, so the stop is under way
		} else if now.GetStatus() == healthv1.HealthCheckResponse_SERVING {
			t.Fatal("health is SERVING again")
		}
	}
	select {
	case err := <-s.stopped:
		t.Fatalf("Serve returned %v while a call was under way", err)
	default:
	}
	close(driver.release)
	if err := await(t, ended, "the call to end"); err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if err := await(t, s.stopped, "Serve to return"); err != nil {
		t.Errorf("Serve = %v, want nil after a clean stop", err)
	}
	left, err := os.ReadDir(s.path[:len(s.path)-len("/d.sock")])
	if err != nil || len(left) > 0 {
		t.Errorf("the stop has left %v, %v", left, err)
	}
}

func TestAStopCutsOffWhatDoesNotEnd(t *testing.T) {
	for name, ignoring := range map[string]bool{"a call that heeds its context": false, "a call that does not": true} {
		t.Run(name, func(t *testing.T) {
			driver := newSlowSaw(ignoring)
			defer close(driver.release)
			s := serve(t, driver, sdk.Options{StopTimeout: time.Millisecond})
			ended := driver.begin(t, s)
			s.stop()
			if err := await(t, s.stopped, "Serve to return"); !errors.Is(err, socket.ErrCut) {
				t.Errorf("Serve = %v, want ErrCut", err)
			}
			if err := await(t, ended, "the call to end"); status.Code(err) != codes.Unavailable || reasonOf(err) != "" {
				t.Errorf("the call cut off: %v, want UNAVAILABLE without ErrorInfo: its outcome is unknown", err)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	good := "unix://" + t.TempDir() + "/d.sock"
	cases := map[string]struct {
		option, variable string
		ok               bool
	}{
		"the option":                  {good, "", true},
		"the environment":             {"", good, true},
		"the option comes first":      {good, "tcp://127.0.0.1:1", true},
		"neither":                     {"", "", false},
		"plaintext TCP":               {"tcp://127.0.0.1:9443", "", false},
		"an address":                  {"127.0.0.1:9443", "", false},
		"a path":                      {"/run/d.sock", "", false},
		"a relative path":             {"unix://d.sock", "", false},
		"a path that is too long":     {"unix:///" + string(make([]byte, 120)), "", false},
		"a folder that is not there":  {"unix://" + t.TempDir() + "/none/d.sock", "", false},
		"a wrong one, from the shell": {"", "d.sock", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(sdk.EndpointVariable, tc.variable)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			served := false
			err := sdk.Serve(ctx, &sawmill{}, sdk.Options{Endpoint: tc.option, Log: slog.New(slog.DiscardHandler), Ready: func() {
				served = true
				stop()
			}})
			if served != tc.ok || (err == nil) != tc.ok {
				t.Errorf("Serve = %v, served: %t; want it to serve: %t", err, served, tc.ok)
			}
		})
	}
}
