// Package canaries sends secrets from core's client to a driver that the SDK serves and that fails
// in every way. It looks for them in all that either side says: they are in no log at its highest
// level, in no failure, in no metric.
package canaries

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/providerspec"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

const (
	specInvalid = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	internal    = driverv1alpha1.ErrorReason_ERROR_REASON_PROVIDER_INTERNAL
)

// manners are the ways in which a driver repeats what it was told; say is what it was told, in one
// form or another.
func manners(say string) map[string]manner {
	fails := func(err error) manner { return manner{fail: func() error { return err }} }
	return map[string]manner{
		"an error":           fails(errors.New("POST /servers: " + say)),
		"a wrapped error":    fails(fmt.Errorf("create %s: %w", say, sdk.NewError(internal, say))),
		"a cut-off error":    fails(errors.New(strings.Repeat("x", 1<<10-len(say)) + say)),
		"fields":             fails(sdk.NewError(specInvalid, "wrong", sdk.WithField("auth", say), sdk.WithField(say, "is wrong"))),
		"cut-off fields":     fails(sdk.NewError(specInvalid, "wrong", sdk.WithField("auth", strings.Repeat("x", 512-len(say)/2)+say))),
		"a quota":            fails(sdk.NewError(internal, "wrong", sdk.WithQuota(say, say))),
		"state":              fails(sdk.NewError(internal, "half-way", sdk.WithPartialState(prefix+"1", []byte(say)))),
		"an unknown outcome": fails(sdk.NewUnknownOutcome(say)),
		"a cloud's status":   fails(status.Error(codes.PermissionDenied, say)),
		"a cancelled call":   fails(fmt.Errorf("%s: %w", say, context.Canceled)),
		"its own status":     fails(ownStatus(say)),
		"a panic":            {fail: func() error { panic(say) }},
		"a panic's error":    {fail: func() error { panic(fmt.Errorf("login with %s", say)) }},
		"a machine": {machine: func(m *driverv1alpha1.Machine) {
			m.Reason, m.Message, m.NodeName = say, say, say
			m.Addresses = []*driverv1alpha1.MachineAddress{{Type: driverv1alpha1.AddressType_ADDRESS_TYPE_HOSTNAME, Address: say}}
			m.State = driverv1alpha1.MachineState_MACHINE_STATE_FAILED
		}},
		"a machine that is none": {machine: func(m *driverv1alpha1.Machine) { m.ProviderId, m.Ref.Name = say, say }},
	}
}

func ownStatus(say string) error {
	s, err := status.New(codes.Internal, say).WithDetails(
		&errdetails.ErrorInfo{Domain: driverName, Reason: say, Metadata: map[string]string{say: say}},
		&errdetails.DebugInfo{StackEntries: []string{say}},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Url: say}}},
	)
	if err != nil {
		return err
	}
	return s.Err()
}

func TestNeitherSideTellsASecret(t *testing.T) {
	for disguise, say := range disguises() {
		for name, m := range manners(say) {
			t.Run(name+", "+disguise, func(t *testing.T) {
				r := start(t, m)
				failed := 0
				for _, told := range []string{
					r.create(t), r.remove(t), r.look(t), r.list(t), r.check(t), r.prepare(t), r.probe(t),
				} {
					mustNotTell(t, "core", told)
					if told != "" {
						failed++
					}
				}
				if failed < 3 {
					t.Errorf("only %d calls told anything", failed)
				}
				r.stop(t)
				mustNotTell(t, "core's log", r.coreLog.String())
				mustNotTell(t, "the SDK's log", r.driverLog.String())
				mustNotTell(t, "a metric", r.metrics(t))
				if log := r.driverLog.String(); !strings.Contains(log, "CreateMachine") || !strings.Contains(log, "[redacted]") {
					t.Errorf("the SDK's log tells nothing of the calls:\n%s", log)
				}
				if log := r.coreLog.String(); !strings.Contains(log, "CreateMachine") {
					t.Errorf("core's log tells nothing of the calls:\n%s", log)
				}
			})
		}
	}
}

// create makes a machine and returns all that core says of it.
func (r *rig) create(t *testing.T) string {
	t.Helper()
	m := asked()
	r.await(t, "a create", func() bool { return r.driver.StartCreate(t.Context(), m, []byte(userData), nil) == nil })
	return r.outcome(t, m)
}

func (r *rig) remove(t *testing.T) string {
	t.Helper()
	m := asked()
	r.await(t, "a delete", func() bool { return r.driver.StartDelete(t.Context(), m) == nil })
	return r.outcome(t, m)
}

func (r *rig) outcome(t *testing.T, m wire.Machine) string {
	t.Helper()
	var outcome instance.Outcome
	r.await(t, "the end of a call", func() bool {
		got, progress := r.driver.Collect(keyOf(m), m.UID)
		outcome = got
		return progress == driver.Ended
	})
	return told(outcome.Instance, outcome.Failure)
}

func (r *rig) look(t *testing.T) string {
	t.Helper()
	m := asked()
	r.driver.Track(m, instance.PollPending)
	defer r.driver.Untrack(keyOf(m), m.UID)
	var seen instance.Observation
	r.await(t, "a look", func() bool {
		got, looked := r.driver.Observed(keyOf(m), m.UID)
		seen = got
		return looked
	})
	return told(seen.Instance, seen.Failure)
}

func (r *rig) list(t *testing.T) string {
	t.Helper()
	_, err := r.driver.ListOwned(t.Context(), asked())
	return words(err)
}

func (r *rig) check(t *testing.T) string {
	t.Helper()
	spec, wrong := providerspec.Read(asked().Spec)
	if wrong != nil {
		t.Fatal(wrong)
	}
	fields, err := r.driver.CheckSpec(t.Context(), spec)
	return fmt.Sprint(fields) + words(err)
}

func (r *rig) prepare(t *testing.T) string {
	t.Helper()
	var err error
	r.await(t, "an answer about a spec", func() bool {
		_, err = r.driver.Prepare(asked(), nil, nil)
		return !errors.Is(err, driver.ErrPreparing)
	})
	return words(err)
}

// probe has the driver say why it takes no calls any more.
func (r *rig) probe(t *testing.T) string {
	t.Helper()
	r.careless.unready.Store(true)
	<-r.notReady
	return r.driver.Unready()
}
