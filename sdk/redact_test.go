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

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

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
					m.LastKnownState = []byte(canary)
					return m, nil
				}}
				s := serve(t, driver, sdk.Options{Log: slog.New(newHandler(&log))})
				request := goodCreate()
				request.UserData = []byte("#cloud-config\n" + canary)
				request.Provider.Secrets = map[string][]byte{"password": []byte(canary)}
				request.Provider.ProviderSpec = fmt.Appendf(nil, `{"password":%q}`, canary)
				_, err := driverv1alpha1.NewMachineServiceClient(s.dial(t)).CreateMachine(t.Context(), request)
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

// nested is a message that holds debug_redact wherever it can stand: in a message, in a list and a map of messages, on a
// list, on a map and on a message.
func nested(t *testing.T) proto.Message {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal([]byte(`
		name: "nested.proto" package: "nested" syntax: "proto3"
		message_type {
			name: "Leaf"
			field { name: "secret" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL options { debug_redact: true } }
			field { name: "open" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
		}
		message_type {
			name: "Tree"
			field { name: "leaf" number: 1 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_OPTIONAL }
			field { name: "leaves" number: 2 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_REPEATED }
			field { name: "by_name" number: 3 type: TYPE_MESSAGE type_name: ".nested.Tree.ByNameEntry" label: LABEL_REPEATED }
			field { name: "secrets" number: 4 type: TYPE_STRING label: LABEL_REPEATED options { debug_redact: true } }
			field { name: "secret_leaf" number: 5 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_OPTIONAL options { debug_redact: true } }
			field { name: "blob" number: 6 type: TYPE_BYTES label: LABEL_OPTIONAL }
			field { name: "secret_by_name" number: 7 type: TYPE_MESSAGE type_name: ".nested.Tree.SecretByNameEntry" label: LABEL_REPEATED options { debug_redact: true } }
			nested_type {
				name: "ByNameEntry" options { map_entry: true }
				field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
				field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".nested.Leaf" label: LABEL_OPTIONAL }
			}
			nested_type {
				name: "SecretByNameEntry" options { map_entry: true }
				field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
				field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
			}
		}`), file); err != nil {
		t.Fatal(err)
	}
	described, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree := dynamicpb.NewMessage(described.Messages().ByName("Tree"))
	leaf := `{ secret: "canary" open: "to see" }`
	if err := prototext.Unmarshal([]byte(`leaf `+leaf+` leaves `+leaf+` by_name { key: "k" value `+leaf+` } secrets: "canary"
		secret_leaf { open: "canary" } blob: "canary" secret_by_name { key: "canary" value: "canary" }`), tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestRedactedSeesEveryPlace(t *testing.T) {
	tree := nested(t)
	got := fmt.Sprint(sdk.Redacted(tree).LogValue())
	if strings.Contains(got, "canary") {
		t.Errorf("a secret is left: %s", got)
	}
	if n := strings.Count(got, "to see"); n != 3 {
		t.Errorf("%d of 3 fields that may be seen are left: %s", n, got)
	}
	if n := strings.Count(got, "[redacted]"); n != 6 {
		t.Errorf("%d of 6 fields are redacted: %s", n, got)
	}
	if !strings.Contains(got, "[6 bytes]") {
		t.Errorf("bytes are not told by their number: %s", got)
	}
}

func TestRedactedOfWhatIsNoMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"nil":             {nil, "<nil>"},
		"a text":          {"canary", "string"},
		"a nil message":   {(*driverv1alpha1.MachineRef)(nil), "map[]"},
		"an unknown enum": {&driverv1alpha1.Machine{State: 99}, "map[state:99]"},
		"a known enum":    {&driverv1alpha1.Machine{State: 2}, "map[state:MACHINE_STATE_RUNNING]"},
	} {
		if got := fmt.Sprint(sdk.Redacted(tc.value).LogValue()); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
