package conformance

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const (
	specInvalid = driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID
	nameTaken   = driverv1alpha1.ErrorReason_ERROR_REASON_NAME_TAKEN
)

func createChecks() []Check {
	checks := []Check{
		{
			ID: "create/happy", Level: Must, Musts: []int{8, 71, 77, 78, 80, 82, 83, 87, 95}, run: createHappy,
			Rule: "CreateMachine ensures that a VM exists for the uid; called again it says how far that is, until RUNNING.",
		},
		{
			ID: "create/addresses", Level: Should, run: createAddresses,
			Rule: "A machine that runs has the addresses that the cloud knows, each with its type.",
		},
		{
			ID: "create/provider-id", Level: Must, Musts: []int{17, 79}, Hooks: true, run: createProviderID,
			Rule: "provider_id is what Node.spec.providerID will be, byte for byte.",
		},
		{
			ID: "create/again", Level: Must, Musts: []int{42}, run: createAgain,
			Rule: "Called with a uid that has a VM, CreateMachine returns that VM.",
		},
		{
			ID: "create/concurrent", Level: Must, Musts: []int{29, 43}, run: createConcurrent,
			Rule: "A driver is safe under duplicate calls: it serialises per uid or answers OPERATION_PENDING. A uid gets at most one VM in its life.",
		},
		{
			ID: "create/after-delete", Level: Must, Musts: []int{48}, run: createAfterDelete,
			Rule: "What a duplicate of a create makes that comes after the delete is gone after the next one; where it can, limits.create_settle is not 0.",
		},
		{
			ID: "create/same-name", Level: Must, Musts: []int{46}, run: createSameName,
			Rule: "CreateMachine does not adopt a VM that does not carry the uid (NAME_TAKEN).",
		},
		{
			ID: "create/unmarked", Level: Must, Musts: []int{46}, Hooks: true, run: createUnmarked,
			Rule: "CreateMachine does not adopt a VM that carries the machine's name and no uid, nor does DeleteMachine delete it.",
		},
		{
			ID: "create/uid-of-another", Level: Must, Musts: []int{73}, run: createUIDOfAnother,
			Rule: "A uid that comes back under another namespace or name, in whatever call, is answered NAME_TAKEN.",
		},
		{
			ID: "create/conflict", Level: Must, Musts: []int{44}, run: createConflict,
			Rule: "Where the VM of the uid differs in an immutable field of the spec, the answer is SPEC_CONFLICT.",
		},
		{
			ID: "create/not-compared", Level: Must, Musts: []int{45}, run: createNotCompared,
			Rule: "Neither secrets nor tags are compared: a create with others returns the VM that exists.",
		},
		{
			ID: "create/secret-rotated", Level: Must, Musts: []int{75}, run: createSecretRotated,
			Rule: "Secrets rotate; a driver uses those of each call.",
		},
	}
	return append(checks, markChecks()...)
}

// markChecks are about what the cloud is told of a machine.
func markChecks() []Check {
	return []Check{
		{
			ID: "create/tags", Level: Must, Musts: []int{94}, Hooks: true, run: createTags,
			Rule: "The cluster uid, the machine uid and the tags are on the VM from its birth.",
		},
		{
			ID: "create/marked", Level: Must, Musts: []int{27}, Hooks: true, run: createMarked,
			Rule: "The cluster uid and the machine uid are on everything that a driver makes for a machine.",
		},
		{
			ID: "create/long-name", Level: Must, Musts: []int{77}, run: createLongName,
			Rule: "A driver copes with names of 253 characters, the longest that Kubernetes has.",
		},
	}
}

func createHappy(ctx context.Context, t *trial) {
	m := t.machine()
	now := m.running(ctx)
	if now.GetProviderId() == "" {
		t.errorf("the machine runs without a provider_id")
	}
}

func createAddresses(ctx context.Context, t *trial) {
	now := t.machine().running(ctx)
	if len(now.GetAddresses()) == 0 {
		t.errorf("the machine runs without an address")
	}
	for _, a := range now.GetAddresses() {
		if a.GetType() == driverv1alpha1.AddressType_ADDRESS_TYPE_UNSPECIFIED || a.GetAddress() == "" {
			t.errorf("the address %q is of the type %s", a.GetAddress(), a.GetType())
		}
	}
}

func createProviderID(ctx context.Context, t *trial) {
	m := t.machine()
	now := m.running(ctx)
	vms := t.cloud.vms(ctx, m)
	if len(vms) != 1 || vms[0].GetProviderId() != now.GetProviderId() {
		t.errorf("the driver says %q, and the cloud has %v", now.GetProviderId(), vms)
	}
}

