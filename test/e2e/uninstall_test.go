package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// operator returns the same user as who works in the manager's namespace.
func (u *user) operator() *user {
	operator := *u
	operator.namespace = leaseNamespace
	return &operator
}

// administrator returns the same user as who works in no namespace: an overlay says of each object
// in which it is.
func (u *user) administrator() *user {
	administrator := *u
	administrator.namespace = ""
	return &administrator
}

// The OpenStack overlay is deleted with 20 machines up: all VMs stay. It is applied again: nothing
// is replaced, and scaling works. No kubelet here runs a manager in the manager's pods. So the test
// stops the manager's process where Kubernetes would end the pods. It starts it again with a token
// of the new ServiceAccount.
func TestOPS11_OpenStackOverlayIsDeletedAndAppliedAgain(t *testing.T) {
	tier.Long(t, "it takes 20 servers and two managers")
	t.Parallel()
	const machines = 20
	u := newOpenStackUser(t)
	overlay := filepath.Join(deployDir, "openstack")
	u.administrator().kubectl("apply", "--server-side", "--force-conflicts", "-k", overlay)
	// The manager's pods run on its own Machines here, and their budget holds up the drain of the
	// last of these.
	t.Cleanup(func() { u.operator().kubectl("delete", "deployment,poddisruptionbudget", "millwright-manager") })
	u.apply(u.onMetaKube("kept", machines, ""))
	u.awaitRunning(machines)
	uids, servers := u.uids(), u.serverIDs()

	manager := u.Process(stack.Manager)
	u.administrator().kubectl("delete", "-k", overlay, "--timeout="+waitLimit.String())
	if err := manager.Stop(time.Minute); err != nil {
		t.Fatalf("end the manager: %v", err)
	}
	if diff := cmp.Diff(servers, u.serverIDs()); diff != "" || len(servers) != machines {
		t.Errorf("there were %d servers; without a manager (-before +after):\n%s", len(servers), diff)
	}
	for _, m := range u.machines() {
		if !m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s is being deleted", m.Name)
		}
	}
	u.checkKept(uids)

	u.administrator().kubectl("apply", "--server-side", "-k", overlay)
	if err := u.KubeconfigForServiceAccount(t.Context(), leaseNamespace, "millwright-manager", u.ManagerKubeconfig()); err != nil {
		t.Fatal(err)
	}
	if err := manager.Start(); err != nil {
		t.Fatalf("start the manager again: %v", err)
	}
	// One more machine shows that the new manager is at work.
	u.kubectl("scale", "machinedeployment", "kept", fmt.Sprintf("--replicas=%d", machines+1))
	u.awaitRunning(machines + 1)
	u.checkKept(uids)
	for _, id := range servers {
		if !slices.Contains(u.serverIDs(), id) {
			t.Errorf("server %s was replaced", id)
		}
	}
	u.checkOneVMEach()
	t.Logf("%d of %d servers were there without a manager and after it came back; %d after scaling", len(servers), machines, len(u.serverIDs()))
}

