package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// A cluster is lost and restored from a backup into a fresh API server, twice, while its cloud goes
// on. Without the old --cluster-id nothing is adopted, made or deleted. With it each Machine keeps
// its VM, and everything works on.
func TestOPS11_RestoreIntoAFreshAPIServer(t *testing.T) {
	tier.Long(t, "it starts three stacks")
	t.Parallel()
	takeTurn(t)
	const machines = 4
	dir, err := os.MkdirTemp("", "mw-restore-")
	if err != nil {
		t.Fatal(err)
	}
	u := startToRestore(t, dir, false)
	clusterID := u.clusterUID()
	u.apply(deployment("pool", machines, nil))
	u.awaitRunning(machines)
	saved, ever := u.backUp(), len(u.vmsEver())
	u.stop()

	u = startToRestore(t, dir, true)
	u.restore(saved)
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, notAdopted, "knows no VM")
	u.awaitOrphanScans(3)
	u.checkUntouched(saved, ever)
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, notAdopted, "knows no VM")
	u.stop()

	u = startToRestore(t, dir, true, "--cluster-id="+clusterID)
	u.restore(saved)
	u.awaitRunning(machines)
	u.awaitOrphanScans(3)
	u.checkUntouched(saved, ever)
	u.kubectl("scale", "machinedeployment", "pool", fmt.Sprintf("--replicas=%d", machines+1))
	u.awaitRunning(machines + 1)
	u.checkOneVMEach()
	u.kubectl("scale", "machinedeployment", "pool", fmt.Sprintf("--replicas=%d", machines))
	u.awaitRunning(machines)
	saved = u.backUp()
	u.stop()

	loseAVMToo(t, dir, clusterID, saved)
	if !t.Failed() {
		_ = os.RemoveAll(dir)
	}
}

