package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// awaitSaid waits until some Machine has had a condition with this reason.
func (u *user) awaitSaid(kind, reason string) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), waitLimit)
	defer cancel()
	said := false
	u.eachChange(ctx, func(m *clusterv1alpha1.Machine) {
		for _, c := range m.Status.Conditions {
			if c.Type == kind && c.Reason == reason {
				said = true
				cancel()
			}
		}
	})
	if !said {
		u.t.Fatalf("no machine said %s in %s", reason, kind)
	}
}

// neverBoots has the next VM stay as it is while the cloud makes it.
func (u *user) neverBoots() {
	u.t.Helper()
	u.inject(&backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: u.createVM()},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS,
		Times:  1,
	})
}

// A VM that does not become a Ready Node in time fails its Machine, which its set replaces.
func TestLIFE7_JoinTimeout(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.neverBoots()
	u.apply(deployment("joining", 1, map[string]string{"spec": "\n      nodeStartupTimeout: 5s"}))
	u.awaitSaid(clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	late := u.uids()[0]
	eventually(t, "the machine that is late to be replaced", func(context.Context) error {
		for _, uid := range u.uids() {
			if uid == late {
				return fmt.Errorf("machine uid %s is there still", uid)
			}
		}
		return nil
	})
	u.awaitRunning(1)
	u.checkOneVMEach()
}

// What a VM that never joins has printed stands on its Machine, without a bootstrap token.
func TestLIFE7_JoinTimeoutSaysWhatTheConsoleSays(t *testing.T) {
	tier.Long(t, "it waits for a machine to be late")
	t.Parallel()
	u := newUser(t)
	u.neverBoots()
	u.apply(deployment("printing", 1, map[string]string{"spec": "\n      nodeStartupTimeout: 8s"}))
	var late clusterv1alpha1.Machine
	eventually(t, "the VM to be asked for", func(context.Context) error {
		if machines := u.machines(); len(machines) == 1 && machines[0].Spec.ProviderID != nil {
			late = machines[0]
			return nil
		}
		return errors.New("no Machine has a providerID")
	})
	request := &backendv1alpha1.ChangeVMRequest{
		Id: *late.Spec.ProviderID, Change: backendv1alpha1.VMChange_VM_CHANGE_PRINT,
		Message: "\x1b[1mcloud-init\x1b[0m: token 0a1b2c.0123456789abcdef\r\nkubelet: no route to host\r\n",
	}
	if _, err := u.Backend().ChangeVM(t.Context(), request); err != nil {
		t.Fatalf("have the VM print something: %v", err)
	}
	const want = "\nThe console says:\ncloud-init: token [redacted]\nkubelet: no route to host"
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	said := ""
	u.eachChange(ctx, func(m *clusterv1alpha1.Machine) {
		if m.Name == late.Name && m.Status.FailureMessage != nil {
			said = *m.Status.FailureMessage
			cancel()
		}
	})
	if !strings.HasSuffix(said, want) {
		t.Errorf("the Machine failed with %q, want its end to be %q", said, want)
	}
	u.awaitRunning(1)
	u.checkOneVMEach()
}

// A Node that is deleted while its VM runs is waited for as long as a new one; then its Machine is
// replaced.
func TestLIFE8_DeletedNode(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("unregistered", 1, map[string]string{"spec": "\n      nodeStartupTimeout: 6s"}))
	u.awaitRunning(1)
	before := u.machine()
	u.kubectl("delete", "node", before.Status.NodeRef.Name)
	u.awaitSaid(clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	eventually(t, "the machine without a Node to go", func(context.Context) error {
		if m, found := u.find(before.Name); found {
			return fmt.Errorf("machine %s says%s", m.Name, words(m.Status.Conditions))
		}
		return nil
	})
	u.awaitRunning(1)
	u.checkOneVMEach()
}

// A driver that is away for longer than a VM may take to join makes nothing late.
func TestSAFE3_DriverAwayLongerThanTheJoinTimeout(t *testing.T) {
	t.Parallel()
	const limit = 8 * time.Second
	u := newUser(t)
	u.neverBoots()
	u.apply(deployment("patient", 1, map[string]string{"spec": fmt.Sprintf("\n      nodeStartupTimeout: %s", limit)}))
	eventually(t, "a VM that is being made", func(context.Context) error {
		for _, m := range u.machines() {
			if m.Spec.ProviderID != nil {
				return nil
			}
		}
		return fmt.Errorf("no machine has a providerID")
	})
	u.kill([]string{stack.Driver})
	u.watchFor(limit+7*time.Second, func(m *clusterv1alpha1.Machine) {
		if m.Status.Phase == clusterv1alpha1.MachinePhaseFailed || !m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s was given up while the driver was away%s", m.Name, words(m.Status.Conditions))
		}
	})
	u.revive([]string{stack.Driver})
	u.awaitSaid(clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout)
	u.awaitRunning(1)
	u.checkOneVMEach()
}