// serverIDs are the servers of the project, sorted.
func (u *openStackUser) serverIDs() []string {
	u.t.Helper()
	var ids []string
	for _, s := range u.servers(u.t.Context()) {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

// Who uninstalls for good is told how many Machines are left until there are none, and no VM is
// left. No CRD goes before.
func TestOPS11_UninstallingForGoodLeavesNoVM(t *testing.T) {
	tier.Long(t, "it takes a stack of its own")
	t.Parallel()
	u := newUserOfOwnStack(t)
	u.apply(deployment("workers", 4, nil))
	u.apply(machineOf("alone", string(uuid.NewUUID()), "fake"))
	u.apply(`{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineClass, metadata: {name: large}, provider: fake, providerSpec: {flavor: large, image: ubuntu-24.04}}`)
	u.awaitRunning(5)

	const crds = "machinedeployments.cluster.k8s.io machinesets.cluster.k8s.io machines.cluster.k8s.io machineclasses.cluster.k8s.io clusters.cluster.k8s.io " +
		"machinehealthchecks.cluster.k8s.io"
	if out, err := u.try(nil, append([]string{"delete", "crd"}, strings.Fields(crds)...)...); err == nil || !strings.Contains(out, "run `kubectl millwright uninstall`") {
		t.Fatalf("kubectl delete crd: %v\n%s", err, out)
	}
	if out, err := u.uninstall(); err == nil || !strings.Contains(out, "5 Machines, 1 MachineClass") || !strings.Contains(out, "--yes") {
		t.Errorf("uninstall without --yes: %v\n%s", err, out)
	}
	if out, err := u.uninstall("--dry-run"); err != nil || !strings.Contains(out, "1 MachineDeployment, 1 MachineSet, 5 Machines") {
		t.Errorf("uninstall --dry-run: %v\n%s", err, out)
	}
	u.awaitRunning(5)

	// What another system works on is not ours to delete, and its CRDs are not either.
	u.kubectl("patch", "machine", "alone", "--type=json", `--patch=[{"op":"add","path":"/metadata/finalizers/-","value":"`+theirFinalizer+`"}]`)
	if out, err := u.uninstall("--yes"); err == nil || !strings.Contains(out, theirFinalizer) || !strings.Contains(out, "nothing was deleted") {
		t.Errorf("uninstall beside another system: %v\n%s", err, out)
	}
	u.kubectl("patch", "machine", "alone", "--type=merge", `--patch={"metadata":{"finalizers":["`+clusterv1alpha1.MachineFinalizer+`"]}}`)
	u.awaitRunning(5)

	// A VM that does not go holds everything up, and nothing else is touched.
	held := u.inject(u.failingDelete())
	out, err := u.uninstall("--yes", "--timeout=5s")
	if err == nil || !strings.Contains(out, "left (") || !strings.Contains(out, "The CRDs were not touched") {
		t.Errorf("uninstall while VMs do not go: %v\n%s", err, out)
	}
	u.kubectl("get", "machines")
	u.removeFaults(held)

	out, err = u.uninstall("--yes", "--timeout="+waitLimit.String())
	if err != nil || !strings.Contains(out, "0 Machines left.") {
		t.Fatalf("uninstall --yes: %v\n%s", err, out)
	}
	t.Logf("millwright uninstall --yes:\n%s", out)
	if left := u.resources(t.Context()); len(left) > 0 {
		t.Errorf("left in the cloud: %v", left)
	}
	if out := u.kubectl("get", "crd", "-o", "name"); strings.Contains(out, "cluster.k8s.io") {
		t.Errorf("CRDs are left:\n%s", out)
	}
	if out := u.kubectl("get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"); strings.Contains(out, "millwright") {
		t.Errorf("policies are left:\n%s", out)
	}
	u.operator().kubectl("delete", "--ignore-not-found", "-k", filepath.Join(deployDir, "crds"), "--timeout="+waitLimit.String())
}

// uninstall runs `kubectl millwright uninstall`.
func (u *user) uninstall(args ...string) (string, error) {
	u.t.Helper()
	return u.plugin(append([]string{"uninstall", "--namespace", leaseNamespace}, args...)...)
}

// failingDelete has the cloud refuse, again and again, to delete a VM.
func (u *user) failingDelete() *backendv1alpha1.Fault {
	u.t.Helper()
	info, err := u.Backend().GetBackendInfo(u.t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		u.t.Fatalf("ask the cloud for its operations: %v", err)
	}
	return &backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: info.GetDeleteOperations()[0]},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR,
		Error:  &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, Message: "This account is closed"},
	}
}

// newUserOfOwnStack returns a user of a cluster that ends with the test.
func newUserOfOwnStack(t *testing.T) *user {
	t.Helper()
	takeTurn(t)
	dir, err := os.MkdirTemp("", "mw-own-")
	if err != nil {
		t.Fatal(err)
	}
	own, err := newFixture(stack.Options{
		BinDir: controlPlaneDir, CommandDir: commandDir, DeployDir: deployDir, Dir: dir, AuditLog: true,
		Log:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		ManagerArgs: []string{"-v=4", "--settle-period=1s"},
	})
	if err != nil {
		t.Fatalf("start a cluster: %v", err)
	}
	t.Cleanup(func() {
		code := 0
		if t.Failed() {
			code = 1
		}
		if own.end(code) != code {
			t.Error("the cluster has not ended well")
		}
	})
	u := &user{fixture: own, t: t, namespace: "team", own: "team", since: time.Now()}
	u.kubectl("create", "namespace", u.namespace)
	return u
}

