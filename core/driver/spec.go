package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/messages"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// ErrPreparing is what Prepare returns while the driver is being asked. The answer wakes the
// machine.
var ErrPreparing = errors.New("the driver is being asked about the spec")

// SpecSchema returns the driver's schema as it was when the driver was last reached. The error is
// an *instance.Failure of class Unavailable: the driver has not been reached yet, and whether it
// has a schema is not known.
func (d *Driver) SpecSchema() (*providerspec.Schema, error) {
	if last := d.connection.Last(); last != nil {
		return last.Schema, nil
	}
	return nil, notReady(connection.NotConnected)
}

// Prepare returns the spec that a new machine is made from: m's with the driver's defaults, and
// found right, also by the cloud. The argument withheld names the fields that come from m's
// secrets. Unless allow is nil, it judges the spec with its defaults before secrets go with it.
//
// The driver is asked once per question and connection, however many machines ask. Any error means
// that no machine should be made now: ErrPreparing, or an *instance.Failure. Its class is
// Unavailable, SpecInvalid with the fields that are wrong, Precondition with what the cloud
// lacks, or that of the call. None of these leaves anything in doubt.
func (d *Driver) Prepare(
	m wire.Machine, withheld []providerspec.Reference, allow func(completed []byte) *instance.Failure,
) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, why := d.connection.Acquire()
	if why != "" {
		d.wait(m, time.Time{})
		return nil, notReady(why)
	}
	defer s.Release()
	now := d.cfg.Clock.Now()
	p := d.preparations.of(s, m, now)
	if !p.asking && !p.until.IsZero() && !now.Before(p.until) {
		p.ask()
		s.Go(func() {
			spec, failure := specCalls{hooks{d}, s}.explain(s.Mutations, question{m.Spec, m.Secrets, withheld, allow, true})
			d.mu.Lock()
			defer d.mu.Unlock()
			p.record(spec, failure, d.cfg.Clock.Now())
			for machine := range p.waiting {
				d.notifier.enqueue(machine)
			}
			clear(p.waiting)
		})
	}
	if p.asking {
		p.waiting[m.Key()] = struct{}{}
	} else if isUnavailable(p.err) {
		d.wait(m, p.until)
	}
	return p.spec, p.err
}

// CheckSpec returns what is wrong with a spec as far as can be told without the cloud. An error
// means that the driver could not be asked. It waits for the driver, as long as ctx allows.
func (d *Driver) CheckSpec(ctx context.Context, spec providerspec.Spec) ([]instance.Field, error) {
	s, why := d.connection.Acquire()
	if why != "" {
		return nil, notReady(why)
	}
	defer s.Release()
	_, failure := specCalls{hooks{d}, s}.explain(ctx, question{spec: spec.JSON(), withheld: spec.References})
	switch {
	case failure == nil:
		return nil, nil
	case failure.Class == instance.SpecInvalid && len(failure.Fields) > 0:
		return failure.Fields, nil
	}
	return nil, failure
}

// preparations are what a session has answered, by the question.
type preparations struct {
	session *connection.Session
	known   map[preparationKey]*preparation
}

// preparationKey tells questions apart: by the spec, and by the hash of spec and secrets.
type preparationKey struct {
	spec    string
	account uint64
}

