package machine

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/bootstrap"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/providerspec"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// provision is what the Machine's driver is told of it, besides who it is.
type provision struct {
	effective specresolver.Effective
	checked   specresolver.Checked
	secrets   map[string][]byte
	// inherited is what a machine of this spec would be made from now, whatever was written down.
	inherited specresolver.Effective
	// completed is the spec with the driver's defaults, once they are known.
	completed []byte
	// userData is what the machine brings itself, once it was read for a create; nil for none.
	userData *bootstrap.UserData
	// awaitsUserData: what was to be read of it is not there.
	awaitsUserData bool
	// trouble is why no call can be made for now; nil for nothing.
	trouble *instance.Failure
	// missing is why secrets come from a copy, with which no VM is created; nil where they do not.
	missing error
}

// spec is what the driver is told of the Machine's spec.
func (p *provision) spec() []byte {
	if p.completed != nil {
		return p.completed
	}
	return p.checked.JSON()
}

// refused says whether the operator's rules, or its own form, keep the spec from being told to
// anybody.
func (p *provision) refused() bool {
	return p.trouble != nil && p.trouble.Class == instance.SpecInvalid
}

// mayBringUserData says whether the Secrets of the machine's class may have user data. That is so
// where a Secret that goes with the spec has some, or could not be read.
func (p *provision) mayBringUserData() bool {
	_, has := p.secrets[bootstrap.UserDataKey]
	return len(p.effective.OfClass) > 0 && p.checked.Passed() && (has || p.secrets == nil)
}

// rotation is how long at most a machine that gets on is looked at with Secrets of before. Creates
// and deletes read them each time.
const rotation = 10 * time.Minute

// provision finds the Machine's driver and reads what that is told. What was written down before
// the VM was made holds; credentials are those of now.
func (r *reconciler) provision(ctx context.Context, s *machineScope) error {
	m, p := s.machine, &s.provision
	effective, err := specresolver.Inherit(ctx, r.client, m.Namespace, &m.Spec)
	p.inherited = effective
	if !m.DeletionTimestamp.IsZero() || !s.hasNothingInCloud() {
		// What is deleted is looked for where it may have been made.
		effective = effective.Written(m.Status.ProviderSpec)
	}
	effective.MayExist = hasBegun(m)
	p.effective = effective
	if err != nil {
		return p.recordTrouble(err)
	}
	var secretless bool
	if p.checked, secretless = specresolver.Secretless(effective); secretless {
		return nil
	}
	d, err := r.Drivers.For(effective.Provider)
	if _, unknown := errors.AsType[*driver.UnknownError](err); unknown {
		return nil // nobody is there to be told anything
	}
	if err != nil {
		return err
	}
	return p.recordTrouble(r.readSecrets(ctx, s, d))
}

// readSecrets reads the secrets that the driver gets with the spec, once the rules have passed for
// it.
func (r *reconciler) readSecrets(ctx context.Context, s *machineScope, d *driver.Driver) error {
	known, err := schemaOf(d, s.driverRequest())
	if err != nil {
		return err
	}
	p := &s.provision
	if p.checked, err = r.Specs.Check(ctx, p.effective, known); err != nil {
		return err
	}
	p.secrets, p.missing, err = p.checked.Secrets(ctx)
	return err
}

// schemaOf returns the driver's schema. Where the driver was never reached nobody knows what it
// makes of a spec: the error is an *instance.Failure, and m is woken when it is reached.
func schemaOf(d *driver.Driver, m wire.Machine) (*providerspec.Schema, error) {
	if known, err := d.SpecSchema(); err == nil {
		return known, nil
	}
	if err := d.Reachable(m); err != nil {
		return nil, err
	}
	return d.SpecSchema()
}

// hasNothingInCloud says whether it is known that nothing can exist in the cloud: what was written
// down for an attempt that made nothing is no obstacle to what is right by now.
func (s *machineScope) hasNothingInCloud() bool {
	known := s.state.Memory
	return s.state.Machine.ProviderID == "" && known.Last != nil && !known.MaybeCreated
}

