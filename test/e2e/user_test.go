package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// user is somebody who works in a namespace of his own. What he leaves behind is deleted at the end
// of the test, which fails if anything of it stays in the cloud.
type user struct {
	*fixture
	t *testing.T
	// namespace is where kubectl works, own the one that goes with the test.
	namespace, own string
	// since is when the test began.
	since time.Time
	// kubeconfig is of the cluster where kubectl works; empty: that of the Machines.
	kubeconfig string
	// shares says that there are other users of the stack at the same time.
	shares bool
}

// newUser returns a user who has a stack for himself, and so may do with it what he likes: kill its
// processes, inject faults, read what is counted for all.
func newUser(t *testing.T) *user {
	t.Helper()
	return newUserOf(t, onFake.enter(t, false))
}

// newSharingUser returns a user who shares the stack with others. The user touches only its
// namespace, and the Nodes and VMs of its machines. A test of this user runs no pods: they could
// run on the Nodes of another test.
func newSharingUser(t *testing.T) *user {
	t.Helper()
	u := newUserOf(t, onFake.enter(t, true))
	u.shares = true
	return u
}

// newUserOf returns a user of a stack.
func newUserOf(t *testing.T, f *fixture) *user {
	t.Helper()
	u := &user{fixture: f, t: t, since: time.Now()}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ",", "").Replace(t.Name()))
	if len(name) > 50 {
		name = name[len(name)-50:]
	}
	u.namespace = strings.Trim(name, "-")
	u.own = u.namespace
	u.kubectl("create", "namespace", u.namespace)
	if u.hasWorkload() {
		u.onNodes().kubectl("create", "namespace", u.namespace)
	}
	t.Cleanup(u.leave)
	return u
}

// onNodes returns the same user as whose kubectl works in the cluster of the Nodes.
func (u *user) onNodes() *user {
	there := *u
	there.kubeconfig = u.Workload().Kubeconfig()
	return &there
}

// leave removes what the test made, and checks that it is gone.
func (u *user) leave() {
	if u.t.Failed() {
		u.t.Log(u.story())
	}
	// t.Context has ended by now; the clean-up needs one of its own.
	ctx := context.WithoutCancel(u.t.Context())
	if !u.shares {
		u.mendCloud(ctx)
	}
	if out, err := u.try(nil, "delete", "machinedeployments,machinesets,machines", "--all", "--timeout="+waitLimit.String()); err != nil {
		u.t.Errorf("delete what the test made: %v\n%s\n%s", err, out, u.story())
		return
	}
	if left := u.resources(ctx); len(left) > 0 {
		u.t.Errorf("left behind in the cloud: %v", left)
	}
	if left := u.tokens(ctx); len(left) > 0 {
		u.t.Errorf("bootstrap tokens that are left behind: %v", left)
	}
	clusters := []*user{u}
	if u.hasWorkload() {
		clusters = append(clusters, u.onNodes())
	}
	for _, there := range clusters {
		if out, err := there.try(nil, "delete", "namespace", u.own, "--wait=false"); err != nil {
			u.t.Errorf("delete the namespace: %v\n%s", err, out)
		}
	}
}

// mendCloud ends all that the test has had the cloud do wrong.
func (u *user) mendCloud(ctx context.Context) {
	if _, err := u.Backend().RemoveFaults(ctx, &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		u.t.Errorf("remove the cloud's faults: %v", err)
	}
	if _, err := u.Backend().SetQuota(ctx, &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": -1}}); err != nil {
		u.t.Errorf("lift the cloud's quota: %v", err)
	}
}

// try runs kubectl and returns what it prints.
func (u *user) try(stdin []byte, args ...string) (string, error) {
	command := exec.Command(filepath.Join(binDir, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cmp.Or(u.kubeconfig, u.Kubeconfig()))
	if u.namespace != "" && (args[0] != "create" || args[1] != "namespace") {
		command.Args = append(command.Args, "--namespace="+u.namespace)
	}
	command.Stdin = bytes.NewReader(stdin)
	out, err := command.CombinedOutput()
	return string(out), err
}

// kubectl runs kubectl and ends the test when it fails.
func (u *user) kubectl(args ...string) string {
	u.t.Helper()
	out, err := u.try(nil, args...)
	if err != nil {
		u.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// apply applies a manifest and ends the test when the API server refuses it.
func (u *user) apply(manifest string) {
	u.t.Helper()
	if out, err := u.try([]byte(manifest), "apply", "-f", "-"); err != nil {
		u.t.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifest)
	}
}

func (u *user) machines() []clusterv1alpha1.Machine {
	u.t.Helper()
	var list clusterv1alpha1.MachineList
	if err := u.client.List(context.WithoutCancel(u.t.Context()), &list, client.InNamespace(u.namespace)); err != nil {
		u.t.Fatalf("list machines: %v", err)
	}
	return list.Items
}

// machine returns the only Machine there is.
func (u *user) machine() clusterv1alpha1.Machine {
	u.t.Helper()
	machines := u.machines()
	if len(machines) != 1 {
		u.t.Fatalf("there are %d machines, want 1", len(machines))
	}
	return machines[0]
}

// awaitRunning waits until exactly n Machines are there and Running.
func (u *user) awaitRunning(n int) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("%d machines Running", n), func(context.Context) error {
		machines := u.machines()
		for _, m := range machines {
			if m.Status.Phase != clusterv1alpha1.MachinePhaseRunning || !m.DeletionTimestamp.IsZero() {
				return fmt.Errorf("machine %s is %s%s", m.Name, m.Status.Phase, words(m.Status.Conditions))
			}
		}
		if len(machines) != n {
			return fmt.Errorf("there are %d machines", len(machines))
		}
		return nil
	})
}

