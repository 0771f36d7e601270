package machine

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// comesWith is a Machine that somebody made with a providerID.
func comesWith(id string) func(*clusterv1alpha1.Machine) {
	return func(m *clusterv1alpha1.Machine) { m.Spec.ProviderID = &id }
}

// node reads a Node.
func (b *bench) node(n *corev1.Node) *corev1.Node {
	b.Helper()
	now := &corev1.Node{}
	b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(n), now))
	return now
}

// hold puts a VM into the cloud, as one that an earlier Machine of that uid has left.
func (b *bench) hold(m *clusterv1alpha1.Machine, id string, aliases ...string) {
	b.cloud.change(func() {
		uid := *m.Spec.MachineUID
		b.cloud.vms[uid] = &driverv1alpha1.Machine{
			Ref:        &driverv1alpha1.MachineRef{Namespace: m.Namespace, Name: m.Name, Uid: uid},
			ClusterUid: "cluster", ProviderId: id, ProviderIdAliases: aliases,
			State: driverv1alpha1.MachineState_MACHINE_STATE_RUNNING,
		}
	})
}

// TestForeignProviderID: somebody makes a Machine with the providerID of a Node which is none
// of ours. That Machine never touches the Node, and is no reason to make a VM.
func TestForeignProviderID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	id := idPrefix + b.namespace + "-control-plane"
	node := b.newNode(&clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-control-plane"}},
		func(n *corev1.Node) { n.Spec.ProviderID = id })
	before := b.node(node)
	b.startCore()
	m := b.newMachine("foreign", comesWith(id))
	c := b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonNotAdopted)
	if c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	b.check(server.user.Delete(t.Context(), m))
	b.awaitGone(m)
	if after := b.node(node); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Node was changed: %+v", after)
	}
	if creates, vms := b.cloud.count(); creates != 0 || vms != 0 {
		t.Errorf("%d creates, %d VMs", creates, vms)
	}
}

// TestRestoredMachine: a Machine that has lost its status is confirmed by its driver, keeps its VM
// and its Node, and goes like any other.
func TestRestoredMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	id := idPrefix + b.namespace + "-restored"
	m := b.newMachine("restored", comesWith(id))
	b.hold(m, id)
	node := b.newNode(m, func(n *corev1.Node) { n.Spec.ProviderID = id })
	b.startCore()
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	if m.Status.ProviderID != id {
		t.Errorf("status.providerID is %q", m.Status.ProviderID)
	}
	b.check(server.user.Delete(t.Context(), m))
	b.awaitGone(m)
	b.awaitGone(node)
	if creates, vms := b.cloud.count(); creates != 0 || vms != 0 {
		t.Errorf("%d creates, %d VMs", creates, vms)
	}
}

// TestDeletingUnconfirmed: while the driver cannot say what a deleted Machine has, the Machine
// stays. What carries its uid goes with it then. A Node that has nothing to do with that stays.
func TestDeletingUnconfirmed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := idPrefix + b.namespace + "-elsewhere"
	node := b.newNode(&clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-elsewhere"}},
		func(n *corev1.Node) { n.Spec.ProviderID = id })
	m := b.newMachine("going", comesWith(id))
	b.hold(m, idPrefix+"its-own")
	b.startCore()
	b.check(server.user.Delete(t.Context(), m))
	b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonNotAdopted)
	b.serve()
	b.awaitGone(m)
	if _, vms := b.cloud.count(); vms != 0 {
		t.Errorf("%d VMs are left", vms)
	}
	b.node(node)
}

// TestObservedIDDiffers: a driver that names another VM than it did is shown, and nothing is done
// to the Node.
func TestObservedIDDiffers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.newMachine("renamed")
	b.awaitMachine(m, "a providerID", func(m *clusterv1alpha1.Machine) bool { return m.Spec.ProviderID != nil })
	node := b.newNode(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.hold(m, idPrefix+"another")
	b.awaitReason(m, clusterv1alpha1.ConditionReady, clusterv1alpha1.ReasonProviderIDConflict)
	before := b.node(node)
	change := m.DeepCopy()
	change.Labels["pool"] = "b"
	b.check(server.user.Patch(t.Context(), change, client.MergeFrom(m)))
	b.check(server.user.Delete(t.Context(), m))
	b.awaitGone(m)
	if after := b.node(node); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Node was changed: %+v", after)
	}
}

// TestAliasIsTakenOver: a Node with another id of the VM is the Machine's, whose providerID becomes
// the Node's; the driver is told its own.
func TestAliasIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	id := idPrefix + b.namespace + "-aliased"
	alias := "sawmill://region/" + b.namespace
	m := b.newMachine("aliased")
	b.hold(m, id, alias)
	b.startCore()
	b.awaitMachine(m, "its aliases", func(m *clusterv1alpha1.Machine) bool { return len(m.Status.ProviderIDAliases) > 0 })
	// Under a name that tells nothing.
	node := b.newNode(&clusterv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-x"}},
		func(n *corev1.Node) { n.Spec.ProviderID = alias })
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	if *m.Spec.ProviderID != alias || m.Status.ProviderID != id || m.Status.NodeRef.Name != node.Name {
		t.Errorf("spec %s, status %+v", *m.Spec.ProviderID, m.Status)
	}
	b.check(server.user.Delete(t.Context(), m))
	b.awaitGone(m)
	b.awaitGone(node)
	for _, told := range b.cloud.providerIDsTold() {
		if told != "" && told != id {
			t.Errorf("the driver was told %s", told)
		}
	}
}

