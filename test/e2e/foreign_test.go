package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
	"github.com/millwright-dev/millwright/test/tier"
)

// What machine-controller puts on its Machines: the first before it makes the VM, the second once
// there is a Node.
const (
	theirFinalizer     = "machine-delete-finalizer"
	theirNodeFinalizer = "machine-node-delete-finalizer"
)

// leftToAnother is the reason of the condition Paused.
const leftToAnother = "ManagedByAnother"

// neighbour is machine-controller, as it shows in the API server.
type neighbour struct {
	*user
	md *clusterv1alpha1.MachineDeployment
}

// newNeighbour begins with a MachineDeployment that has one set of two Machines, whose VMs and
// Nodes are the neighbour's.
func newNeighbour(u *user) *neighbour {
	u.t.Helper()
	n := &neighbour{user: u}
	u.t.Cleanup(n.leave)
	// It was there before Millwright was; the annotation keeps Millwright from it until that is so.
	u.apply(strings.Replace(deployment("theirs", 2, nil), "  name: theirs\n", "  name: theirs\n  annotations: {cluster.k8s.io/paused: \"\"}\n", 1))
	n.md = &clusterv1alpha1.MachineDeployment{}
	u.get("theirs", n.md)
	set := n.makeSet("theirs-a", 2, clusterv1alpha1.PausedAnnotation)
	for _, name := range []string{"theirs-a-0", "theirs-a-1"} {
		n.makeMachine(set, name, theirFinalizer, theirNodeFinalizer)
		n.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{clusterv1alpha1.NodeMachineAnnotation: u.namespace + "/" + name},
		}})
	}
	return n
}

// leave deletes what there is, and takes the neighbour's finalizers away, so that the test's
// namespace can go.
func (n *neighbour) leave() {
	_, _ = n.try(nil, "delete", "machinedeployments,machinesets,machines", "--all", "--wait=false")
	for _, m := range n.machines() {
		n.letGo(m.Name)
	}
	for _, node := range []string{"theirs-a-0", "theirs-a-1"} {
		_, _ = n.try(nil, "delete", "node", node, "--ignore-not-found", "--wait=false")
	}
}

func (u *user) get(name string, o client.Object) {
	u.t.Helper()
	if err := u.client.Get(context.WithoutCancel(u.t.Context()), client.ObjectKey{Namespace: u.namespace, Name: name}, o); err != nil {
		u.t.Fatalf("read %s: %v", name, err)
	}
}

func (n *neighbour) create(o client.Object) {
	n.t.Helper()
	if err := n.client.Create(n.t.Context(), o); err != nil {
		n.t.Fatalf("create %s: %v", o.GetName(), err)
	}
}

// makeSet makes a set of the MachineDeployment, as the neighbour's own controller does.
func (n *neighbour) makeSet(name string, replicas int32, annotations ...string) *clusterv1alpha1.MachineSet {
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.namespace, Name: name, Labels: map[string]string{"pool": "theirs"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(n.md, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineDeploymentKind))},
		},
		Spec: clusterv1alpha1.MachineSetSpec{Replicas: &replicas, Selector: n.md.Spec.Selector, Template: n.md.Spec.Template},
	}
	for _, key := range annotations {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, "")
	}
	n.create(set)
	return set
}

// makeMachine makes a Machine of a set. It has no finalizer yet when the neighbour has just made
// it.
func (n *neighbour) makeMachine(set *clusterv1alpha1.MachineSet, name string, finalizers ...string) {
	n.create(&clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.namespace, Name: name, Labels: map[string]string{"pool": "theirs"}, Finalizers: finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.MachineSetKind))},
		},
		Spec: n.md.Spec.Template.Spec,
	})
}

// letGo removes the neighbour's finalizers from a Machine.
func (n *neighbour) letGo(name string) {
	ctx, m := context.WithoutCancel(n.t.Context()), &clusterv1alpha1.Machine{}
	if err := n.client.Get(ctx, client.ObjectKey{Namespace: n.namespace, Name: name}, m); err != nil {
		return // It is gone.
	}
	before := m.DeepCopy()
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == theirFinalizer || f == theirNodeFinalizer })
	if err := client.IgnoreNotFound(n.client.Patch(ctx, m, client.MergeFrom(before))); err != nil {
		n.t.Errorf("let %s go: %v", name, err)
	}
}

