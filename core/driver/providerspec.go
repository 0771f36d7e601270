package driver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/schema"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// ErrPreparing is what Prepare returns while the driver is being asked. The answer wakes the
// machine.
var ErrPreparing = errors.New("the driver is being asked about the spec")

// Question is a spec that a driver is asked about.
type Question struct {
	// Spec is cloudProviderSpec as JSON, without what comes from Secrets.
	Spec []byte
	// Secrets go with it where the driver may need them.
	Secrets map[string][]byte
	// Withheld are the fields that come from Secrets.
	Withheld []providerspec.Path
	// Allow, if set, judges the spec with the driver's defaults, before Secrets go with it. Its
	// error is an *instance.Failure.
	Allow func(completed []byte) error
}

// How long an answer about a spec holds. One that rests on nothing but the spec holds as long as
// the driver is connected.
const (
	// onlineKept: what the cloud lacks may appear.
	onlineKept = 10 * time.Second
	// refusedKept: credentials that are refused are not tried by each machine; others are another
	// question.
	refusedKept = 30 * time.Second
	// troubleKept: a call that failed says little.
	troubleKept = 2 * time.Second
	// maxPrepared bounds how many answers are kept.
	maxPrepared = 1024
)

// preparation is what is known of a question.
type preparation struct {
	done    bool
	spec    []byte
	failure *instance.Failure
	// before is the trouble that the last attempt at the same answer met: it holds until there is
	// one.
	before *instance.Failure
	// until is how long the answer holds; zero for as long as the connection.
	until time.Time
	// waiting are machines to wake when it is there.
	waiting map[types.NamespacedName]struct{}
}

// SpecSchema returns the driver's schema as it was when the driver was last reached; nil where it
// has none, and then, for people, why. The error is an *instance.Failure of class Unavailable: the
// driver has not been reached yet, and whether it has a schema is not known.
func (d *Driver) SpecSchema() (known *schema.Schema, why string, err error) {
	last := d.connection.Last()
	switch {
	case last == nil:
		return nil, "", notReady(connection.NotConnected)
	case last.Schema != nil:
		return last.Schema, "", nil
	case last.SchemaTrouble != "":
		return nil, last.SchemaTrouble, nil
	}
	return nil, "the driver publishes no schema", nil
}

// Prepare returns the spec that a new machine is made from: with the driver's defaults, and found
// right, also by the cloud. The driver is asked once per question and connection, however many
// machines ask. Anything but nil means that no machine should be made now: ErrPreparing, or an
// *instance.Failure of class Unavailable, SpecInvalid with the fields that are wrong, Precondition
// with what the cloud lacks, or that of the call, none of which leaves anything in doubt.
func (d *Driver) Prepare(m Machine, q Question) ([]byte, error) {
	key := questionKeyOf(q)
	d.mu.Lock()
	defer d.mu.Unlock()
	s, why := d.connection.Acquire()
	if why != "" {
		d.wait(m, time.Time{})
		return nil, notReady(why)
	}
	defer s.Release()
	if d.preparedBy != s {
		d.prepared, d.preparedBy = map[string]*preparation{}, s
	}
	now := d.cfg.Clock.Now()
	p, known := d.prepared[key]
	var before *instance.Failure
	if known && p.done && !p.until.IsZero() && !now.Before(p.until) {
		known = false
		if p.failure != nil && p.failure.Class == instance.Unavailable {
			before = p.failure
		}
	}
	if !known {
		p = &preparation{before: before, waiting: map[types.NamespacedName]struct{}{}}
		d.keepPrepared(key, p)
		s.Go(func() { d.prepare(s, p, q) })
	}
	if !p.done {
		p.waiting[m.Key()] = struct{}{}
		if p.before != nil {
			return nil, p.before
		}
		return nil, ErrPreparing
	}
	if p.failure == nil {
		return p.spec, nil
	}
	if p.failure.Class == instance.Unavailable {
		d.wait(m, p.until)
	}
	return nil, p.failure
}