// recordTrouble takes over an error that the Machine shows, and returns any other.
func (p *provision) recordTrouble(err error) error {
	if failure, is := errors.AsType[*instance.Failure](err); is {
		p.trouble = failure
		return nil
	}
	return err
}

// prepare completes and checks the spec of a machine of which nothing can exist yet, and notes in
// its status what it is made from. The driver fills in its defaults without secrets; they go along
// when it validates, once the operator's rules have passed for the result. It writes nothing: that
// goes with the write before the create. Errors are those of notStarted.
func (r *reconciler) prepare(ctx context.Context, s *machineScope, step *lifecycle.Step) error {
	p := &s.provision
	if p.trouble != nil {
		return p.trouble
	}
	if step.Do != lifecycle.Create {
		return nil
	}
	if p.missing != nil {
		return p.missing
	}
	if err := p.checked.Keep(ctx); err != nil || s.state.Memory.MaybeCreated || s.state.Machine.ProviderID != "" {
		return err
	}
	if err := s.driver.Reachable(s.driverRequest()); err != nil {
		return err
	}
	known, err := s.driver.SpecSchema()
	if err != nil {
		return err
	}
	// Of a spec without secrets nobody has asked the rules yet.
	if p.checked, err = r.Specs.Check(ctx, p.effective, known); err != nil {
		return err
	}
	request := s.driverRequest()
	request.Spec = p.checked.JSON()
	completed, err := s.driver.Prepare(request, p.checked.Spec().References, p.checked.Complete)
	if err != nil {
		return err
	}
	p.completed = completed
	if s.recordAppliedSpec(completed) {
		step.Write = true
	}
	return nil
}

// recordAppliedSpec takes over into the status what the machine is made from, unless its spec says
// just that, and says whether that is news.
func (s *machineScope) recordAppliedSpec(completed []byte) bool {
	m, p := s.machine, &s.provision
	applied, err := p.checked.Spec().Refer(completed)
	if err != nil {
		applied = completed
	}
	value := m.Spec.ProviderSpec.Value
	was := m.Status.ProviderSpec
	if value.CloudProvider == p.effective.Provider && providerspec.Equal(applied, value.CloudProviderSpec.Raw) {
		m.Status.ProviderSpec = nil
		return was != nil
	}
	if was != nil && was.CloudProvider == p.effective.Provider && providerspec.Equal(applied, was.CloudProviderSpec.Raw) {
		return false
	}
	m.Status.ProviderSpec = &clusterv1alpha1.AppliedProviderSpec{
		CloudProvider: p.effective.Provider, CloudProviderSpec: runtime.RawExtension{Raw: applied},
	}
	return true
}

// recordRefusedSpec notes in the status what was refused, of a machine that fails for its spec
// before anything can exist of it: its set sees by that whether a class or Cluster has been mended
// since.
func (s *machineScope) recordRefusedSpec(step lifecycle.Step) {
	failed := step.Status.FailureReason != nil && s.machine.Status.FailureReason == nil
	if !failed || !health.IsSpecReason(*step.Status.FailureReason) || !s.hasNothingInCloud() || !specresolver.Inherits(&s.machine.Spec) {
		return
	}
	p := s.provision
	s.machine.Status.ProviderSpec = &clusterv1alpha1.AppliedProviderSpec{
		CloudProvider: p.inherited.Provider, CloudProviderSpec: runtime.RawExtension{Raw: p.inherited.Spec},
	}
}

// recheckAfter is when to read the machine's Secrets again, soon where they keep it from getting
// on; 0 for never.
func (s *machineScope) recheckAfter() time.Duration {
	p := s.provision
	if p.missing != nil || p.awaitsUserData || p.trouble != nil && p.trouble.Class == instance.Precondition {
		return s.secretRecheck
	}
	seen := s.state.Driver.LastPoll
	if len(p.secrets) > 0 && seen != nil && seen.Failure != nil && seen.Failure.Class == instance.Credentials {
		return s.secretRecheck
	}
	if len(p.secrets) > 0 {
		return rotation
	}
	return 0
}
