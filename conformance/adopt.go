package conformance

import (
	"context"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const featureAdopt = driverv1alpha1.Feature_FEATURE_ADOPT

func adoptChecks() []Check {
	return []Check{
		{
			ID: "adopt/happy", Level: Must, Musts: []int{61, 102, 103, 104}, Feature: featureAdopt, Hooks: true, run: adoptHappy,
			Rule: "AdoptMachine marks a VM as the machine's, takes the former owner's tags off, and is idempotent; DeleteMachine then removes it.",
		},
		{
			ID: "adopt/of-another", Level: Must, Musts: []int{62}, Feature: featureAdopt, run: adoptOfAnother,
			Rule: "AdoptMachine refuses a VM that carries another uid (NAME_TAKEN).",
		},
		{
			ID: "adopt/missing", Level: Must, Musts: []int{103}, Feature: featureAdopt, run: adoptMissing,
			Rule: "A VM that does not exist is MACHINE_NOT_FOUND; another resource that does not exist is DEPENDENCY_NOT_FOUND, and nothing is adopted.",
		},
	}
}

// adopt asks once for a VM to become the machine's.
func (m *machine) adopt(ctx context.Context, providerID string, formerTags map[string]string, resources ...string) (*driverv1alpha1.Machine, error) {
	_, mutation, _ := m.t.deadlines()
	ctx, cancel := context.WithTimeout(ctx, mutation)
	defer cancel()
	m.intend()
	answer, err := m.t.machines.AdoptMachine(ctx, &driverv1alpha1.AdoptMachineRequest{
		Meta: m.meta(), Machine: m.ref, Provider: m.provider(), ProviderId: providerID, FormerTags: formerTags, ResourceIds: resources,
	})
	return m.remember(answer.GetMachine()), err
}

func adoptHappy(ctx context.Context, t *trial) {
	const formerTag = "former-owner"
	before := t.cloud.all(ctx)
	vm := t.cloud.foreignVM(ctx, "conf-foreign", map[string]string{formerTag: "somebody"})
	var resources []string
	for id, one := range t.cloud.all(ctx) {
		if _, old := before[id]; !old && one.GetId() != vm.GetId() {
			resources = append(resources, one.GetId())
		}
	}
	m := t.machine()
	for range 2 {
		now, err := m.adopt(ctx, vm.GetProviderId(), map[string]string{formerTag: ""}, resources...)
		if err != nil {
			t.fatalf("adopt: %v", err)
		}
		if now.GetProviderId() != vm.GetProviderId() {
			t.errorf("the VM %s was adopted as %s", vm.GetProviderId(), now.GetProviderId())
		}
	}
	m.forget()
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != vm.GetProviderId() {
		t.errorf("after its adoption the VM %s is %q (%v)", vm.GetProviderId(), now.GetProviderId(), err)
	}
	mine := t.cloud.vms(ctx, m)
	if len(mine) != 1 {
		t.fatalf("the cloud has %d VMs that carry the uid, want the one that was adopted", len(mine))
	}
	if _, left := mine[0].GetTags()[formerTag]; left {
		t.errorf("the VM still carries the former owner's tag")
	}
	m.gone(ctx)
	for id := range t.cloud.all(ctx) {
		if _, old := before[id]; !old {
			t.errorf("%s was adopted, and is left after the machine", id)
		}
	}
}

func adoptOfAnother(ctx context.Context, t *trial) {
	m, other := t.machine(), t.machine()
	id := m.running(ctx).GetProviderId()
	_, err := other.adopt(ctx, id, nil)
	t.expect("an adoption of another machine's VM", err, nameTaken)
	other.forget()
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != id {
		t.errorf("after that the VM %s is %q (%v)", id, now.GetProviderId(), err)
	}
}

func adoptMissing(ctx context.Context, t *trial) {
	m, other := t.machine(), t.machine()
	id := m.running(ctx).GetProviderId()
	m.gone(ctx)
	_, err := other.adopt(ctx, id, nil)
	t.expect("an adoption of a VM that does not exist", err, notFound)
	if t.backend == nil {
		return
	}
	vm := t.cloud.foreignVM(ctx, "conf-foreign", nil)
	_, err = other.adopt(ctx, vm.GetProviderId(), nil, "millwright-conformance-unknown")
	t.expect("an adoption together with a resource that does not exist", err, driverv1alpha1.ErrorReason_ERROR_REASON_DEPENDENCY_NOT_FOUND)
	if _, err := other.get(ctx); err == nil {
		t.errorf("the VM was adopted all the same")
	}
}
