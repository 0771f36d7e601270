package driver

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	secretCanary   = `s3cr3t/ca+nary "&=?`
	userDataCanary = "abcdef.c4n4ry6789abcdef"
)

// canaryForms are the disguises in which neither may be seen.
func canaryForms() []string {
	var forms []string
	for _, canary := range []string{secretCanary, userDataCanary} {
		forms = append(forms, canary, strings.Trim(fmt.Sprintf("%q", canary), `"`), url.QueryEscape(canary),
			base64.RawStdEncoding.EncodeToString([]byte(canary))[:20], hex.EncodeToString([]byte(canary)))
	}
	return forms
}

func mustNotTell(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range canaryForms() {
		if strings.Contains(text, form) {
			t.Errorf("%s tells %q:\n%s", what, form, text)
		}
	}
}

// carelessly are the ways in which a driver, in whatever language, repeats what it was told.
func carelessly(say string) map[string]error {
	return map[string]error{
		"message": says(codes.Internal, "PROVIDER_INTERNAL", say),
		"reason":  says(codes.Internal, say, "it failed"),
		"fields": says(codes.InvalidArgument, "SPEC_INVALID", "it is wrong", &errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: say, Description: say}},
		}),
		"state":         says(codes.Internal, "PROVIDER_INTERNAL", "half-way", &driverv1alpha1.PartialState{ProviderId: prefix + "1", LastKnownState: []byte(say)}),
		"no ErrorInfo":  status.Error(codes.Unknown, say),
		"a made-up one": status.Error(codes.Code(4711), say),
	}
}

// accountWithSecrets is a machine whose Secret also holds what is part of its driver's name.
func accountWithSecrets(name string) wire.Machine {
	m := machine(name)
	m.Secrets = map[string][]byte{"password": []byte(secretCanary), "name": []byte(driverName), "user": []byte("s3cr3t")}
	return m
}

func TestADriversCarelessWordsStopAtTheClient(t *testing.T) {
	disguises := map[string]string{
		"raw": secretCanary, "base64": base64.StdEncoding.EncodeToString([]byte("me:" + secretCanary)), "url": url.QueryEscape(secretCanary),
		"hex": hex.EncodeToString([]byte(secretCanary)), "user data": userDataCanary, "a long text": strings.Repeat("x", wire.MaxMessage-10) + secretCanary,
	}
	f := newFakeDriver()
	var mu sync.Mutex
	var careless error
	fail := func() error {
		mu.Lock()
		defer mu.Unlock()
		return careless
	}
	f.create = func(context.Context, *driverv1alpha1.CreateMachineRequest) (*driverv1alpha1.CreateMachineResponse, error) {
		return nil, fail()
	}
	var lines lockedLines
	registry := prometheus.NewRegistry()
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{Registry: registry, Log: logSink(lines.add)}, path)
	r.awaitReady(t)
	m := accountWithSecrets("a")
	for disguise, say := range disguises {
		for way, err := range carelessly(say) {
			mu.Lock()
			careless = err
			mu.Unlock()
			if err := r.StartCreate(t.Context(), m, []byte("#cloud-config\n# token: "+userDataCanary), nil); err != nil {
				t.Fatal(err)
			}
			failure := r.outcome(t, m).Failure
			mustNotTell(t, disguise+" in "+way, fmt.Sprintf("%+v %s", failure, failure.LastKnownState))
			want := wire.Classify(driverName, err, true)
			if failure.Class != want.Class || failure.ProviderID != want.ProviderID || len(failure.Fields) != len(want.Fields) {
				t.Errorf("%s in %s: %+v, want the class and the ids of %+v", disguise, way, failure, want)
			}
		}
	}
	mustNotTell(t, "the log", lines.String())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	metrics := fmt.Sprint(families)
	mustNotTell(t, "a metric", metrics)
	if strings.Contains(metrics, "Code(4711)") {
		t.Error("a made-up code is a label")
	}
}

func TestADriversCarelessAnswersStopAtTheClient(t *testing.T) {
	say := "it failed with " + secretCanary
	f, s := newSpecDriver()
	spoil := func(ref *driverv1alpha1.MachineRef) *driverv1alpha1.Machine {
		m := running(ref)
		m.Reason, m.Message = say, say
		return m
	}
	f.get = func(_ context.Context, r *driverv1alpha1.GetMachineStatusRequest) (*driverv1alpha1.GetMachineStatusResponse, error) {
		return &driverv1alpha1.GetMachineStatusResponse{Machine: spoil(r.GetMachine())}, nil
	}
	s.validate = func(string, bool) ([]*driverv1alpha1.FieldViolation, error) {
		return []*driverv1alpha1.FieldViolation{{Field: "size", Description: say}}, nil
	}
	var careless atomic.Bool
	f.probe = func() *driverv1alpha1.ProbeResponse {
		if careless.Load() {
			return &driverv1alpha1.ProbeResponse{Reason: say}
		}
		return &driverv1alpha1.ProbeResponse{Ready: true}
	}
	var lines lockedLines
	var once sync.Once
	unready := make(chan struct{})
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{ProbeInterval: time.Millisecond, Polling: poller.Polling{Interval: time.Millisecond}, Log: logSink(func(line string) {
		lines.add(line)
		if strings.Contains(line, "driver is not ready") {
			once.Do(func() { close(unready) })
		}
	})}, path)
	r.awaitReady(t)
	m := accountWithSecrets("a")
	r.Track(m, instance.PollPending)
	seen := r.observed(t, m, func(instance.Observation) bool { return true })
	mustNotTell(t, "a look", fmt.Sprintf("%+v %+v", seen.Instance, seen.Failure))
	if seen.Instance == nil || seen.Instance.ProviderID != prefix+m.UID || !strings.Contains(seen.Instance.Message, "it failed with") {
		t.Errorf("the look found %+v, want what is no secret", seen.Instance)
	}
	spec, _ := providerspec.Read(m.Spec)
	found, err := r.CheckSpec(t.Context(), spec)
	if err != nil || len(found) != 1 {
		t.Errorf("the check found %v, %v", found, err)
	}
	mustNotTell(t, "a check", fmt.Sprint(found))
	careless.Store(true)
	<-unready
	if why := r.Unready(); !strings.Contains(why, "it failed with") {
		t.Errorf("the probe failed because %q", why)
	}
	mustNotTell(t, "a probe", r.Unready())
	mustNotTell(t, "the log", lines.String())
}

// lockedLines collects what several goroutines write.
type lockedLines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lockedLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.WriteString(line + "\n")
}

func (l *lockedLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
