package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

const notFound = driverv1alpha1.ErrorReason_ERROR_REASON_MACHINE_NOT_FOUND

func statusChecks() []Check {
	return []Check{
		{
			ID: "status/by-uid", Level: Must, Musts: []int{49, 88, 96}, run: statusByUID,
			Rule: "GetMachineStatus works with an empty provider_id; losing last_known_state does not break it.",
		},
		{
			ID: "status/stable", Level: Must, Musts: []int{81, 85}, run: statusStable,
			Rule: "provider_id does not change once set, nor the message while nothing happens.",
		},
		{
			ID: "status/aliases", Level: Must, Musts: []int{90, 91, 92}, run: statusAliases,
			Rule: "provider_id_aliases do not change, and each names this VM and no other.",
		},
		{
			ID: "status/missing", Level: Must, Musts: []int{51}, run: statusMissing,
			Rule: "GetMachineStatus of a uid that the cloud does not know is MACHINE_NOT_FOUND.",
		},
		{
			ID: "status/foreign-cluster", Level: Must, Musts: []int{51}, run: statusForeignCluster,
			Rule: "A machine of another cluster is none of this one's, whatever its uid.",
		},
		{
			ID: "status/deleted", Level: Must, Musts: []int{51}, run: statusDeleted,
			Rule: "Once nothing of a machine is left, it is MACHINE_NOT_FOUND.",
		},
		{
			ID: "status/external-stop", Level: Must, Musts: []int{76}, Hooks: true, run: statusExternalStop,
			Rule: "A VM that somebody stops is STOPPED, not FAILED and not gone.",
		},
		{
			ID: "status/external-delete", Level: Must, Musts: []int{51}, Hooks: true, run: statusExternalDelete,
			Rule: "A VM that somebody deletes is not there any more: MACHINE_NOT_FOUND, or FAILED without a provider_id where something is left.",
		},
		{
			ID: "status/failed", Level: Must, Musts: []int{84}, Hooks: true, run: statusFailed,
			Rule: "A VM that will never run is FAILED, with a reason, in the cloud's own words.",
		},
		{
			ID: "status/account-changed", Level: Must, Musts: []int{53}, run: statusAccountChanged,
			Rule: "With credentials of another account a machine is ACCOUNT_CHANGED, never MACHINE_NOT_FOUND.",
		},
		{
			ID: "status/stale-epoch", Level: Must, Musts: []int{69, 70}, Feature: driverv1alpha1.Feature_FEATURE_LEADER_FENCING, run: statusStaleEpoch,
			Rule: "A mutation whose leader_epoch is below one seen for this cluster is STALE_EPOCH; 0 is never refused.",
		},
		{
			ID: "status/read-only", Level: Must, Musts: []int{50}, Hooks: true, run: statusReadOnly,
			Rule: "GetMachineStatus and ListMachines change nothing in the cloud.",
		},
		{
			ID: "status/no-wait", Level: Must, Musts: []int{30}, Hooks: true, run: statusNoWait,
			Rule: "No call waits for a VM to boot: it returns as soon as the cloud has accepted.",
		},
		{
			ID: "status/duplicates", Level: Must, Musts: []int{89}, Hooks: true, run: statusDuplicates,
			Rule: "Another VM that carries the same uid is told in duplicate_provider_ids.",
		},
	}
}

// statusReadOnly asks about a machine that runs, and about one that never was.
func statusReadOnly(ctx context.Context, t *trial) {
	m, nobody := t.machine(), t.machine()
	m.running(ctx)
	creates, deletes := t.cloud.operations(ctx)
	changes := slices.Concat(creates, deletes)
	before := t.cloud.countCalls(ctx, m, changes)
	for range 3 {
		if _, err := m.get(ctx); err != nil {
			t.errorf("a status: %v", err)
		}
		if _, err := nobody.get(ctx); err == nil {
			t.errorf("a status of a machine that never was succeeds")
		}
		if t.has(featureList) {
			t.mustList(ctx, t.clusterUID)
		}
	}
	if after := t.cloud.countCalls(ctx, m, changes); after != before {
		t.errorf("looks at a machine that runs made %d calls that change the cloud", after-before)
	}
	if n := t.cloud.countCalls(ctx, nobody, changes); n != 0 {
		nobody.intend()
		t.errorf("looks at a machine that never was made %d calls that change the cloud", n)
	}
}

