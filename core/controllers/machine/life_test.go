package machine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// newMachine is a Machine as a MachineSet makes it.
func (b *bench) newMachine(name string, change ...func(*clusterv1alpha1.Machine)) *clusterv1alpha1.Machine {
	b.Helper()
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: b.namespace + "-" + name, Finalizers: []string{clusterv1alpha1.MachineFinalizer},
			Labels: map[string]string{"pool": "a", "role": "machine"},
		},
		Spec: clusterv1alpha1.MachineSpec{
			Metadata: clusterv1alpha1.ObjectMeta{
				Labels:      map[string]string{"role": "node", "node-role.kubernetes.io/worker": ""},
				Annotations: map[string]string{"note": "mine"},
			},
			Taints: []clusterv1alpha1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}},
			ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
				CloudProvider: provider, OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
				CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"size":"m"}`)},
			}},
			Versions:   clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
			MachineUID: new("uid-" + b.namespace + "-" + name),
		},
	}
	for _, c := range change {
		c(m)
	}
	b.check(server.user.Create(b.Context(), m))
	return m
}

// newNode is a Node as the machine's kubelet registers it.
func (b *bench) newNode(m *clusterv1alpha1.Machine, change ...func(*corev1.Node)) *corev1.Node {
	b.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{"kubelet": "yes"}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "up"}},
		},
	}
	for _, c := range change {
		c(n)
	}
	b.check(server.user.Create(b.Context(), n))
	b.Cleanup(func() { _ = server.user.Delete(context.Background(), n) }) // The test's own context has ended by then.
	return n
}

// awaitMachine waits until the Machine is as it should be, and returns it.
func (b *bench) awaitMachine(m *clusterv1alpha1.Machine, what string, is func(*clusterv1alpha1.Machine) bool) *clusterv1alpha1.Machine {
	b.Helper()
	now := &clusterv1alpha1.Machine{}
	b.await(what, func() (bool, any) {
		b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(m), now))
		return is(now), now.Status
	})
	return now
}

func (b *bench) awaitPhase(m *clusterv1alpha1.Machine, phase clusterv1alpha1.MachinePhase) *clusterv1alpha1.Machine {
	b.Helper()
	return b.awaitMachine(m, "phase "+string(phase), func(m *clusterv1alpha1.Machine) bool { return m.Status.Phase == phase })
}

// awaitReason waits until a condition has a reason.
func (b *bench) awaitReason(m *clusterv1alpha1.Machine, typ, reason string) metav1.Condition {
	b.Helper()
	m = b.awaitMachine(m, typ+" "+reason, func(m *clusterv1alpha1.Machine) bool {
		c := apimeta.FindStatusCondition(m.Status.Conditions, typ)
		return c != nil && c.Reason == reason
	})
	return *apimeta.FindStatusCondition(m.Status.Conditions, typ)
}

func (b *bench) awaitGone(o client.Object) {
	b.Helper()
	b.await("the end of "+o.GetName(), func() (bool, any) {
		err := server.user.Get(b.Context(), client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), o
	})
}

func (b *bench) remove(o client.Object) {
	b.Helper()
	b.check(server.user.Delete(b.Context(), o))
}

// TestAMachinesLifeCostsFewWrites: a machine from its birth to its end, with everything that a user
// sees of it, in as many writes as it may cost.
func TestAMachinesLifeCostsFewWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cloud.slow = true
	b.serve()
	b.startCore()
	m := b.newMachine("a")

	m = b.awaitMachine(m, "a providerID", func(m *clusterv1alpha1.Machine) bool { return m.Spec.ProviderID != nil })
	if m.Status.Phase != clusterv1alpha1.MachinePhaseProvisioning || m.Status.NodeRef != nil {
		t.Errorf("phase %s, nodeRef %v while the VM boots", m.Status.Phase, m.Status.NodeRef)
	}
	b.cloud.boot()
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	b.awaitReason(m, clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonWaitingForNode)
	node := b.newNode(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	b.isRunning(m, node)
	if w := b.writes.take(); len(w) > 7 {
		t.Errorf("%d writes besides the birth until Running:\n%s", len(w), strings.Join(w, "\n"))
	}

	b.remove(m)
	b.awaitGone(m)
	b.awaitGone(node)
	if creates, vms := b.cloud.count(); creates != 1 || vms != 0 {
		t.Errorf("%d creates, %d VMs left", creates, vms)
	}
	if w := b.writes.take(); len(w) > 4 {
		t.Errorf("%d writes besides the order to delete it:\n%s", len(w), strings.Join(w, "\n"))
	}
	b.await("three events", func() (bool, any) {
		reasons := b.events(m)
		return slices.Equal(reasons, []string{"Created", "Deleted", "Running"}), reasons
	})
}

// isRunning checks what a Running machine and its Node look like.
func (b *bench) isRunning(m *clusterv1alpha1.Machine, node *corev1.Node) {
	b.Helper()
	b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(node), node))
	if m.Status.NodeRef == nil || m.Status.NodeRef.Name != node.Name || m.Status.NodeRef.UID != node.UID {
		b.Errorf("nodeRef is %+v", m.Status.NodeRef)
	}
	if *m.Spec.ProviderID != node.Spec.ProviderID {
		b.Errorf("providerID %q of the Machine, %q of its Node", *m.Spec.ProviderID, node.Spec.ProviderID)
	}
	wantLabels := map[string]string{"pool": "a", "role": "node", "node-role.kubernetes.io/worker": "", "kubelet": "yes"}
	if diff := cmp.Diff(wantLabels, node.Labels); diff != "" {
		b.Errorf("labels of the Node: %s", diff)
	}
	if node.Annotations[clusterv1alpha1.NodeMachineAnnotation] != m.Namespace+"/"+m.Name || node.Annotations["note"] != "mine" {
		b.Errorf("annotations of the Node: %v", node.Annotations)
	}
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "dedicated" && t.Value == "x" }) {
		b.Errorf("taints of the Node: %v", node.Spec.Taints)
	}
	for _, c := range []string{clusterv1alpha1.ConditionReady, clusterv1alpha1.ConditionBootstrapReady,
		clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ConditionNodeReady} {
		if !apimeta.IsStatusConditionTrue(m.Status.Conditions, c) {
			b.Errorf("%s is not True: %+v", c, m.Status.Conditions)
		}
	}
	if m.Status.ObservedGeneration != m.Generation || len(m.Status.Addresses) != 1 {
		b.Errorf("observedGeneration %d of %d, addresses %v", m.Status.ObservedGeneration, m.Generation, m.Status.Addresses)
	}
}

// events are the reasons of the Machine's events, sorted.
func (b *bench) events(m *clusterv1alpha1.Machine) []string {
	b.Helper()
	var list eventsv1.EventList
	b.check(server.user.List(b.Context(), &list, client.InNamespace(b.namespace)))
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Name == m.Name {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// TestStandalone: a Machine that nobody but a user made gets its finalizer and uid here.
func TestStandalone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve()
	b.startCore()
	m := b.newMachine("a", func(m *clusterv1alpha1.Machine) { m.Finalizers, m.Spec.MachineUID = nil, nil })
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseProvisioned)
	if !slices.Contains(m.Finalizers, clusterv1alpha1.MachineFinalizer) || m.Spec.MachineUID == nil {
		t.Errorf("finalizers %v, machineUID %v", m.Finalizers, m.Spec.MachineUID)
	}
	b.remove(m)
	b.awaitGone(m)
}