func createAgain(ctx context.Context, t *trial) {
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	for range 10 {
		// As a core that was restored from a backup would: it knows the uid alone.
		m.forget()
		now, err := m.create(ctx)
		if err != nil {
			t.fatalf("create again: %v", err)
		}
		if now.GetProviderId() != id {
			t.errorf("created again, the machine %s became %s", id, now.GetProviderId())
		}
	}
	t.one(ctx, m)
}

// one notes a breach unless the machine has exactly one VM, as far as that can be seen.
func (t *trial) one(ctx context.Context, m *machine) {
	now, err := m.get(ctx)
	if err != nil {
		t.fatalf("get: %v", err)
	}
	if more := now.GetDuplicateProviderIds(); len(more) > 0 {
		t.errorf("the uid has other VMs, too: %q", more)
	}
	if t.backend == nil {
		return
	}
	if vms := t.cloud.vms(ctx, m); len(vms) != 1 {
		t.errorf("the uid has %d VMs", len(vms))
	}
}

// duplicates is how many creates of one uid are under way at once, where the driver takes as many.
const duplicates = 20

func createConcurrent(ctx context.Context, t *trial) {
	m := t.machine()
	m.intend()
	var wait sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for range duplicates {
		r := m.createRequest()
		wait.Go(func() {
			var answer *driverv1alpha1.CreateMachineResponse
			var err error
			t.inTurn(func() { answer, err = t.machines.CreateMachine(ctx, r) })
			if err != nil && !pending(err) {
				t.errorf("one of %d creates of one uid: %v", duplicates, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if id := answer.GetMachine().GetProviderId(); id != "" {
				ids[id] = true
			}
		})
	}
	wait.Wait()
	m.running(ctx)
	if len(ids) > 1 {
		t.errorf("%d creates of one uid were answered with %d VMs", duplicates, len(ids))
	}
	t.one(ctx, m)
}

func createAfterDelete(ctx context.Context, t *trial) {
	m := t.machine()
	first := m.running(ctx).GetProviderId()
	m.gone(ctx)
	m.forget()
	now, err := m.create(ctx)
	another := err == nil && now.GetProviderId() != "" && now.GetProviderId() != first
	if another && contract.CreateSettle(t.capabilities.GetLimits()) == 0 {
		t.errorf("the uid had the VM %s, and was given %s after it was deleted, and limits.create_settle is 0: have the cloud remember the uid, by a "+
			"client token, an id that follows from it, or a tombstone, or declare how long a duplicate can be on its way", first, now.GetProviderId())
	}
	m.forget()
	m.gone(ctx)
	if t.backend != nil && t.cloud.countResources(ctx, m) > 0 {
		t.errorf("%d resources of the duplicate are left", t.cloud.countResources(ctx, m))
	}
}

func createSameName(ctx context.Context, t *trial) {
	first, second := t.machine(), t.machine()
	id := first.running(ctx).GetProviderId()
	second.ref.Name = first.ref.GetName()
	now, err := second.create(ctx)
	if err != nil {
		t.expect("a create under a name that another uid has", err, nameTaken)
		return
	}
	if now.GetProviderId() == id {
		t.errorf("a create with another uid was given the VM %s of the first", id)
	}
}

func createUIDOfAnother(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	for what, ref := range map[string]*driverv1alpha1.MachineRef{
		"name":      {Namespace: m.ref.GetNamespace(), Name: m.ref.GetName() + "-x", Uid: m.ref.GetUid()},
		"namespace": {Namespace: m.ref.GetNamespace() + "-x", Name: m.ref.GetName(), Uid: m.ref.GetUid()},
	} {
		other := *m
		other.ref = ref
		_, err := t.machines.CreateMachine(ctx, other.createRequest())
		t.expect("a create of the uid under another "+what, err, nameTaken)
		_, err = other.get(ctx)
		t.expect("a status of the uid under another "+what, err, nameTaken)
		_, err = other.remove(ctx)
		t.expect("a delete of the uid under another "+what, err, nameTaken)
	}
	if now, err := m.get(ctx); err != nil || now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_RUNNING {
		t.errorf("the machine is %s after that (%v)", now.GetState(), err)
	}
}

func createConflict(ctx context.Context, t *trial) {
	other := t.otherSpec()
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	r := m.createRequest()
	r.Provider = &driverv1alpha1.ProviderContext{ProviderSpec: other, Secrets: m.secrets}
	_, err := t.machines.CreateMachine(ctx, r)
	t.expect("a create with another spec", err, driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_CONFLICT)
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != id {
		t.errorf("the VM %s is %s after that (%v)", id, now.GetProviderId(), err)
	}
}

// createNotCompared creates again with a secret and with tags that were not there before, and then
// with others.
func createNotCompared(ctx context.Context, t *trial) {
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	for range 2 {
		r := m.createRequest()
		r.Provider.Secrets = map[string][]byte{"millwrightConformance": []byte(random())}
		maps.Copy(r.GetProvider().GetSecrets(), m.secrets)
		r.Tags = contract.FitTags(map[string]string{"conformance": strings.ToLower(random())}, t.capabilities.GetLimits().GetTags())
		if now, err := m.send(ctx, r); err != nil || now.GetProviderId() != id {
			t.errorf("created again with another secret and other tags, the VM %s is %q (%v)", id, now.GetProviderId(), err)
		}
	}
}

// createUnmarked makes a machine whose name a VM of nobody's has.
func createUnmarked(ctx context.Context, t *trial) {
	m := t.machine()
	foreign := t.cloud.foreignVM(ctx, m.ref.GetName(), nil)
	now, err := m.create(ctx)
	switch {
	case err != nil:
		t.expect("a create under a name that a VM without a uid has", err, nameTaken)
	case now.GetProviderId() == foreign.GetProviderId():
		t.errorf("a create was given the VM %s, which has its name and no uid", foreign.GetProviderId())
	}
	for _, one := range t.cloud.vmsNamed(ctx, m) {
		if one.GetId() == foreign.GetId() && one.GetMachineUid() != "" {
			t.errorf("the VM %s, which had no uid, carries %q", foreign.GetProviderId(), one.GetMachineUid())
		}
	}
	m.gone(ctx)
	if !t.cloud.hasResource(ctx, foreign.GetId()) {
		t.fatalf("the VM %s, which is not the machine's, went with it", foreign.GetProviderId())
	}
	t.cloud.removeVM(ctx, foreign)
}

func createSecretRotated(ctx context.Context, t *trial) {
	if len(t.badSecrets) == 0 {
		t.notRun("name credentials that the cloud refuses as badSecrets")
	}
	m := t.machine()
	m.running(ctx)
	good := m.secrets
	m.secrets = t.badSecrets
	_, err := m.get(ctx)
	t.expect("a status with credentials that the cloud refuses, after some that it takes", err,
		driverv1alpha1.ErrorReason_ERROR_REASON_CREDENTIALS_INVALID)
	m.secrets = good
	if _, err := m.get(ctx); err != nil {
		t.errorf("a status with good credentials again: %v", err)
	}
}

func createTags(ctx context.Context, t *trial) {
	m := t.machine()
	m.tags = contract.FitTags(map[string]string{"conformance": "yes", "unicode": "Mühle 🪚"}, t.capabilities.GetLimits().GetTags())
	if len(m.tags) == 0 {
		t.notApplicable("the driver announces that the cloud takes no tags")
	}
	if _, err := m.create(ctx); err != nil {
		t.fatalf("create: %v", err)
	}
	vms := t.cloud.vms(ctx, m)
	if len(vms) != 1 {
		t.fatalf("the cloud has %d VMs with the cluster's and the machine's uid, want 1", len(vms))
	}
	for key, value := range m.tags {
		if got := vms[0].GetTags()[key]; got != value {
			t.errorf("the tag %q is %q, want %q", key, got, value)
		}
	}
}

// createMarked looks for what is new in the whole cloud.
func createMarked(ctx context.Context, t *trial) {
	before := t.cloud.all(ctx)
	m := t.machine()
	m.running(ctx)
	for id, one := range t.cloud.all(ctx) {
		if _, old := before[id]; !old && (one.GetMachineUid() != m.ref.GetUid() || one.GetClusterUid() != m.cluster) {
			t.errorf("the %s %s that came with the machine carries the uids %q and %q, not the cluster's and the machine's",
				one.GetKind(), one.GetId(), one.GetClusterUid(), one.GetMachineUid())
		}
	}
	m.gone(ctx)
	for id, one := range t.cloud.all(ctx) {
		if _, old := before[id]; !old {
			t.errorf("the %s %s is left after the machine", one.GetKind(), one.GetId())
		}
	}
}

func createLongName(ctx context.Context, t *trial) {
	m := t.machine()
	m.ref.Name += strings.Repeat("-x", (253-len(m.ref.GetName()))/2)
	m.running(ctx)
	m.forget()
	if now, err := m.get(ctx); err != nil || now.GetRef().GetName() != m.ref.GetName() {
		t.errorf("a machine with a name of %d characters is answered as %v (%v)", len(m.ref.GetName()), now.GetRef(), err)
	}
}

// otherSpec is the config's; without one the check ends.
func (t *trial) otherSpec() []byte {
	if len(t.config.ConflictingSpec) == 0 {
		t.notRun("name a spec that differs as conflictingSpec")
	}
	return t.config.ConflictingSpec
}

// with returns spec with a field more, or another value of one.
func with(spec json.RawMessage, field string, value any) []byte {
	var fields map[string]any
	_ = json.Unmarshal(spec, &fields) // the config was checked
	fields[field] = value
	raw, _ := json.Marshal(fields) // what was JSON can be again
	return raw
}