func (u *user) awaitGone() {
	u.t.Helper()
	eventually(u.t, "all machines gone", func(context.Context) error {
		for _, m := range u.machines() {
			return fmt.Errorf("machine %s is %s%s", m.Name, m.Status.Phase, words(m.Status.Conditions))
		}
		return nil
	})
}

// awaitCondition waits until every Machine has the condition with status and reason, and says text
// in it.
func (u *user) awaitCondition(kind, reason, text string) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("condition %s, %s, %q", kind, reason, text), func(context.Context) error {
		machines := u.machines()
		if len(machines) == 0 {
			return errors.New("there is no machine")
		}
		for _, m := range machines {
			c := meta.FindStatusCondition(m.Status.Conditions, kind)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason || !strings.Contains(c.Message, text) {
				return fmt.Errorf("machine %s says%s", m.Name, words(m.Status.Conditions))
			}
		}
		return nil
	})
}

// uids are the keys under which the cloud knows the Machines.
func (u *user) uids() []string {
	var uids []string
	for _, m := range u.machines() {
		if m.Spec.MachineUID != nil {
			uids = append(uids, *m.Spec.MachineUID)
		}
	}
	slices.Sort(uids)
	return uids
}

// checkKept fails the test unless all of these Machines are still there.
func (u *user) checkKept(uids []string) {
	u.t.Helper()
	now := u.uids()
	for _, uid := range uids {
		if !slices.Contains(now, uid) {
			u.t.Errorf("machine uid %s was replaced", uid)
		}
	}
}

// resources counts by kind what exists in the cloud under this namespace's machines, past and
// present.
func (u *user) resources(ctx context.Context) map[string]int {
	u.t.Helper()
	listed, err := u.Backend().ListResources(ctx, &backendv1alpha1.ListResourcesRequest{})
	if err != nil {
		u.t.Fatalf("list the cloud's resources: %v", err)
	}
	own := u.ownUIDs(ctx)
	counts := map[string]int{}
	for _, r := range listed.GetResources() {
		if r.GetClusterUid() != strangersCluster && (!u.shares || own[r.GetMachineUid()]) {
			counts[r.GetKind()]++
		}
	}
	return counts
}

// namespaceTag is the tag of a VM that has its Machine's namespace.
const namespaceTag = "millwright-namespace"

// ownUIDs are the keys under which the cloud knows the machines of a user who shares his stack,
// past and present.
func (u *user) ownUIDs(ctx context.Context) map[string]bool {
	u.t.Helper()
	own := map[string]bool{}
	if !u.shares {
		return own
	}
	for _, vm := range u.vms(ctx) {
		if namespace := vm.GetTags()[namespaceTag]; namespace == u.own || namespace == u.namespace {
			own[vm.GetMachineUid()] = true
		}
	}
	for _, uid := range u.uids() {
		own[uid] = true
	}
	return own
}

// vms are all that the cloud ever made, for whomever.
func (u *user) vms(ctx context.Context) []*backendv1alpha1.VM {
	u.t.Helper()
	var all []*backendv1alpha1.VM
	var after int64
	for {
		page, err := u.Backend().ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: after})
		if err != nil {
			u.t.Fatalf("list the cloud's VMs: %v", err)
		}
		for _, vm := range page.GetVms() {
			all = append(all, vm)
			after = max(after, vm.GetRevision())
		}
		if !page.GetMore() {
			return all
		}
	}
}

// vmsEver counts the VMs that the cloud ever made, by machine uid: those of the user's machines
// where he shares the stack.
func (u *user) vmsEver() map[string]int {
	u.t.Helper()
	own := u.ownUIDs(u.t.Context())
	counts := map[string]int{}
	for _, vm := range u.vms(u.t.Context()) {
		if uid := vm.GetMachineUid(); !u.shares || own[uid] {
			counts[uid]++
		}
	}
	return counts
}

// checkOneVMEach fails the test unless each present Machine had exactly one VM in its life.
func (u *user) checkOneVMEach() {
	u.t.Helper()
	ever := u.vmsEver()
	for _, uid := range u.uids() {
		if ever[uid] != 1 {
			u.t.Errorf("machine uid %s had %d VMs, want exactly 1", uid, ever[uid])
		}
	}
}

// story is what a person would look at to see what went wrong.
func (u *user) story() string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "machinedeployments,machinesets,machines", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"get", "machines", "-o", "yaml"},
	} {
		out, _ := u.try(nil, args...)
		fmt.Fprintf(&b, "$ kubectl %s\n%s\n", strings.Join(args, " "), out)
	}
	return b.String()
}

// words renders conditions for an error.
func words(conditions []metav1.Condition) string {
	var b strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&b, "; %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// deployment renders a MachineDeployment. change replaces values by their names below: "flavor" →
// "large".
func deployment(name string, replicas int, change map[string]string) string {
	values := map[string]string{
		"kubelet": "1.34.3", "provider": "fake", "flavor": "small", "extra": "", "spec": "", "surge": "1", "unavailable": "0",
	}
	maps.Copy(values, change)
	return fmt.Sprintf(`apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: %[3]s, maxUnavailable: %[4]s}
  selector:
    matchLabels: {pool: %[1]s}
  template:
    metadata:
      labels: {pool: %[1]s}
    spec:
      versions: {kubelet: %[5]s}%[6]s
      providerSpec:
        value:
          cloudProvider: %[7]s
          cloudProviderSpec: {flavor: %[8]s, image: ubuntu-24.04%[9]s}
          operatingSystem: ubuntu
`, name, replicas, values["surge"], values["unavailable"], values["kubelet"], values["spec"], values["provider"], values["flavor"], values["extra"])
}