// loseAVMToo restores once more, but for a VM that is lost as well: its Machine is not adopted, has
// no other made, and goes first.
func loseAVMToo(t *testing.T, dir, clusterID string, saved backup) {
	t.Helper()
	machines, lost := len(saved.machines), saved.machines[0]
	u := startToRestore(t, dir, true, "--cluster-id="+clusterID)
	ever := len(u.vmsEver())
	request := &backendv1alpha1.ChangeVMRequest{Id: u.vm(*lost.Spec.ProviderID).GetId(), Change: backendv1alpha1.VMChange_VM_CHANGE_DELETE}
	if _, err := u.Backend().ChangeVM(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	u.restore(saved)
	eventually(t, "all but the lost Machine to run", func(ctx context.Context) error {
		for _, m := range u.machines() {
			if m.Name != lost.Name && m.Status.Phase != clusterv1alpha1.MachinePhaseRunning {
				return fmt.Errorf("machine %s is %s%s", m.Name, m.Status.Phase, words(m.Status.Conditions))
			}
		}
		return u.reasonOf(ctx, lost.Name, notAdopted)
	})
	if now := len(u.vmsEver()); now != ever {
		t.Errorf("%d VMs were made", now-ever)
	}
	u.kubectl("scale", "machinedeployment", "pool", fmt.Sprintf("--replicas=%d", machines-1))
	u.awaitRunning(machines - 1)
	for _, m := range u.machines() {
		if m.Name == lost.Name {
			t.Errorf("machine %s stayed, which has no VM", m.Name)
		}
	}
	u.kubectl("delete", "machinedeployment", "pool")
	u.awaitGone()
	if left := u.resources(t.Context()); len(left) > 0 {
		t.Errorf("left behind in the cloud: %v", left)
	}
	u.stop()
}

// startToRestore starts a cluster of its own, fresh but for the cloud where that is kept; the
// manager is not running then.
func startToRestore(t *testing.T, dir string, keepCloud bool, managerArgs ...string) *user {
	t.Helper()
	options := stackOptions(dir)
	// The VMs trust the authority of the cluster before, which the new one does not have.
	options.FastKubelets = true
	options.KeepCloud, options.CloudArgs = keepCloud, nil
	options.ManagerArgs = append([]string{
		"-v=4", "--settle-period=1s", "--orphan-interval=1s", "--orphan-age=1s", "--settled-interval=2s",
	}, managerArgs...)
	f, err := newFixture(options)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{fixture: f, t: t, since: time.Now(), namespace: "restored", own: "restored"}
	t.Cleanup(func() { _ = f.Stop() })
	u.kubectl("create", "namespace", u.namespace)
	if keepCloud {
		if err := u.Process(stack.Manager).Kill(); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// stop ends the user's cluster; its cloud's state stays.
func (u *user) stop() {
	u.t.Helper()
	if u.t.Failed() {
		u.t.Fatal(u.story())
	}
	if err := u.Stop(); err != nil {
		u.t.Fatal(err)
	}
	if err := findRaces(u.dir); err != nil {
		u.t.Error(err)
	}
}

// backup is what is known of a cluster's Machines, as docs/backup.md has it made.
type backup struct {
	deployments []clusterv1alpha1.MachineDeployment
	sets        []clusterv1alpha1.MachineSet
	machines    []clusterv1alpha1.Machine
}

// backUp saves all but what a new API server gives anew: uids, the owners that are named by them,
// and status.
func (u *user) backUp() backup {
	u.t.Helper()
	var deployments clusterv1alpha1.MachineDeploymentList
	var sets clusterv1alpha1.MachineSetList
	for _, list := range []client.ObjectList{&deployments, &sets} {
		if err := u.client.List(u.t.Context(), list, client.InNamespace(u.namespace)); err != nil {
			u.t.Fatal(err)
		}
	}
	b := backup{deployments: deployments.Items, sets: sets.Items, machines: u.machines()}
	for i := range b.deployments {
		b.deployments[i].ObjectMeta, b.deployments[i].Status = savedMeta(&b.deployments[i].ObjectMeta), clusterv1alpha1.MachineDeploymentStatus{}
	}
	for i := range b.sets {
		b.sets[i].ObjectMeta, b.sets[i].Status = savedMeta(&b.sets[i].ObjectMeta), clusterv1alpha1.MachineSetStatus{}
	}
	for i := range b.machines {
		b.machines[i].ObjectMeta, b.machines[i].Status = savedMeta(&b.machines[i].ObjectMeta), clusterv1alpha1.MachineStatus{}
	}
	return b
}

func savedMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, Finalizers: m.Finalizers}
}

// restore puts everything back, Machines first, and starts the manager.
func (u *user) restore(b backup) {
	u.t.Helper()
	var all []client.Object
	for i := range b.machines {
		all = append(all, b.machines[i].DeepCopy())
	}
	for i := range b.sets {
		all = append(all, b.sets[i].DeepCopy())
	}
	for i := range b.deployments {
		all = append(all, b.deployments[i].DeepCopy())
	}
	for _, o := range all {
		if err := u.client.Create(u.t.Context(), o); err != nil {
			u.t.Fatal(err)
		}
	}
	u.revive([]string{stack.Manager})
}

// checkUntouched fails the test unless exactly the saved Machines are there, and their VMs, and no
// VM was made.
func (u *user) checkUntouched(b backup, ever int) {
	u.t.Helper()
	saved := map[string]bool{}
	for _, m := range b.machines {
		saved[*m.Spec.MachineUID] = true
		if vm := u.vm(*m.Spec.ProviderID); vm.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING {
			u.t.Errorf("the VM of machine %s is %s", m.Name, vm.GetState())
		}
	}
	now := u.machines()
	for _, m := range now {
		if !saved[*m.Spec.MachineUID] {
			u.t.Errorf("machine %s was created", m.Name)
		}
	}
	if len(now) != len(saved) {
		u.t.Errorf("there are %d machines, %d were restored", len(now), len(saved))
	}
	if made := len(u.vmsEver()) - ever; made != 0 {
		u.t.Errorf("%d VMs were made", made)
	}
}

// awaitOrphanScans waits until the manager has looked for orphans that often from now on.
func (u *user) awaitOrphanScans(n float64) {
	u.t.Helper()
	first := -1.0
	eventually(u.t, "scans for orphans", func(ctx context.Context) error {
		families, err := u.Metrics(ctx)
		if err != nil {
			return err
		}
		scans := 0.0
		for _, m := range families["millwright_orphan_scans_total"].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetValue() == "complete" {
					scans += m.GetCounter().GetValue()
				}
			}
		}
		if first < 0 {
			first = scans
		}
		if scans < first+n {
			return fmt.Errorf("%v so far", scans-first)
		}
		return nil
	})
}
