package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// scanInterval is the manager's --orphan-interval in these tests.
const scanInterval = 2 * time.Second

// strangersCluster is another cluster that has VMs in the same account. They are nobody's to
// delete, and not left behind.
const strangersCluster = "somebody-elses-cluster"

// VMs that no Machine names: those of this cluster go when they are old enough; a stranger's, a
// young one and one that a Machine names stay.
func TestSAFE1_Orphans(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	// Only an account that an object names is looked through.
	u.apply(deployment("named", 0, nil))
	ours := u.clusterUID()
	named := string(uuid.NewUUID())
	u.apply(machineOf("restored", named, "nowhere"))
	old := u.foreignVM(ours, "orphan", string(uuid.NewUUID()), time.Hour)
	stranger := u.foreignVM(strangersCluster, "stranger", string(uuid.NewUUID()), time.Hour)
	// Nobody here deletes it, and it counts towards the account's quota.
	t.Cleanup(func() {
		request := &backendv1alpha1.ChangeVMRequest{Id: stranger.GetId(), Change: backendv1alpha1.VMChange_VM_CHANGE_DELETE}
		if _, err := u.Backend().ChangeVM(context.WithoutCancel(t.Context()), request); err != nil {
			t.Errorf("remove the stranger's VM: %v", err)
		}
	})
	young := u.foreignVM(ours, "young", string(uuid.NewUUID()), 0)
	restored := u.foreignVM(ours, "named", named, time.Hour)

	eventually(t, "the orphan to go", func(context.Context) error {
		if vm := u.vm(old.GetId()); vm.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
			return fmt.Errorf("it is %s", vm.GetState())
		}
		// Its NIC goes with a later scan.
		if n := u.resources(t.Context())["nic"]; n != 2 {
			return fmt.Errorf("there are %d NICs of ours, want those of the two others", n)
		}
		return nil
	})
	u.awaitLeaseEvent("OrphanDeleted", old.GetProviderId())
	// The orphan took three scans; all the others were in them.
	u.checkThereAndForeign(young, restored)

	// Their Machines come back, take them over, and let the test end as it began.
	u.kubectl("delete", "machine", "restored")
	u.apply(machineOf("young", young.GetMachineUid(), "fake"))
	u.apply(machineOf("named", restored.GetMachineUid(), "fake"))
	eventually(t, "the restored Machines to know their VMs", func(context.Context) error {
		for _, m := range u.machines() {
			if m.Spec.ProviderID == nil {
				return fmt.Errorf("machine %s has no providerID%s", m.Name, words(m.Status.Conditions))
			}
		}
		return nil
	})
	u.checkThereAndForeign(young, restored)
	u.checkOneVMEach()
}

// A Machine is lost without its finalizer having run, and comes back from a backup: it finds the VM
// that it had.
func TestSAFE1_RestoredMachineKeepsItsVM(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	uid := string(uuid.NewUUID())
	u.apply(machineOf("lost", uid, "fake"))
	u.awaitRunning(1)
	before := *u.machine().Spec.ProviderID
	// A manager that is there would put its finalizer back, or delete the VM.
	u.kill([]string{stack.Manager})
	u.kubectl("patch", "machine", "lost", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	u.kubectl("delete", "machine", "lost")
	u.revive([]string{stack.Manager})
	u.apply(machineOf("lost", uid, "fake"))
	u.awaitRunning(1)
	if after := *u.machine().Spec.ProviderID; after != before {
		t.Errorf("the VM %s became %s", before, after)
	}
	u.checkOneVMEach()
}

// machineOf renders a Machine as a backup has it, for a VM that CreateForeignVM makes.
func machineOf(name, uid, provider string) string {
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: Machine
metadata:
  name: %s
spec:
  machineUID: %s
  versions: {kubelet: 1.34.3}
  providerSpec:
    value:
      cloudProvider: %s
      cloudProviderSpec: {flavor: small, image: ubuntu-22.04}
      operatingSystem: ubuntu
`, name, uid, provider)
}

// clusterUID is what marks VMs as this cluster's: the default of --cluster-id.
func (u *user) clusterUID() string {
	u.t.Helper()
	var system corev1.Namespace
	if err := u.workload.Get(u.t.Context(), client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		u.t.Fatal(err)
	}
	return string(system.UID)
}

// foreignVM makes a VM of that age behind Millwright's back.
func (u *user) foreignVM(cluster, name, uid string, age time.Duration) *backendv1alpha1.VM {
	u.t.Helper()
	made, err := u.Backend().CreateForeignVM(u.t.Context(), &backendv1alpha1.CreateForeignVMRequest{Vm: &backendv1alpha1.VM{
		Name: name, ClusterUid: cluster, MachineUid: uid,
		Tags:       map[string]string{namespaceTag: u.namespace, "millwright-name": name},
		CreateTime: timestamppb.New(time.Now().Add(-age)),
	}})
	if err != nil {
		u.t.Fatalf("make a VM behind Millwright's back: %v", err)
	}
	return made.GetVm()
}

// vm returns a VM, past or present, by its id or providerID.
func (u *user) vm(id string) *backendv1alpha1.VM {
	u.t.Helper()
	for _, vm := range slices.Backward(u.vms(u.t.Context())) {
		if vm.GetId() == id || vm.GetProviderId() == id {
			return vm
		}
	}
	return nil
}

// checkThereAndForeign fails the test unless these VMs are there still, and the stranger's, too.
func (u *user) checkThereAndForeign(vms ...*backendv1alpha1.VM) {
	u.t.Helper()
	for _, vm := range vms {
		if now := u.vm(vm.GetId()); now.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING {
			u.t.Errorf("VM %s is %s", now.GetName(), now.GetState())
		}
	}
	listed, err := u.Backend().ListResources(u.t.Context(), &backendv1alpha1.ListResourcesRequest{ClusterUid: strangersCluster})
	if err != nil {
		u.t.Fatal(err)
	}
	if len(listed.GetResources()) < 2 {
		u.t.Errorf("of the stranger's VM and NIC these are left: %v", listed.GetResources())
	}
}

// awaitLeaseEvent waits for an event about the leader's Lease that names a VM.
func (u *user) awaitLeaseEvent(reason, providerID string) {
	u.t.Helper()
	eventually(u.t, "event "+reason, func(ctx context.Context) error {
		var events corev1.EventList
		if err := u.client.List(ctx, &events, client.InNamespace(leaseNamespace)); err != nil {
			return err
		}
		said := slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == reason && e.InvolvedObject.Kind == "Lease" && strings.Contains(e.Message, providerID+" ")
		})
		if !said {
			return fmt.Errorf("none of %d events", len(events.Items))
		}
		return nil
	})
}