// keepPrepared keeps an answer, and drops others where there are too many. Call it with the lock
// held.
func (d *Driver) keepPrepared(key string, p *preparation) {
	if len(d.prepared) >= maxPrepared {
		maps.DeleteFunc(d.prepared, func(_ string, p *preparation) bool { return p.done })
	}
	d.prepared[key] = p
}

// prepare asks the driver, and wakes who waits for the answer.
func (d *Driver) prepare(s *connection.Session, p *preparation, q Question) {
	spec, failure := d.explain(s.Mutations, s, q, true)
	d.mu.Lock()
	defer d.mu.Unlock()
	p.done, p.spec, p.failure = true, spec, failure
	now := d.cfg.Clock.Now()
	switch {
	case failure == nil, failure.Class == instance.SpecInvalid:
	case failure.Class == instance.Precondition:
		p.until = now.Add(onlineKept)
	case failure.Class == instance.Credentials, failure.Class == instance.AccountChanged:
		p.until = now.Add(max(refusedKept, failure.RetryAfter))
	default:
		p.failure = certain(failure)
		p.until = now.Add(max(troubleKept, failure.RetryAfter))
	}
	for machine := range p.waiting {
		d.notifier.enqueue(machine)
	}
}

// certain is a failure that leaves no doubt: nothing was asked for that could have taken effect.
func certain(f *instance.Failure) *instance.Failure {
	switch f.Class {
	case instance.Credentials, instance.Quota, instance.RateLimited, instance.AccountChanged:
		return f
	}
	return wire.Unavailable(f.Reason, "the driver cannot check the spec now: "+f.Message)
}

// CheckSpec returns what is wrong with a spec as far as can be told without the cloud. An error
// means that the driver could not be asked. It waits for the driver, as long as ctx allows.
func (d *Driver) CheckSpec(ctx context.Context, q Question) ([]instance.Field, error) {
	s, why := d.connection.Acquire()
	if why != "" {
		return nil, notReady(why)
	}
	defer s.Release()
	_, failure := d.explain(ctx, s, q, false)
	if failure == nil {
		return nil, nil
	}
	if failure.Class == instance.SpecInvalid && len(failure.Fields) > 0 {
		return failure.Fields, nil
	}
	return nil, failure
}

// explain has the driver fill in its defaults, and looks for what is wrong with the result: by the
// schema, by the driver, and if online by the cloud, in this order.
func (d *Driver) explain(ctx context.Context, s *connection.Session, q Question, online bool) ([]byte, *instance.Failure) {
	spec, failure := d.defaulted(ctx, s, q.Spec)
	if failure != nil {
		return nil, failure
	}
	if q.Allow != nil {
		if err := q.Allow(spec); err != nil {
			return nil, failureOf(err)
		}
	}
	if known := s.Schema; known != nil {
		if found := known.Check(spec, schema.Scope{Withheld: q.Withheld}); len(found) > 0 {
			return nil, wrongFields(instance.SpecInvalid, fieldsOf(found))
		}
	}
	if !s.Capabilities.Has(driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_VALIDATE) {
		return spec, nil
	}
	fields, failure := d.validated(ctx, s, spec, q.Secrets, false)
	if failure == nil && len(fields) > 0 {
		failure = wrongFields(instance.SpecInvalid, fields)
	}
	if failure != nil || !online {
		return spec, failure
	}
	fields, failure = d.validated(ctx, s, spec, q.Secrets, true)
	if failure == nil && len(fields) > 0 {
		failure = wrongFields(instance.Precondition, fields)
	}
	return spec, failure
}

// failureOf is the failure that an error is.
func failureOf(err error) *instance.Failure {
	if failure, is := errors.AsType[*instance.Failure](err); is {
		return failure
	}
	return notReady(err.Error())
}

