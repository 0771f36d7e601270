package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// driverAbsence is how long the driver stays away under load.
const driverAbsence = 30 * time.Second

// The driver goes away in the middle of a scale-up and of deletions: nothing fails, nothing is
// replaced, work goes on.
func TestDRV1_DriverAwayUnderLoad(t *testing.T) {
	tier.Long(t, "the driver is away for half a minute")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("steady", 2, nil))
	u.apply(deployment("growing", 1, nil))
	u.awaitRunning(3)
	before := u.uids()
	u.apply(deployment("leaving", 3, nil))
	u.awaitRunning(6)
	u.slowCloud()
	u.kubectl("delete", "machinedeployment", "leaving", "--wait=false")
	u.kubectl("scale", "machinedeployment", "growing", "--replicas=12")
	eventually(t, "creates under way", func(context.Context) error {
		for _, m := range u.machines() {
			if m.Status.Phase == clusterv1alpha1.MachinePhaseProvisioning {
				return nil
			}
		}
		return fmt.Errorf("no machine is Provisioning")
	})
	u.kill([]string{stack.Driver})
	u.watchFor(driverAbsence, func(m *clusterv1alpha1.Machine) {
		if m.Status.Phase == clusterv1alpha1.MachinePhaseFailed || m.Status.ErrorReason != nil || m.Status.FailureReason != nil {
			t.Errorf("machine %s failed while the driver was away%s", m.Name, words(m.Status.Conditions))
		}
		if !m.DeletionTimestamp.IsZero() && m.Labels["pool"] != "leaving" {
			t.Errorf("machine %s was deleted while the driver was away", m.Name)
		}
	})
	u.revive([]string{stack.Driver})
	u.awaitRunning(14)
	after := u.uids()
	for _, uid := range before {
		if !slices.Contains(after, uid) {
			t.Errorf("machine uid %s was replaced", uid)
		}
	}
	u.checkOneVMEach()
}

// watchFor looks at each change of each Machine for a while.
func (u *user) watchFor(long time.Duration, look func(*clusterv1alpha1.Machine)) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), long)
	defer cancel()
	u.eachChange(ctx, look)
}

// Quota: the Machine says so in the cloud's words, and recovers by itself when it is raised.
func TestSAFE7_Quota(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.quota(2)
	u.apply(deployment("limited", 3, nil))
	eventually(t, "one machine to say that the quota is used up", func(context.Context) error {
		said, running := 0, 0
		for _, m := range u.machines() {
			if saysWhy(&m, clusterv1alpha1.ReasonQuotaExceeded, "Quota exceeded for vm") {
				said++
			}
			if m.Status.Phase == clusterv1alpha1.MachinePhaseRunning {
				running++
			}
		}
		if said != 1 || running != 2 {
			return fmt.Errorf("%d machines say so and %d are Running", said, running)
		}
		return nil
	})
	before := u.uids()
	u.quota(-1)
	u.awaitRunning(3)
	if after := u.uids(); !slices.Equal(before, after) {
		t.Errorf("machines were replaced: uids %v became %v", before, after)
	}
	u.checkOneVMEach()
}

func (u *user) quota(vms int64) {
	u.t.Helper()
	request := &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": vms}}
	if _, err := u.Backend().SetQuota(u.t.Context(), request); err != nil {
		u.t.Fatalf("set the cloud's quota: %v", err)
	}
}

// A create whose answer is lost is repeated and meets the same VM.
func TestSAFE5_LostAnswers(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	info, err := u.Backend().GetBackendInfo(t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		t.Fatalf("ask the cloud for its operations: %v", err)
	}
	for _, operation := range append(info.GetCreateOperations(), info.GetDeleteOperations()...) {
		u.inject(&backendv1alpha1.Fault{
			Match:  &backendv1alpha1.FaultMatch{Operation: operation},
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST,
			Times:  2,
		})
	}
	u.apply(deployment("lossy", 3, nil))
	u.awaitRunning(3)
	u.checkOneVMEach()
	u.kubectl("delete", "machinedeployment", "lossy", "--wait=false")
	u.awaitGone()
}

// A VM that can never run makes its Machine Failed, with the cloud's words, and its set replaces
// it.
func TestLIFE1_FailedVMIsReplaced(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.inject(&backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: u.createVM()},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS,
		Error:  &backendv1alpha1.FaultError{Message: "No valid host was found"},
		Times:  1,
	})
	u.apply(deployment("replaced", 1, nil))
	failed := false
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	u.eachChange(ctx, func(m *clusterv1alpha1.Machine) {
		if m.Status.Phase == clusterv1alpha1.MachinePhaseFailed && m.Status.ErrorMessage != nil {
			failed = true
			cancel()
		}
	})
	if !failed {
		t.Fatal("no machine became Failed")
	}
	u.awaitRunning(1)
	u.checkOneVMEach()
}

// createVM is the name of the cloud's operation that makes a VM: the last one of a create.
func (u *user) createVM() string {
	u.t.Helper()
	info, err := u.Backend().GetBackendInfo(u.t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		u.t.Fatalf("ask the cloud for its operations: %v", err)
	}
	operations := info.GetCreateOperations()
	return operations[len(operations)-1]
}

