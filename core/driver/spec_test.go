package driver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// specDriver is a fakeDriver that explains its spec; a test decides its answers, and how often it
// was asked is counted.
type specDriver struct {
	driverv1alpha1.UnimplementedProviderSpecServiceServer

	schema   string
	fill     func(spec string) (string, error)
	validate func(spec string, online bool) ([]*driverv1alpha1.FieldViolation, error)
	asked    atomic.Int32
}

func (s *specDriver) GetProviderSpecSchema(
	context.Context, *driverv1alpha1.GetProviderSpecSchemaRequest,
) (*driverv1alpha1.GetProviderSpecSchemaResponse, error) {
	return &driverv1alpha1.GetProviderSpecSchemaResponse{JsonSchema: []byte(s.schema)}, nil
}

func (s *specDriver) DefaultProviderSpec(
	_ context.Context, r *driverv1alpha1.DefaultProviderSpecRequest,
) (*driverv1alpha1.DefaultProviderSpecResponse, error) {
	s.asked.Add(1)
	filled, err := s.fill(string(r.GetProvider().GetProviderSpec()))
	return &driverv1alpha1.DefaultProviderSpecResponse{ProviderSpec: []byte(filled)}, err
}

func (s *specDriver) ValidateProviderSpec(
	_ context.Context, r *driverv1alpha1.ValidateProviderSpecRequest,
) (*driverv1alpha1.ValidateProviderSpecResponse, error) {
	found, err := s.validate(string(r.GetProvider().GetProviderSpec()), r.GetOnline())
	return &driverv1alpha1.ValidateProviderSpecResponse{Violations: found}, err
}

// newSpecDriver returns a driver that finds nothing wrong and has a default.
func newSpecDriver() (*fakeDriver, *specDriver) {
	f := newFakeDriver()
	f.caps.Features = append(f.caps.Features, driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_SCHEMA,
		driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_DEFAULT, driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_VALIDATE)
	s := &specDriver{
		schema:   `{"additionalProperties":false,"required":["size","key"],"properties":{"size":{"type":"string"},"zone":{},"key":{"writeOnly":true,"minLength":3}}}`,
		fill:     func(spec string) (string, error) { return strings.Replace(spec, "{", `{"zone":"a",`, 1), nil },
		validate: func(string, bool) ([]*driverv1alpha1.FieldViolation, error) { return nil, nil },
	}
	f.specs = s
	return f, s
}

// small is a machine with a spec, and a secret in the place of its field key.
func small(name string) wire.Machine {
	m := machine(name)
	m.Secrets = map[string][]byte{"key": []byte("k")}
	return m
}

var keyWithheld = []providerspec.Reference{{Path: providerspec.Path{"key"}, Kind: providerspec.Secret}}

// prepared waits for the answer that m gets.
func (r *rig) prepared(t *testing.T, m wire.Machine) ([]byte, error) {
	t.Helper()
	var spec []byte
	var err error
	r.await(t, "the answer", func() bool {
		spec, err = r.Prepare(m, keyWithheld, nil)
		return !errors.Is(err, ErrPreparing) && failureClass(err) != instance.Unavailable
	})
	return spec, err
}

func TestAPI9_OneQuestionForManyMachines(t *testing.T) {
	f, s := newSpecDriver()
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	for _, m := range machines(50) {
		if _, err := r.Prepare(small(m.Name), keyWithheld, nil); err != nil && !errors.Is(err, ErrPreparing) {
			t.Fatal(err)
		}
	}
	for _, m := range machines(50) {
		if spec, err := r.prepared(t, small(m.Name)); err != nil || string(spec) != `{"zone":"a","size":"s"}` {
			t.Fatalf("%s: %s, %v", m.Name, spec, err)
		}
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("the driver was asked %d times", n)
	}
	other := machine("m")
	other.Secrets = map[string][]byte{"key": []byte("another")}
	if _, err := r.prepared(t, other); err != nil || s.asked.Load() != 2 {
		t.Errorf("another secret is the same question: %v, asked %d times", err, s.asked.Load())
	}
}

