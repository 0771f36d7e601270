package driver

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// console waits for the answer about m's console.
func (r *rig) console(t *testing.T, m wire.Machine) *instance.Console {
	t.Helper()
	var answer *instance.Console
	r.await(t, "the console", func() bool {
		answer = r.Console(m.Key(), m.UID)
		return answer != nil && !answer.UnderWay
	})
	return answer
}

// startConsole runs a driver whose console a test decides.
func startConsole(
	t *testing.T, cfg Config, read func(context.Context, *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error),
) *rig {
	t.Helper()
	f := newFakeDriver()
	f.caps.Features = append(f.caps.Features, driverv1alpha1.Feature_FEATURE_CONSOLE)
	f.caps.Limits.MaxConcurrentRequests = 1
	if read != nil {
		f.console = func(ctx context.Context, r *driverv1alpha1.GetConsoleOutputRequest) (*driverv1alpha1.GetConsoleOutputResponse, error) {
			output, err := read(ctx, r)
			return &driverv1alpha1.GetConsoleOutputResponse{Output: output}, err
		}
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, cfg, path)
	r.awaitReady(t)
	return r
}

func TestConsoleIsReadWithoutSecrets(t *testing.T) {
	m := accountWithSecrets("a")
	m.ProviderID, m.LastKnownState = prefix+"1", []byte("state")
	r := startConsole(t, Config{}, func(_ context.Context, request *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
		if request.GetProviderId() != m.ProviderID || string(request.GetLastKnownState()) != "state" || request.GetMachine().GetUid() != m.UID {
			return nil, says(codes.NotFound, "MACHINE_NOT_FOUND", "no such VM")
		}
		return []byte("\x1b[1mLinux\x1b[0m\r\nlogin with " + secretCanary + "\r\ntoken " + userDataCanary), nil
	})
	if !r.Capabilities().CanReadConsole() {
		t.Error("the driver's feature is not seen")
	}
	if answer := r.Console(m.Key(), m.UID); answer != nil {
		t.Errorf("before anybody asked the console is %+v", answer)
	}
	r.AskConsole(m)
	want := &instance.Console{Lines: []string{"Linux", "login with [redacted]", "token [redacted]"}}
	if diff := cmp.Diff(want, r.console(t, m)); diff != "" {
		t.Errorf("the console (-want +got):\n%s", diff)
	}
	r.Forget(m.Key(), m.UID)
	if answer := r.Console(m.Key(), m.UID); answer != nil {
		t.Errorf("of a machine that is forgotten the console is %+v", answer)
	}
}

func TestConsoleThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		read func(context.Context, *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error)
		want instance.Class
	}{
		"a driver that cannot after all": {nil, instance.Unimplemented},
		"a VM that is not there": {func(context.Context, *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
			return nil, says(codes.NotFound, "MACHINE_NOT_FOUND", "no such VM")
		}, instance.NotFound},
		"more than is allowed": {func(context.Context, *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
			return bytes.Repeat([]byte("x\n"), contract.MaxConsoleBytes), nil
		}, instance.OutcomeUnknown},
		"a driver that does not answer": {func(ctx context.Context, _ *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, instance.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r := startConsole(t, Config{Deadlines: connection.Deadlines{Status: 200 * time.Millisecond}}, tc.read)
			m := machine("a")
			r.AskConsole(m)
			answer := r.console(t, m)
			if answer.Failure == nil || answer.Failure.Class != tc.want || len(answer.Lines) > 0 {
				t.Errorf("the console is %+v, want a failure of class %s", answer, tc.want)
			}
		})
	}
}

// TestConsoleIsAskedOnceAtATime: a question that is under way is not asked again; one whose machine
// was forgotten meanwhile tells nobody; and a driver that is busy does not make it wait for ever.
func TestConsoleIsAskedOnceAtATime(t *testing.T) {
	var asked atomic.Int32
	begun, hold := make(chan struct{}, 8), make(chan struct{})
	r := startConsole(t, Config{Deadlines: connection.Deadlines{Status: 5 * time.Second}}, func(ctx context.Context, _ *driverv1alpha1.GetConsoleOutputRequest) ([]byte, error) {
		asked.Add(1)
		begun <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return []byte("login:"), nil
	})
	first, other := machine("a"), machine("b")
	r.AskConsole(first)
	r.AskConsole(first)
	<-begun
	if answer := r.Console(first.Key(), first.UID); answer == nil || !answer.UnderWay {
		t.Errorf("while the driver is asked the console is %+v", answer)
	}
	thief := machine("c")
	thief.UID = first.UID
	r.AskConsole(thief)
	if answer := r.Console(thief.Key(), thief.UID); answer != nil {
		t.Errorf("another machine of the uid is told %+v", answer)
	}
	r.Forget(first.Key(), first.UID)
	r.AskConsole(other)
	close(hold)
	if diff := cmp.Diff(&instance.Console{Lines: []string{"login:"}}, r.console(t, other), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the other console (-want +got):\n%s", diff)
	}
	if answer, n := r.Console(first.Key(), first.UID), asked.Load(); answer != nil || n != 2 {
		t.Errorf("the driver was asked %d times, and the machine that was forgotten is told %+v", n, answer)
	}
}

func TestConsoleWithoutDriver(t *testing.T) {
	r := start(t, Config{}, socketPath(t))
	m := machine("a")
	r.AskConsole(m)
	if answer := r.Console(m.Key(), m.UID); answer == nil || answer.Failure == nil || answer.Failure.Class != instance.Unavailable {
		t.Errorf("without a driver the console is %+v", answer)
	}
}