// awaitLeftAlone waits until each of these objects says that it is left to another system, and why.
func (u *user) awaitLeftAlone(names ...string) {
	u.t.Helper()
	eventually(u.t, strings.Join(names, ", ")+" to be left alone", func(context.Context) error {
		for _, name := range names {
			out, err := u.try(nil, "get", name, `-o=jsonpath={.status.conditions[?(@.type=="Paused")].reason}: {.status.conditions[?(@.type=="Paused")].message}`)
			if err != nil || !strings.HasPrefix(out, leftToAnother) || !strings.Contains(out, theirFinalizer) {
				return fmt.Errorf("%s says %q: %w", name, out, err)
			}
		}
		return nil
	})
}

// checkOnlyConditions fails the test if the manager has written anything but conditions since an
// instant.
func (u *user) checkOnlyConditions(since time.Time) {
	u.t.Helper()
	for write, n := range u.writes(since) {
		if write.Budgeted() && !slices.Contains([]audit.Write{
			{Verb: "patch", Resource: "machines/status"}, {Verb: "patch", Resource: "machinesets/status"},
			{Verb: "patch", Resource: "machinedeployments/status"}, {Verb: "patch", Resource: "configmaps"},
		}, write) {
			u.t.Errorf("%d times: %s %s", n, write.Verb, write.Resource)
		}
	}
}

// What another system works on is left to it: nothing is written but a condition, whatever happens
// to it, and to what owns it.
func TestSAFE8_AnotherSystemsMachinesAreLeftAlone(t *testing.T) {
	tier.Long(t, "it waits until nothing is written, twice")
	t.Parallel()
	u := newUser(t)
	before, since := len(u.vmsEver()), time.Now()
	n := newNeighbour(u)
	node := &corev1.Node{}
	u.get("theirs-a-0", node)
	u.kubectl("annotate", "machinedeployment/theirs", "machineset/theirs-a", clusterv1alpha1.PausedAnnotation+"-")
	u.awaitLeftAlone("machinedeployment/theirs", "machineset/theirs-a", "machine/theirs-a-0", "machine/theirs-a-1")
	// It is scaled, rolled out, and deleted in parts; the neighbour makes another set, and a
	// Machine that it has not marked yet.
	u.kubectl("scale", "machinedeployment", "theirs", "--replicas=4")
	u.kubectl("patch", "machinedeployment", "theirs", "--type=merge", "-p", `{"spec":{"template":{"spec":{"versions":{"kubelet":"1.34.2"}}}}}`)
	n.makeMachine(n.makeSet("theirs-b", 2), "theirs-b-0")
	u.kubectl("scale", "machineset", "theirs-a", "--replicas=1")
	u.kubectl("delete", "machine", "theirs-a-1", "--wait=false")
	u.awaitLeftAlone("machineset/theirs-b", "machine/theirs-b-0", "machine/theirs-a-1")
	u.awaitQuiet(settling)
	u.checkOnlyConditions(since)
	n.checkUntouched(before, node)

	// The neighbour ends one; and this manager says at its start what it has found.
	n.letGo("theirs-a-1")
	restarted := time.Now()
	u.kill([]string{stack.Manager})
	u.revive([]string{stack.Manager})
	u.awaitNotice(restarted)
	u.awaitQuiet(settling)
	n.checkUntouched(before, node)
	if names := n.names(); !slices.Equal(names, []string{"theirs-a-0", "theirs-b-0"}) {
		t.Errorf("there are the Machines %v", names)
	}
	u.checkOnlyConditions(since)
}