// TestTheFormOfIDsIsSwitched: the driver is started anew and writes another form of its ids first.
// Nothing is replaced, and the Machine keeps the form of its Node.
func TestTheFormOfIDsIsSwitched(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	id, alias := idPrefix+b.namespace+"-plain", idPrefix+b.namespace+"-regional"
	m := b.newMachine("switched")
	b.hold(m, id, alias)
	b.startCore()
	m = b.awaitMachine(m, "a providerID", func(m *clusterv1alpha1.Machine) bool { return m.Spec.ProviderID != nil })
	node := b.newNode(m)
	b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.hold(m, alias, id)
	// What else the driver says of the VM is taken in.
	b.cloud.change(func() { b.cloud.vms[*m.Spec.MachineUID].State = driverv1alpha1.MachineState_MACHINE_STATE_STOPPED })
	b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceStopped)
	b.hold(m, alias, id)
	b.awaitReason(m, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonInstanceRunning)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	if m.Status.Phase != clusterv1alpha1.MachinePhaseRunning || *m.Spec.ProviderID != id || m.Status.NodeRef.Name != node.Name {
		t.Errorf("spec %s, status %+v", *m.Spec.ProviderID, m.Status)
	}
	if creates, vms := b.cloud.count(); creates != 1 || vms != 1 { // the first create found the VM
		t.Errorf("%d creates, %d VMs", creates, vms)
	}
	b.remove(m)
	b.awaitGone(m)
}

// TestOneUIDTwice: of two Machines with one machineUID the first keeps it, and the other goes
// without a call.
func TestOneUIDTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	first := b.newMachine("first")
	first = b.awaitMachine(first, "a providerID", func(m *clusterv1alpha1.Machine) bool { return m.Spec.ProviderID != nil })
	node := b.newNode(first)
	b.awaitPhase(first, clusterv1alpha1.MachinePhaseRunning)
	second := b.newMachine("second", func(m *clusterv1alpha1.Machine) {
		m.Spec.MachineUID, m.Spec.ProviderID = first.Spec.MachineUID, first.Spec.ProviderID
	})
	b.awaitReason(second, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ReasonMachineUIDTaken)
	b.check(server.user.Delete(t.Context(), second))
	b.awaitGone(second)
	b.cloud.change(func() {
		if b.cloud.deletes != 0 || len(b.cloud.creates) != 1 || len(b.cloud.vms) != 1 {
			t.Errorf("%d deletes, %d creates, %d VMs", b.cloud.deletes, len(b.cloud.creates), len(b.cloud.vms))
		}
	})
	if now := b.node(node); now.Spec.Unschedulable {
		t.Error("the first one's Node is cordoned")
	}
}

// TestHadUIDBefore: which of two Machines keeps a machineUID.
func TestHadUIDBefore(t *testing.T) {
	now := metav1.Now()
	type change = func(*clusterv1alpha1.Machine)
	hasBegun := func(m *clusterv1alpha1.Machine) { m.Status.ProviderID = "x" }
	isDenied := func(m *clusterv1alpha1.Machine) {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonNotAdopted}}
	}
	old := func(m *clusterv1alpha1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) }
	for name, c := range map[string]struct {
		other, one []change
		want       bool
	}{
		"an older one":                           {other: []change{old}, want: true},
		"a younger one":                          {one: []change{old}},
		"the same age":                           {want: true},
		"a younger one that core has begun with": {other: []change{hasBegun}, one: []change{old}, want: true},
		"an older one, of one that core has begun with": {other: []change{old}, one: []change{hasBegun}},
		"both begun": {other: []change{old, hasBegun}, one: []change{hasBegun}},
		"an older one that the driver does not confirm":    {other: []change{old, isDenied}},
		"an older one, of one that is not confirmed":       {other: []change{old}, one: []change{isDenied}, want: true},
		"a younger one, of an older that is not confirmed": {one: []change{old, isDenied}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			made := func(uid string, changes []change) *clusterv1alpha1.Machine {
				m := &clusterv1alpha1.Machine{}
				m.UID, m.CreationTimestamp = "b", now
				if uid != "" {
					m.UID = "a"
				}
				for _, change := range changes {
					change(m)
				}
				return m
			}
			if got := hadUIDBefore(made("a", c.other), made("", c.one)); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// providerIDsTold returns the ids that calls named.
func (c *cloud) providerIDsTold() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.named))
}