func TestAPI9_WhatIsWrong(t *testing.T) {
	violation := []*driverv1alpha1.FieldViolation{{Field: "size", Description: "is none"}}
	for _, tc := range []struct {
		name   string
		change func(*fakeDriver, *specDriver)
		spec   string
		class  instance.Class
		field  string
	}{
		{name: "nothing", spec: `{"size":"s"}`},
		{name: "by the schema", spec: `{"size":"s","colour":"red"}`, class: instance.SpecInvalid, field: "colour"},
		{name: "a schema that is none finds nothing", spec: `{"size":1}`, change: func(_ *fakeDriver, s *specDriver) { s.schema = `{"type":7}` }},
		{name: "by the driver", spec: `{"size":"s"}`, class: instance.SpecInvalid, field: "size", change: func(_ *fakeDriver, s *specDriver) {
			s.validate = func(string, bool) ([]*driverv1alpha1.FieldViolation, error) { return violation, nil }
		}},
		{name: "by the cloud", spec: `{"size":"s"}`, class: instance.Precondition, field: "size", change: func(_ *fakeDriver, s *specDriver) {
			s.validate = func(_ string, online bool) ([]*driverv1alpha1.FieldViolation, error) {
				if online {
					return violation, nil
				}
				return nil, nil
			}
		}},
		{name: "the credentials", spec: `{"size":"s"}`, class: instance.Credentials, change: func(_ *fakeDriver, s *specDriver) {
			s.validate = func(string, bool) ([]*driverv1alpha1.FieldViolation, error) {
				return nil, says(codes.Unauthenticated, "CREDENTIALS_INVALID", "no")
			}
		}},
		{name: "no feature at all", spec: `{"anything":1}`, change: func(f *fakeDriver, _ *specDriver) { f.caps.Features = nil }},
		{name: "features that are not there after all", spec: `{"size":"s"}`, change: func(f *fakeDriver, _ *specDriver) { f.specs = nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, s := newSpecDriver()
			if tc.change != nil {
				tc.change(f, s)
			}
			path := socketPath(t)
			f.serve(t, path)
			r := start(t, Config{}, path)
			r.awaitReady(t)
			m := machine("m")
			m.Spec = []byte(tc.spec)
			_, err := r.prepared(t, m)
			if failureClass(err) != tc.class {
				t.Fatalf("got %v, want class %q", err, tc.class)
			}
			fields := []instance.Field(nil)
			if failure, failed := errors.AsType[*instance.Failure](err); failed {
				fields = failure.Fields
			}
			if tc.field != "" && (len(fields) != 1 || fields[0].Path != tc.field) {
				t.Errorf("names %v, want %s", fields, tc.field)
			}
			// Without the cloud the same is found, but for what only the cloud knows.
			spec, _ := providerspec.Read(m.Spec)
			offline, err := r.CheckSpec(t.Context(), spec)
			if wrong := tc.class == instance.SpecInvalid; wrong != (len(offline) > 0) || err != nil && tc.class != instance.Credentials {
				t.Errorf("offline: %v, %v", offline, err)
			}
		})
	}
}

// A driver that fails to answer holds nothing up for good, and leaves no doubt.
func TestPrepareAsksAgainAfterAFailure(t *testing.T) {
	f, s := newSpecDriver()
	var broken atomic.Bool
	broken.Store(true)
	fill := s.fill
	s.fill = func(spec string) (string, error) {
		if broken.Load() {
			return "", says(codes.Internal, "PROVIDER_INTERNAL", "out of order")
		}
		return fill(spec)
	}
	path := socketPath(t)
	f.serve(t, path)
	clock := testingclock.NewFakeClock(time.Now())
	r := start(t, Config{Clock: clock}, path)
	r.awaitReady(t)
	r.await(t, "the failure", func() bool {
		_, err := r.Prepare(small("m"), keyWithheld, nil)
		return failureClass(err) == instance.Unavailable
	})
	// While it is asked again, the failure is what is known: a machine that is told something else
	// in between would say nothing.
	for range 3 {
		clock.Step(2 * troubleKept)
		if _, err := r.Prepare(small("m"), keyWithheld, nil); failureClass(err) != instance.Unavailable {
			t.Errorf("asked again it says %v, want the failure", err)
		}
	}
	broken.Store(false)
	clock.Step(2 * troubleKept)
	r.await(t, "the answer", func() bool {
		clock.Step(troubleKept)
		_, err := r.Prepare(small("m"), keyWithheld, nil)
		return err == nil
	})
}

func TestAPI9_AnotherDriverIsAskedAnew(t *testing.T) {
	f, s := newSpecDriver()
	path := socketPath(t)
	server := f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	if _, err := r.prepared(t, small("m")); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	for r.Unready() == "" {
		r.awaitStatusChange(t)
	}
	s.fill = func(string) (string, error) { return `{"size":"s","zone":"b"}`, nil }
	f.serve(t, path)
	if known, err := r.SpecSchema(); err != nil || known.Absent() != "" {
		t.Errorf("while the driver is away its schema is forgotten: %v", err)
	}
	r.await(t, "the new default", func() bool {
		spec, err := r.Prepare(small("m"), keyWithheld, nil)
		return err == nil && string(spec) == `{"size":"s","zone":"b"}`
	})
}

// Secrets go with a spec that the driver has completed only when that is allowed, too.
func TestSAFE8_DefaultsAreJudgedBeforeSecretsGoWithThem(t *testing.T) {
	f, s := newSpecDriver()
	s.fill = func(string) (string, error) { return `{"size":"s","url":"https://evil"}`, nil }
	s.validate = func(string, bool) ([]*driverv1alpha1.FieldViolation, error) {
		t.Error("the driver was sent the secrets")
		return nil, nil
	}
	path := socketPath(t)
	f.serve(t, path)
	r := start(t, Config{}, path)
	r.awaitReady(t)
	judged := ""
	var err error
	r.await(t, "the answer", func() bool {
		_, err = r.Prepare(small("m"), keyWithheld, func(completed []byte) *instance.Failure {
			judged = string(completed)
			return &instance.Failure{Class: instance.SpecInvalid, Message: "evil"}
		})
		return !errors.Is(err, ErrPreparing)
	})
	if failure, is := errors.AsType[*instance.Failure](err); !is || failure.Message != "evil" || !strings.Contains(judged, "https://evil") {
		t.Errorf("got %v, having judged %s", err, judged)
	}
}

func TestSpecSchemaSaysWhyThereIsNone(t *testing.T) {
	f, s := newSpecDriver()
	s.schema = `{"$ref":"file:///etc/passwd"}`
	path := socketPath(t)
	r := start(t, Config{}, path)
	if known, err := r.SpecSchema(); err == nil {
		t.Errorf("before it was reached: %v", known)
	}
	f.serve(t, path)
	r.awaitReady(t)
	if known, err := r.SpecSchema(); err != nil || !strings.Contains(known.Absent(), "cannot be used") {
		t.Errorf("%v, %v", known, err)
	}
}