// accepted is how long a call may take with a test cloud, which accepts at once.
const accepted = 5 * time.Second

func statusNoWait(ctx context.Context, t *trial) {
	needEffect(ctx, t, backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS)
	m := t.machine()
	t.cloud.inject(ctx, m, &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS})
	timed := func(what string, call func(context.Context) (*driverv1alpha1.Machine, error)) {
		began := time.Now()
		now, err := call(ctx)
		if took := time.Since(began); took > accepted {
			t.errorf("the %s of a machine whose VM boots took %s", what, took.Round(time.Millisecond))
		}
		if err != nil || now.GetState() == driverv1alpha1.MachineState_MACHINE_STATE_RUNNING {
			t.errorf("the %s of a machine whose VM boots: %s (%v)", what, now.GetState(), err)
		}
	}
	timed("create", m.create)
	timed("status", m.get)
}

func statusDuplicates(ctx context.Context, t *trial) {
	m := t.machine()
	m.ref.Namespace = "default" // the hooks' own
	id := m.running(ctx).GetProviderId()
	answer, err := t.backend.CreateForeignVM(ctx, &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: m.ref.GetName(), ClusterUid: m.cluster, MachineUid: m.ref.GetUid(), Tags: t.cloud.vms(ctx, m)[0].GetTags(),
		CreateTime: timestamppb.New(time.Now().Add(time.Minute)), // the oldest is the machine
	}})
	if err != nil {
		t.notApplicable("the cloud's hooks cannot make another VM of the uid: " + err.Error())
	}
	now, err := m.get(ctx)
	if err != nil || now.GetProviderId() != id || !slices.Contains(now.GetDuplicateProviderIds(), answer.GetVm().GetProviderId()) {
		t.errorf("beside the VM %s there is %s of the same uid, and the driver tells %s, with the duplicates %q (%v)",
			id, answer.GetVm().GetProviderId(), now.GetProviderId(), now.GetDuplicateProviderIds(), err)
	}
}

func statusByUID(ctx context.Context, t *trial) {
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	m.forget()
	if now, err := m.get(ctx); err != nil || now.GetProviderId() != id {
		t.errorf("asked by its uid alone, the VM %s is %q (%v)", id, now.GetProviderId(), err)
	}
}

func statusStable(ctx context.Context, t *trial) {
	m := t.machine()
	first := m.running(ctx)
	for range 3 {
		now, err := m.get(ctx)
		if err != nil {
			t.fatalf("get: %v", err)
		}
		if now.GetMessage() != first.GetMessage() || now.GetState() != first.GetState() {
			t.errorf("while nothing happens %s %q becomes %s %q", first.GetState(), first.GetMessage(), now.GetState(), now.GetMessage())
		}
	}
}

// statusAliases asks of two VMs, for an id that each VM has names none.
func statusAliases(ctx context.Context, t *trial) {
	m, other := t.machine(), t.machine()
	names := map[string]bool{other.running(ctx).GetProviderId(): true}
	now, err := other.get(ctx)
	if err != nil {
		t.fatalf("get: %v", err)
	}
	for _, alias := range now.GetProviderIdAliases() {
		names[alias] = true
	}
	first := m.running(ctx).GetProviderIdAliases()
	for _, forget := range []bool{false, true} {
		if forget {
			// As a core that was restored from a backup would: it knows the uid alone.
			m.forget()
		}
		now, err := m.get(ctx)
		if err != nil {
			t.fatalf("get: %v", err)
		}
		if !slices.Equal(now.GetProviderIdAliases(), first) {
			t.errorf("the VM's other ids were %q, and are %q", first, now.GetProviderIdAliases())
		}
		for _, id := range append([]string{now.GetProviderId()}, now.GetProviderIdAliases()...) {
			if names[id] {
				t.errorf("%q names two VMs", id)
			}
		}
	}
}