// preparation is what is known of a question.
type preparation struct {
	asking bool
	spec   []byte
	err    error
	// until is how long the answer holds; zero for as long as the connection.
	until time.Time
	// waiting are machines to wake when the answer is there.
	waiting map[types.NamespacedName]struct{}
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

// of returns what a session has answered about m's spec. Where it was not asked yet, the answer
// has no time left to hold.
func (p *preparations) of(s *connection.Session, m wire.Machine, now time.Time) *preparation {
	if p.session != s {
		p.session, p.known = s, map[preparationKey]*preparation{}
	}
	key := preparationKey{string(m.Spec), m.Account()}
	if known, is := p.known[key]; is {
		return known
	}
	if len(p.known) >= maxPrepared {
		maps.DeleteFunc(p.known, func(_ preparationKey, p *preparation) bool { return !p.asking })
	}
	one := &preparation{until: now, waiting: map[types.NamespacedName]struct{}{}}
	p.known[key] = one
	return one
}

// ask drops an answer that holds no more. That the driver was unavailable holds until there is
// another: machines that are told something else in between would tell it on.
func (p *preparation) ask() {
	p.asking, p.spec = true, nil
	if !isUnavailable(p.err) {
		p.err = ErrPreparing
	}
}

// record takes over an answer.
func (p *preparation) record(spec []byte, failure *instance.Failure, now time.Time) {
	p.asking, p.spec, p.err, p.until = false, spec, nil, time.Time{}
	if failure == nil {
		return
	}
	p.spec, p.err = nil, failure
	kept := troubleKept
	switch failure.Class {
	case instance.SpecInvalid:
		return
	case instance.Precondition:
		kept = onlineKept
	case instance.Credentials, instance.AccountChanged:
		kept = refusedKept
	case instance.Quota, instance.RateLimited:
	default:
		// Nothing was asked for that could have taken effect, so nothing is in doubt.
		p.err = wire.Unavailable(failure.Reason, "the driver cannot check the spec now: "+failure.Message)
	}
	p.until = now.Add(max(kept, failure.RetryAfter))
}

func isUnavailable(err error) bool {
	failure, failed := errors.AsType[*instance.Failure](err)
	return failed && failure.Class == instance.Unavailable
}

// question is a spec that a driver is asked about.
type question struct {
	spec     []byte
	secrets  map[string][]byte
	withheld []providerspec.Reference
	allow    func(completed []byte) *instance.Failure
	// online: the cloud is asked, too.
	online bool
}

// specCalls asks a driver about specs by a session.
type specCalls struct {
	hooks
	session *connection.Session
}

// explain has the driver fill in its defaults, and looks for what is wrong with the result: by the
// schema, by the driver, and if online by the cloud, in this order.
func (c specCalls) explain(ctx context.Context, q question) ([]byte, *instance.Failure) {
	spec, failure := c.complete(ctx, q.spec)
	if failure == nil && q.allow != nil {
		failure = q.allow(spec)
	}
	if failure != nil {
		return nil, failure
	}
	if found := c.session.Schema.Check(spec, q.withheld); len(found) > 0 {
		return nil, wrongFields(instance.SpecInvalid, found)
	}
	provider := &driverv1alpha1.ProviderContext{ProviderSpec: spec, Secrets: q.secrets}
	failure = c.validate(ctx, provider, false)
	if failure == nil && q.online {
		failure = c.validate(ctx, provider, true)
	}
	return spec, failure
}

// complete returns the spec with the driver's defaults; as it is where the driver has none.
func (c specCalls) complete(ctx context.Context, spec []byte) ([]byte, *instance.Failure) {
	if !c.session.Capabilities.Has(driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_DEFAULT) {
		return spec, nil
	}
	request := &driverv1alpha1.DefaultProviderSpecRequest{
		Meta: c.session.Meta(), Provider: &driverv1alpha1.ProviderContext{ProviderSpec: spec},
	}
	var answer *driverv1alpha1.DefaultProviderSpecResponse
	failure := c.call(ctx, request, func(ctx context.Context) (err error) {
		answer, err = c.session.Specs.DefaultProviderSpec(ctx, request)
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

// validate returns what the driver finds wrong: for good, or online for as long as the cloud lacks
// what fields name.
func (c specCalls) validate(ctx context.Context, provider *driverv1alpha1.ProviderContext, online bool) *instance.Failure {
	if !c.session.Capabilities.Has(driverv1alpha1.Feature_FEATURE_PROVIDER_SPEC_VALIDATE) {
		return nil
	}
	request := &driverv1alpha1.ValidateProviderSpecRequest{Meta: c.session.Meta(), Provider: provider, Online: online}
	var answer *driverv1alpha1.ValidateProviderSpecResponse
	failure := c.call(ctx, request, func(ctx context.Context) (err error) {
		answer, err = c.session.Specs.ValidateProviderSpec(ctx, request)
		return err
	})
	if failure != nil && failure.Class == instance.Unimplemented {
		return nil
	}
	var found []instance.Field
	for _, violation := range answer.GetViolations() {
		found = append(found, instance.Field{Path: violation.GetField(), Description: violation.GetDescription()})
	}
	if failure != nil || len(found) == 0 {
		return failure
	}
	if online {
		return wrongFields(instance.Precondition, found)
	}
	return wrongFields(instance.SpecInvalid, found)
}

// call makes a call that fits the contract.
func (c specCalls) call(ctx context.Context, request any, call func(context.Context) error) *instance.Failure {
	if failure := wire.CheckRequest(request); failure != nil {
		return failure
	}
	return c.Call(ctx, c.session, c.session.Capabilities.Deadlines.Status, call)
}

// wrongFields is the failure of a spec with wrong fields, of which there is one at least.
func wrongFields(class instance.Class, found []instance.Field) *instance.Failure {
	reason := driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	if class == instance.Precondition {
		reason = driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND
	}
	fields := make([]instance.Field, 0, wire.MaxFields)
	for _, one := range found[:min(len(found), wire.MaxFields)] {
		fields = append(fields, instance.Field{
			Path: messages.OneLine(one.Path, wire.MaxReason), Description: messages.OneLine(one.Description, wire.MaxMessage),
		})
	}
	return &instance.Failure{
		Class: class, Reason: wire.Reason(reason), Fields: fields,
		Message: fmt.Sprintf("%s: %s", fields[0].Path, fields[0].Description),
	}
}