// A VM that dies is noticed and replaced; one that is switched off is only shown. There are enough
// machines for one shared list to look after them.
func TestLIFE8_VMsThatDieAndStop(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	const machines = 6
	u.apply(deployment("mortal", machines, nil))
	u.awaitRunning(machines)
	dies, stops := u.machines()[0], u.machines()[1]
	u.change(*dies.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_DELETE)
	eventually(t, "the dead to be replaced", func(context.Context) error {
		if m, found := u.find(dies.Name); found {
			return fmt.Errorf("machine %s is there still%s", m.Name, words(m.Status.Conditions))
		}
		return nil
	})
	u.awaitRunning(machines)
	u.change(*stops.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_STOP)
	eventually(t, "the stopped to be shown", func(context.Context) error {
		m, found := u.find(stops.Name)
		if !found || !saysWhy(m, clusterv1alpha1.ReasonInstanceStopped, "switched off") {
			return fmt.Errorf("found: %t%s", found, words(m.Status.Conditions))
		}
		return nil
	})
	u.change(*stops.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_START)
	u.kubectl("wait", "machine/"+stops.Name, "--for=condition=Ready", "--timeout=120s")
	u.checkOneVMEach()
}

// change does to a VM what somebody else could do.
func (u *user) change(providerID string, change backendv1alpha1.VMChange) {
	u.t.Helper()
	request := &backendv1alpha1.ChangeVMRequest{Id: providerID, Change: change}
	if _, err := u.Backend().ChangeVM(u.t.Context(), request); err != nil {
		u.t.Fatalf("change VM %s: %v", providerID, err)
	}
}

// Many machines against a small quota: the cloud is asked a few times, every machine says so in its
// words, and when it is raised all of them are there soon.
func TestSAFE7_ManyMachinesAgainstAQuota(t *testing.T) {
	tier.Long(t, "it makes 40 machines")
	t.Parallel()
	const machines, fit = 40, 5
	u := newUser(t)
	u.quota(fit)
	u.apply(deployment("many", machines, nil))
	eventually(t, "all others to say that the quota is used up", func(context.Context) error {
		said := 0
		for _, m := range u.machines() {
			if saysWhy(&m, clusterv1alpha1.ReasonQuotaExceeded, "Quota exceeded for vm") {
				said++
			}
		}
		if said != machines-fit {
			return fmt.Errorf("%d machines say so", said)
		}
		return nil
	})
	if n := u.creates(); n > 3*fit+10 {
		t.Errorf("%d machines called the cloud %d times for %d VMs", machines, n, fit)
	}
	u.quota(-1)
	raised := time.Now()
	u.awaitRunning(machines)
	t.Logf("all were Running %s after the quota was raised, after %d calls in all", time.Since(raised).Round(time.Second), u.creates())
	u.checkOneVMEach()
}

// Credentials that are refused are tried a handful of times, by whomever; what changes them goes on
// at once.
func TestSAFE7_Credentials(t *testing.T) {
	tier.Long(t, "it makes 20 machines")
	t.Parallel()
	const machines = 20
	u := newUser(t)
	operations := u.createOperations()
	fault := u.inject(&backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: operations[0]},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
		Error:  &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, Message: "The key was revoked"},
	})
	// The breaker stays closed for minutes: no other test may name this account.
	const nobodyElses = ", zone: fake-1c"
	u.apply(deployment("locked", machines, map[string]string{"extra": nobodyElses}))
	eventually(t, "all to say that the credentials are refused", func(context.Context) error {
		said := 0
		for _, m := range u.machines() {
			if m.Status.Phase == clusterv1alpha1.MachinePhaseFailed {
				t.Errorf("machine %s failed for it", m.Name)
			}
			if saysWhy(&m, clusterv1alpha1.ReasonCredentialsInvalid, "The key was revoked") {
				said++
			}
		}
		if said != machines {
			return fmt.Errorf("%d machines say so", said)
		}
		return nil
	})
	if n := u.callsOf(operations[0]); n > 5 {
		t.Errorf("the cloud refused the credentials %d times, want a handful", n)
	}
	u.removeFaults(fault)
	// What the machines are made with has changed: nobody waits for the breaker's five minutes.
	u.apply(deployment("locked", machines, map[string]string{"flavor": "medium", "extra": nobodyElses}))
	u.awaitRunning(machines)
	u.checkOneVMEach()
}

func (u *user) createOperations() []string {
	u.t.Helper()
	info, err := u.Backend().GetBackendInfo(u.t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		u.t.Fatalf("ask the cloud for its operations: %v", err)
	}
	return info.GetCreateOperations()
}

// creates counts the calls that made this test's VMs, or tried to.
func (u *user) creates() int {
	u.t.Helper()
	return u.callsOf(u.createVM())
}

// callsOf counts the calls of an operation for this test's machines, past and present.
func (u *user) callsOf(operation string) int {
	u.t.Helper()
	calls, err := u.calls(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	n := 0
	for _, call := range calls {
		if call.GetOperation() == operation && call.GetReceiveTime().AsTime().After(u.since) {
			n++
		}
	}
	return n
}
