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
)

// driverAbsence is how long the driver stays away under load.
const driverAbsence = 30 * time.Second

// The driver goes away in the middle of a scale-up and of deletions: nothing fails, nothing is replaced, work goes on.
func TestDRV1_DriverAwayUnderLoad(t *testing.T) {
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

// A VM that can never run makes its Machine Failed, with the cloud's words, and its set replaces it.
func TestLIFE1_FailedVMIsReplaced(t *testing.T) {
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

// A VM that dies is noticed and replaced; one that is switched off is only shown. There are enough machines for one
// shared list to look after them, which comes once a minute.
func TestLIFE8_VMsThatDieAndStop(t *testing.T) {
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
