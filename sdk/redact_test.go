package sdk_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// lockedBuffer may be read while a logger writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const canary = `s3cr3t/ca+nary "&=?`

// token is a canary that only user data holds.
const token = "abcdef.c4n4ry6789abcdef"

// odd is an error of the runtime that says more than the runtime's do.
type odd string

func (o odd) Error() string { return string(o) }

func (odd) RuntimeError() {}

// forms are the disguises in which the canary must not appear either.
func forms() map[string]string {
	return map[string]string{
		"raw":    canary,
		"base64": base64.StdEncoding.EncodeToString([]byte(canary)),
		"url":    url.QueryEscape(canary),
		"hex":    hex.EncodeToString([]byte(canary)),
		"HEX":    strings.ToUpper(hex.EncodeToString([]byte(canary))),
		"quoted": strings.Trim(fmt.Sprintf("%q", canary), `"`),
		"JSON":   `s3cr3t/ca+nary \"\u0026=?`,
		"bytes":  strings.Trim(fmt.Sprintf("%d", []byte(canary)), "[]"),
		"token":  token,
	}
}

func mustNotHold(t *testing.T, what, text string) {
	t.Helper()
	for form, secret := range forms() {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds the secret, %s:\n%s", what, form, text)
		}
	}
}

func TestSecretsReachNeitherLogNorError(t *testing.T) {
	handlers := map[string]func(*lockedBuffer) slog.Handler{
		"text": func(b *lockedBuffer) slog.Handler {
			return slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
		"JSON": func(b *lockedBuffer) slog.Handler {
			return slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
	}
	// Each is what a careless cloud or driver says.
	failures := map[string]func() error{
		"no error": func() error { return nil },
		"an error": func() error { return errors.New("login with " + canary + " failed") },
		"a URL":    func() error { return errors.New("GET https://x/?password=" + url.QueryEscape(canary)) },
		"details": func() error {
			return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, "hex "+hex.EncodeToString([]byte(canary)),
				sdk.WithField("password", "is "+canary+", which is too simple"), sdk.WithPartialState("x", []byte(canary)))
		},
		"a quoted text": func() error { return fmt.Errorf("login with %q failed", canary) },
		"a JSON body":   func() error { return errors.New(`{"password":"s3cr3t/ca+nary \"\u0026=?"}`) },
		"a panic":       func() error { panic(canary) },
		"its own panic": func() error { panic(odd("slice of " + canary)) },
		"a long text":   func() error { return errors.New(strings.Repeat("x", 1<<10-5) + canary) },
		"a long detail": func() error {
			return sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, "wrong", sdk.WithField("password", strings.Repeat("x", 1<<9-5)+canary))
		},
		"a header": func() error {
			return errors.New("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("admin:"+canary)))
		},
		"user data":        func() error { return fmt.Errorf("cloud-init: %q is no token", token) },
		"a cloud's status": func() error { return status.Error(codes.Unavailable, canary) },
		"its own status": func() error {
			s, err := status.New(codes.DataLoss, canary).WithDetails(
				&errdetails.ErrorInfo{Domain: driverName, Reason: "LOST", Metadata: map[string]string{"login": canary}},
				&errdetails.DebugInfo{Detail: canary, StackEntries: []string{canary}})
			if err != nil {
				return err
			}
			return s.Err()
		},
	}
	for handler, newHandler := range handlers {
		for failure, fail := range failures {
			t.Run(handler+", "+failure, func(t *testing.T) {
				var log lockedBuffer
				driver := &sawmill{create: func(_ context.Context, r *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.Machine, error) {
					if err := fail(); err != nil {
						return nil, err
					}
					m := running(r.GetMeta(), r.GetMachine())
					m.LastKnownState, m.Message, m.Reason = []byte(canary), "login with "+canary, canary
					// A name is what it is, but it is not logged.
					m.NodeName, m.Addresses = token, []*driverv1alpha1.MachineAddress{{Address: canary}}
					return m, nil
				}}
				s := serve(t, driver, sdk.Options{Log: slog.New(newHandler(&log))})
				request := goodCreate()
				request.UserData = []byte("#cloud-config\n# token: " + token + "\n" + canary)
				// A Secret often also holds what is part of everything that its driver says.
				request.Provider.Secrets = map[string][]byte{"password": []byte(canary), "user": []byte(canary[:8]), "cloud": []byte(driverName)}
				request.Provider.ProviderSpec = fmt.Appendf(nil, `{"password":%q}`, canary)
				answer, err := driverv1alpha1.NewMachineServiceClient(s.dial(t)).CreateMachine(t.Context(), request)
				mustNotHold(t, "the answer", answer.GetMachine().GetMessage()+answer.GetMachine().GetReason())
				mustNotHold(t, "the error", status.Convert(err).Message())
				mustNotHold(t, "the error", prototext.Format(status.Convert(err).Proto()))
				if err != nil && reasonOf(err) == "" {
					t.Errorf("%v has lost its ErrorInfo", err)
				}
				s.stop()
				if err := await(t, s.stopped, "the end"); err != nil {
					t.Fatal(err)
				}
				mustNotHold(t, "the log", log.String())
				if !strings.Contains(log.String(), "[redacted]") || !strings.Contains(log.String(), "r1") {
					t.Errorf("the log does not tell of the request:\n%s", log.String())
				}
			})
		}
	}
}

// A probe has no secrets with it, but the driver remembers those of other calls.
func TestAProbeTellsNoSecretOfEarlierCalls(t *testing.T) {
	var log lockedBuffer
	driver := &everything{probe: func(context.Context) error { return errors.New("login with " + canary + " failed") }}
	s := serve(t, driver, sdk.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	request := goodGet()
	request.Provider.Secrets = map[string][]byte{"password": []byte(canary)}
	conn := s.dial(t)
	if _, err := driverv1alpha1.NewMachineServiceClient(conn).GetMachineStatus(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	answer, err := driverv1alpha1.NewIdentityServiceClient(conn).Probe(t.Context(), &driverv1alpha1.ProbeRequest{})
	if err != nil || answer.GetReason() != "login with [redacted] failed" {
		t.Errorf("the probe says %q, %v", answer.GetReason(), err)
	}
	s.stop()
	if err := await(t, s.stopped, "the end"); err != nil {
		t.Fatal(err)
	}
	mustNotHold(t, "the log", log.String())
}

// A driver may keep the machines that it answers with.
func TestADriversOwnMachinesAreNotChanged(t *testing.T) {
	kept := running(goodMeta(), goodRef())
	kept.Message = canary
	kept.Addresses = []*driverv1alpha1.MachineAddress{{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_HOSTNAME, Address: "n"}, nil}
	driver := &sawmill{get: func(context.Context, *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.Machine, error) {
		return kept, nil
	}}
	request := goodGet()
	request.Provider.Secrets = map[string][]byte{"password": []byte(canary)}
	answer, err := driverv1alpha1.NewMachineServiceClient(serve(t, driver, sdk.Options{}).dial(t)).GetMachineStatus(t.Context(), request)
	if err != nil || answer.GetMachine().GetMessage() != "[redacted]" || kept.GetMessage() != canary {
		t.Errorf("%v, %v; the driver's own machine says %q", answer, err, kept.GetMessage())
	}
	if own := kept.GetAddresses()[0].GetLegacyType(); own != "" || kept.GetAddresses()[1] != nil { //nolint:staticcheck // that is what is looked at
		t.Errorf("the driver's own addresses say %q", own)
	}
}