// defaulted returns the spec with the driver's defaults; as it is where the driver has none.
func (d *Driver) defaulted(ctx context.Context, s *connection.Session, spec []byte) ([]byte, *instance.Failure) {
	if !s.Capabilities.Has(driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_DEFAULT) {
		return spec, nil
	}
	request := &driverv1alpha1.DefaultProviderSpecRequest{
		Meta: s.Meta(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: spec},
	}
	if failure := wire.CheckRequest(request); failure != nil {
		return nil, failure
	}
	var answer *driverv1alpha1.DefaultProviderSpecResponse
	failure := hooks{d}.Call(ctx, s, s.Capabilities.Deadlines.Status, func(ctx context.Context) (err error) {
		answer, err = s.Specs.DefaultProviderSpec(ctx, request)
		return err
	})
	if failure != nil && failure.Class == instance.Unimplemented {
		return spec, nil
	}
	if failure != nil {
		return nil, failure
	}
	filled := answer.GetProviderSpec()
	if len(filled) > contract.MaxProviderSpecBytes || !json.Valid(filled) || !bytes.HasPrefix(bytes.TrimSpace(filled), []byte("{")) {
		return nil, wire.InvalidAnswer("provider_spec: is not a JSON object of the permitted size")
	}
	return filled, nil
}

// validated returns what the driver finds wrong.
func (d *Driver) validated(
	ctx context.Context, s *connection.Session, spec []byte, secrets map[string][]byte, online bool,
) ([]instance.Field, *instance.Failure) {
	request := &driverv1alpha1.ValidateProviderSpecRequest{
		Meta: s.Meta(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: spec, Secrets: secrets}, Online: online,
	}
	if failure := wire.CheckRequest(request); failure != nil {
		return nil, failure
	}
	var answer *driverv1alpha1.ValidateProviderSpecResponse
	failure := hooks{d}.Call(ctx, s, s.Capabilities.Deadlines.Status, func(ctx context.Context) (err error) {
		answer, err = s.Specs.ValidateProviderSpec(ctx, request)
		return err
	})
	if failure != nil && failure.Class == instance.Unimplemented {
		return nil, nil
	}
	if failure != nil {
		return nil, failure
	}
	var fields []instance.Field
	for _, violation := range answer.GetViolations() {
		fields = append(fields, instance.Field{
			Path: wire.Bounded(violation.GetField(), wire.MaxReason), Description: wire.Bounded(violation.GetDescription(), wire.MaxMessage),
		})
	}
	return fields, nil
}

func fieldsOf(found providerspec.Problems) []instance.Field {
	fields := make([]instance.Field, 0, len(found))
	for _, problem := range found {
		fields = append(fields, instance.Field{
			Path: wire.Bounded(problem.Path, wire.MaxReason), Description: wire.Bounded(problem.Description, wire.MaxMessage),
		})
	}
	return fields
}

// wrongFields is the failure of a spec with wrong fields: for good, or as long as the cloud lacks
// what they name.
func wrongFields(class instance.Class, fields []instance.Field) *instance.Failure {
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	if class == instance.Precondition {
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
	}
	fields = fields[:min(len(fields), wire.MaxFields)]
	return &instance.Failure{
		Class: class, Reason: wire.Reason(reason), Fields: fields,
		Message: fmt.Sprintf("%s: %s", fields[0].Path, fields[0].Description),
	}
}

// questionKey keeps what secrets hash to from meaning anything outside this process.
var questionKey = []byte(rand.Text())

// questionKeyOf is the same for the same question.
func questionKeyOf(q Question) string {
	h := hmac.New(sha256.New, questionKey)
	part := func(b []byte) {
		_, _ = fmt.Fprintf(h, "%d:", len(b))
		_, _ = h.Write(b)
	}
	part(q.Spec)
	for _, name := range slices.Sorted(maps.Keys(q.Secrets)) {
		part([]byte(name))
		part(q.Secrets[name])
	}
	return string(h.Sum(nil))
}