func (u *user) names() []string {
	var names []string
	for _, m := range u.machines() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// checkUntouched fails the test unless all is as the neighbour made it.
func (n *neighbour) checkUntouched(vms int, node *corev1.Node) {
	n.t.Helper()
	if made := len(n.vmsEver()) - vms; made != 0 {
		n.t.Errorf("%d VMs were made", made)
	}
	for _, m := range n.machines() {
		if slices.Contains(m.Finalizers, clusterv1alpha1.MachineFinalizer) || m.Spec.MachineUID != nil || m.Status.LastOperation != nil {
			n.t.Errorf("%s has the finalizers %v, the uid %v and the operation %v", m.Name, m.Finalizers, m.Spec.MachineUID, m.Status.LastOperation)
		}
	}
	now := &corev1.Node{}
	if err := n.client.Get(n.t.Context(), client.ObjectKeyFromObject(node), now); err != nil || now.UID != node.UID ||
		len(now.Labels) != len(node.Labels) || len(now.Annotations) > len(node.Annotations)+2 || now.Spec.ProviderID != node.Spec.ProviderID {
		n.t.Errorf("the neighbour's Node is touched: %v, labels %v, annotations %v", err, now.Labels, now.Annotations)
	}
	sets := &clusterv1alpha1.MachineSetList{}
	if err := n.client.List(n.t.Context(), sets, client.InNamespace(n.namespace)); err != nil || len(sets.Items) != 2 {
		n.t.Errorf("there are %d sets: %v", len(sets.Items), err)
	}
}

// awaitNotice waits until a manager that began at that time has said that it sees another system's
// Machines.
func (u *user) awaitNotice(since time.Time) {
	u.t.Helper()
	eventually(u.t, "a notice of the other system", func(ctx context.Context) error {
		var events corev1.EventList
		if err := u.client.List(ctx, &events, client.InNamespace("millwright-system")); err != nil {
			return err
		}
		for _, e := range events.Items {
			at := e.EventTime.Time
			if e.Series != nil {
				at = e.Series.LastObservedTime.Time
			}
			if e.Reason == leftToAnother && strings.Contains(e.Message, "machine-controller") && strings.Contains(e.Message, "theirs-a-0") && at.After(since) {
				return nil
			}
		}
		return fmt.Errorf("%d Events, none of which says so", len(events.Items))
	})
}

// A machine that both systems work on is left alone, and goes on, or goes, once the other one has
// let go of it.
func TestSAFE8_AMachineOfTwoSystemsWaitsForTheOther(t *testing.T) {
	tier.Long(t, "it waits until nothing is written")
	t.Parallel()
	u := newUser(t)
	n := &neighbour{user: u}
	t.Cleanup(n.leave)
	u.apply(standalone("contested", ""))
	u.awaitRunning(1)
	u.kubectl("patch", "machine", "contested", "--type=merge", "-p",
		fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, clusterv1alpha1.MachineFinalizer, theirFinalizer))
	u.awaitLeftAlone("machine/contested")
	since := time.Now()
	u.kubectl("delete", "machine", "contested", "--wait=false")
	u.awaitQuiet(settling)
	u.checkOnlyConditions(since)
	if left := u.resources(t.Context()); left["vm"] != 1 {
		t.Errorf("the cloud holds %v", left)
	}
	n.letGo("contested")
	u.awaitGone()
}

// The same, not deleted: it is taken up again where it was.
func TestSAFE8_AMachineThatAnotherSystemLetsGoOfIsTakenUpAgain(t *testing.T) {
	tier.Long(t, "it waits for the other system, and to be taken up")
	t.Parallel()
	u := newSharingUser(t)
	n := &neighbour{user: u}
	t.Cleanup(n.leave)
	u.apply(deployment("returned", 1, nil))
	u.awaitRunning(1)
	name := u.machine().Name
	u.kubectl("patch", "machine", name, "--type=merge", "-p",
		fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, clusterv1alpha1.MachineFinalizer, theirFinalizer))
	u.awaitLeftAlone("machine/"+name, "machineset/"+u.machine().OwnerReferences[0].Name, "machinedeployment/returned")
	u.kubectl("scale", "machinedeployment", "returned", "--replicas=2")
	n.letGo(name)
	u.awaitRunning(2)
	u.checkOneVMEach()
	for _, m := range u.machines() {
		if meta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionPaused) != nil {
			t.Errorf("%s says%s", m.Name, words(m.Status.Conditions))
		}
	}
}
