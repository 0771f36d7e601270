package conformance

import (
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	featureUpdate = driverv1alpha1.Feature_FEATURE_UPDATE_IN_PLACE
	live          = driverv1alpha1.UpdateDisposition_UPDATE_DISPOSITION_LIVE
	replace       = driverv1alpha1.UpdateDisposition_UPDATE_DISPOSITION_REPLACE
)

func updateChecks() []Check {
	return []Check{
		{
			ID: "update/dry-run", Level: Must, Feature: featureUpdate, run: updateDryRun,
			Rule: "With dry_run UpdateMachine changes nothing.",
		},
		{
			ID: "update/disposition", Level: Must, Feature: featureUpdate, run: updateDisposition,
			Rule: "The disposition is the same with and without dry_run, and LIVE where the spec changes nothing; REPLACE changes nothing.",
		},
		{
			ID: "update/missing", Level: Must, Feature: featureUpdate, run: updateMissing,
			Rule: "UpdateMachine of a uid that the cloud does not know is MACHINE_NOT_FOUND.",
		},
	}
}

// update asks once for the VM to follow a spec.
func (m *machine) update(ctx context.Context, spec []byte, dry bool) (driverv1alpha1.UpdateDisposition, error) {
	_, mutation, _ := m.t.deadlines()
	ctx, cancel := context.WithTimeout(ctx, mutation)
	defer cancel()
	answer, err := m.t.machines.UpdateMachine(ctx, &driverv1alpha1.UpdateMachineRequest{
		Meta: m.meta(), Machine: m.ref, ProviderId: m.providerID, LastKnownState: m.state,
		Provider:            &driverv1alpha1.ProviderContext{ProviderSpec: spec, Secrets: m.secrets},
		CurrentProviderSpec: m.spec, UserData: m.userData, DryRun: dry,
	})
	m.remember(answer.GetMachine())
	return answer.GetDisposition(), err
}

// mustUpdate is update; an error ends the check.
func (m *machine) mustUpdate(ctx context.Context, spec []byte, dry bool) driverv1alpha1.UpdateDisposition {
	disposition, err := m.update(ctx, spec, dry)
	if err != nil {
		m.t.fatalf("update: %v", err)
	}
	return disposition
}

// unchanged notes a breach unless the machine is as it was before do.
func (m *machine) unchanged(ctx context.Context, what string, do func()) {
	look := func() (*driverv1alpha1.Machine, int64) {
		now, err := m.get(ctx)
		if err != nil {
			m.t.fatalf("%s: a status: %v", what, err)
		}
		if m.t.backend == nil {
			return now, 0
		}
		revision := int64(0)
		for _, vm := range m.t.cloud.vms(ctx, m) {
			revision += vm.GetRevision()
		}
		return now, revision
	}
	was, revision := look()
	do()
	is, later := look()
	if is.GetProviderId() != was.GetProviderId() || is.GetState() != was.GetState() || is.GetInstanceType() != was.GetInstanceType() || later != revision {
		m.t.errorf("%s: the VM was %s, %s, %s, and is %s, %s, %s", what, was.GetProviderId(), was.GetState(), was.GetInstanceType(),
			is.GetProviderId(), is.GetState(), is.GetInstanceType())
	}
}

// otherSpec is the config's; without one the check ends.
func (t *trial) otherSpec() []byte {
	if len(t.config.ConflictingSpec) == 0 {
		t.notRun("name a spec that differs as conflictingSpec")
	}
	return t.config.ConflictingSpec
}

func updateDryRun(ctx context.Context, t *trial) {
	other := t.otherSpec()
	m := t.machine()
	m.running(ctx)
	m.unchanged(ctx, "an update with dry_run", func() { m.mustUpdate(ctx, other, true) })
}

func updateDisposition(ctx context.Context, t *trial) {
	other := t.otherSpec()
	m := t.machine()
	m.running(ctx)
	if got := m.mustUpdate(ctx, m.spec, true); got != live {
		t.errorf("an update that changes nothing is %s", got)
	}
	announced := m.mustUpdate(ctx, other, true)
	if announced != replace {
		if got := m.mustUpdate(ctx, other, false); got != announced {
			t.errorf("the update was %s with dry_run, and %s without", announced, got)
		}
		return
	}
	m.unchanged(ctx, "an update that is REPLACE", func() {
		if got := m.mustUpdate(ctx, other, false); got != announced {
			t.errorf("the update was %s with dry_run, and %s without", announced, got)
		}
	})
}

func updateMissing(ctx context.Context, t *trial) {
	m := t.machine()
	for _, dry := range []bool{true, false} {
		_, err := m.update(ctx, m.spec, dry)
		t.expect("an update of a machine that never was", err, notFound)
	}
}