// A Machine whose cloud will never answer again is forgotten by who holds the verb, and by nobody
// else. What it leaves behind stands in its condition and in Events; the audit log has who did it.
func TestOPS11_AMachineIsForgotten(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	uid := string(uuid.NewUUID())
	u.apply(machineOf("stranded", uid, "fake"))
	u.awaitRunning(1)
	vm, node := *u.machine().Spec.ProviderID, u.machine().Status.NodeRef.Name
	held := u.inject(u.failingDelete())
	u.kubectl("create", "role", "editor", "--verb=get,list,update,patch", "--resource=machines.cluster.k8s.io")
	u.kubectl("create", "rolebinding", "editor", "--role=editor", "--user=editor", "--user=operator")
	u.kubectl("delete", "machine", "stranded", "--wait=false")
	u.awaitCondition(clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonProviderInternal, "This account is closed")

	forget := func(as string) (string, error) {
		return u.try(nil, "annotate", "machine", "stranded", clusterv1alpha1.ForgetAnnotation+"="+uid, "--as="+as)
	}
	if out, err := forget("editor"); err == nil || !strings.Contains(out, "it takes the verb forget on machines.cluster.k8s.io") {
		t.Fatalf("who may only patch Machines: %v\n%s", err, out)
	}
	u.kubectl("create", "rolebinding", "forgetter", "--clusterrole=millwright-machine-forgetter", "--user=operator")
	eventually(t, "who holds the verb to be obeyed", func(context.Context) error {
		out, err := forget("operator")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	u.awaitGone()
	if state := u.vm(vm).GetState(); state != backendv1alpha1.VMState_VM_STATE_RUNNING {
		t.Errorf("the VM is %s", state)
	}
	if out, err := u.try(nil, "get", "node", node); err == nil {
		t.Errorf("the Node is still there:\n%s", out)
	}
	for _, reason := range []string{clusterv1alpha1.ReasonInstanceForgotten, "Deleted"} {
		u.awaitMachineEvent(reason, "machineUID "+uid+", VM "+vm)
	}
	audit, err := os.ReadFile(u.AuditLogPath())
	if err != nil {
		t.Fatal(err)
	}
	if want := `"millwright-forget/machine":"` + u.namespace + "/stranded, machineUID " + uid + ", providerID " + vm; !strings.Contains(string(audit), want) {
		t.Errorf("the audit log has no %s", want)
	}

	// The account opens again: the Machine comes back, takes over its VM, and lets the test end as
	// it began.
	u.removeFaults(held)
	u.apply(machineOf("stranded", uid, "fake"))
	eventually(t, "the Machine to know its VM", func(context.Context) error {
		if m := u.machine(); m.Spec.ProviderID == nil || *m.Spec.ProviderID != vm {
			return fmt.Errorf("it says%s", words(m.Status.Conditions))
		}
		return nil
	})
	u.checkOneVMEach()
}

// awaitMachineEvent waits for an event about a Machine with this text in it.
func (u *user) awaitMachineEvent(reason, text string) {
	u.t.Helper()
	eventually(u.t, "event "+reason, func(ctx context.Context) error {
		var events corev1.EventList
		if err := u.client.List(ctx, &events, client.InNamespace(u.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == reason && e.InvolvedObject.Kind == clusterv1alpha1.MachineKind && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events", len(events.Items))
	})
}

// A template does not have Machines forgotten: its annotation reaches none.
func TestOPS11_ATemplateForgetsNothing(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(strings.Replace(deployment("careless", 1, nil), "      labels: {pool: careless}",
		"      labels: {pool: careless}\n      annotations: {"+clusterv1alpha1.ForgetAnnotation+": \"true\", example.com/kept: \"yes\"}", 1))
	u.awaitRunning(1)
	annotations := u.machine().Annotations
	if _, has := annotations[clusterv1alpha1.ForgetAnnotation]; has || annotations["example.com/kept"] != "yes" {
		t.Errorf("the Machine has the annotations %v", annotations)
	}
}