func statusMissing(ctx context.Context, t *trial) {
	m := t.machine()
	_, err := m.get(ctx)
	t.expect("a status of a machine that never was", err, notFound)
}

func statusForeignCluster(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	other := t.machine()
	other.ref, other.cluster = m.ref, m.cluster+"-other"
	if now, err := other.get(ctx); err == nil {
		t.errorf("another cluster is told of the VM %s", now.GetProviderId())
	}
}

func statusDeleted(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	m.gone(ctx)
	m.forget()
	_, err := m.get(ctx)
	t.expect("a status of a machine that was deleted", err, notFound)
}

func statusExternalStop(ctx context.Context, t *trial) {
	m := t.machine()
	id := m.running(ctx).GetProviderId()
	t.cloud.changeVM(ctx, m, backendv1alpha1.VMChange_VM_CHANGE_STOP)
	now, err := m.get(ctx)
	if err != nil || now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_STOPPED || now.GetProviderId() != id {
		t.errorf("the VM %s that was stopped is %s, %q (%v)", id, now.GetState(), now.GetProviderId(), err)
	}
}

func statusExternalDelete(ctx context.Context, t *trial) {
	m := t.machine()
	m.running(ctx)
	t.cloud.changeVM(ctx, m, backendv1alpha1.VMChange_VM_CHANGE_DELETE)
	for _, forget := range []bool{false, true} {
		if forget {
			m.forget()
		}
		now, err := m.get(ctx)
		if err != nil {
			t.expect("a status of a VM that somebody deleted", err, notFound)
			continue
		}
		if now.GetState() != driverv1alpha1.MachineState_MACHINE_STATE_FAILED || now.GetProviderId() != "" {
			t.errorf("the VM that somebody deleted is %s, %q", now.GetState(), now.GetProviderId())
		}
	}
}

func statusFailed(ctx context.Context, t *trial) {
	m := t.machine()
	t.cloud.inject(ctx, m, &backendv1alpha1.Fault{
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS, Error: &backendv1alpha1.FaultError{Message: words},
	})
	m.until(ctx, "to fail", t.config.Timeouts.Running.Duration, func(ctx context.Context) (time.Duration, error) {
		now, err := m.create(ctx)
		if err != nil {
			return 0, err
		}
		switch now.GetState() {
		case driverv1alpha1.MachineState_MACHINE_STATE_FAILED:
			if !strings.Contains(now.GetMessage(), words) {
				t.errorf("the cloud said %q, and the driver %q", words, now.GetMessage())
			}
			return 0, nil
		case driverv1alpha1.MachineState_MACHINE_STATE_RUNNING:
			t.fatalf("a VM that does not boot is RUNNING")
		}
		return now.GetOperation().GetPollAfter().AsDuration(), errNotYet
	})
}

// noOtherAccount is why nobody knows how a driver tells accounts apart.
const noOtherAccount = "name credentials of another account as otherSecrets"

func statusAccountChanged(ctx context.Context, t *trial) {
	if len(t.otherSecrets) == 0 {
		t.notRun(noOtherAccount)
	}
	m := t.machine()
	m.running(ctx)
	m.secrets = t.otherSecrets
	m.refused(ctx, "with credentials of another account", driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED)
}

func statusStaleEpoch(ctx context.Context, t *trial) {
	m := t.machine()
	m.epoch = 7
	m.running(ctx)
	m.epoch = 6
	_, err := m.create(ctx)
	t.expect("a create of a leader before the last", err, driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH)
	_, err = m.remove(ctx)
	t.expect("a delete of a leader before the last", err, driverv1alpha1.ErrorReason_ERROR_REASON_STALE_EPOCH)
	if _, err := m.get(ctx); err != nil {
		t.errorf("a status of a leader before the last, which changes nothing: %v", err)
	}
	m.epoch = 0
	if _, err := m.create(ctx); err != nil {
		t.errorf("a create of unknown epoch: %v", err)
	}
}
