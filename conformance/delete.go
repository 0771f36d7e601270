package conformance

import (
	"context"
)

func deleteChecks() []Check {
	return []Check{
		{
			ID: "delete/happy", Level: Must, Musts: []int{55, 97}, run: deleteHappy,
			Rule: "DeleteMachine removes every resource of the uid, and is called again until the answer holds no machine.",
		},
		{
			ID: "delete/again", Level: Must, Musts: []int{57}, run: deleteAgain,
			Rule: "Deleting nothing is OK: DeleteMachine does not answer NOT_FOUND.",
		},
		{
			ID: "delete/never-created", Level: Must, Musts: []int{57}, run: deleteNeverCreated,
			Rule: "Deleting a machine that never was is OK.",
		},
		{
			ID: "delete/by-uid", Level: Must, Musts: []int{56}, run: deleteByUID,
			Rule: "DeleteMachine works with an empty provider_id.",
		},
		{
			ID: "delete/while-creating", Level: Must, Musts: []int{55}, run: deleteWhileCreating,
			Rule: "A machine can be deleted before its VM runs.",
		},
		{
			ID: "delete/foreign", Level: Must, Musts: []int{54}, run: deleteForeign,
			Rule: "DeleteMachine removes nothing of another cluster, whatever its uid, name or provider_id.",
		},
		{
			ID: "delete/others", Level: Must, Musts: []int{54}, run: deleteOthers,
			Rule: "DeleteMachine removes nothing of another machine, even when the request holds that one's provider_id.",
		},
		{
			ID: "delete/half-made", Level: Must, Musts: []int{47, 55}, Hooks: true, run: deleteHalfMade,
			Rule: "DeleteMachine removes what a create that died half-way has left.",
		},
	}
}

func deleteHappy(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	m.gone(ctx)
	if t.backend != nil && t.cloud.countResources(ctx, m) > 0 {
		t.errorf("%d resources of the machine are left", t.cloud.countResources(ctx, m))
	}
}

func deleteAgain(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	m.gone(ctx)
	for range 3 {
		if now, err := m.remove(ctx); err != nil || now != nil {
			t.errorf("deleted again: %v, %v", now, err)
		}
	}
}

func deleteNeverCreated(ctx context.Context, t *trial) {
	m := t.machine()
	if now, err := m.remove(ctx); err != nil || now != nil {
		t.errorf("a delete of a machine that never was: %v, %v", now, err)
	}
}

func deleteByUID(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	m.forget()
	m.gone(ctx)
	_, err := m.get(ctx)
	t.expect("a status after a delete by uid alone", err, notFound)
}

func deleteWhileCreating(ctx context.Context, t *trial) {
	m := t.machine()
	if _, err := m.create(ctx); err != nil {
		t.fatalf("create: %v", err)
	}
	m.gone(ctx)
	if t.backend != nil && t.cloud.countResources(ctx, m) > 0 {
		t.errorf("%d resources of the machine are left", t.cloud.countResources(ctx, m))
	}
}

func deleteForeign(ctx context.Context, t *trial) {
	m, other := t.machine(), t.machine()
	id := m.running(ctx).GetProviderId()
	other.ref, other.cluster, other.providerID = m.ref, m.cluster+"-other", m.providerID
	// Whether that is refused or nothing is found does not matter.
	_, _ = other.remove(ctx)
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != id {
		t.errorf("after another cluster's delete the VM %s is %q (%v)", id, now.GetProviderId(), err)
	}
}

func deleteOthers(ctx context.Context, t *trial) {
	m, other := t.machine(), t.machine()
	id := m.running(ctx).GetProviderId()
	other.providerID = m.providerID
	_, _ = other.remove(ctx)
	other.forget()
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != id {
		t.errorf("after a delete of another machine with its provider_id the VM %s is %q (%v)", id, now.GetProviderId(), err)
	}
}

func deleteHalfMade(ctx context.Context, t *trial) {
	m := t.halfMade(ctx)
	m.forget()
	m.gone(ctx)
	if n := t.cloud.countResources(ctx, m); n > 0 {
		t.errorf("%d resources of a half-made machine are left", n)
	}
}
