package machine

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// newPod is a pod that runs on the machine's Node.
func (b *bench) newPod(m *clusterv1alpha1.Machine, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName: m.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: new(int64(600)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	b.check(server.user.Create(b.Context(), pod))
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	b.check(server.user.Status().Update(b.Context(), pod))
	return pod
}

// allow sets how many disruptions a budget allows, as its controller would.
func (b *bench) allow(budget *policyv1.PodDisruptionBudget, n int32) {
	b.Helper()
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: n, CurrentHealthy: 1 + n, DesiredHealthy: 1, ExpectedPods: 1,
	}
	b.check(server.user.Status().Update(b.Context(), budget))
}

// runningWithPod is a Running machine whose Node has a pod under a budget that allows nothing.
func (b *bench) runningWithPod(change ...func(*clusterv1alpha1.Machine)) (*clusterv1alpha1.Machine, *corev1.Pod, *policyv1.PodDisruptionBudget) {
	b.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "default"}}
	if err := server.user.Create(b.Context(), sa); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
	b.serve()
	b.startCore()
	m := b.awaitPhase(b.newMachine("a", change...), clusterv1alpha1.MachinePhaseProvisioned)
	b.newNode(m)
	m = b.awaitPhase(m, clusterv1alpha1.MachinePhaseRunning)
	pod := b.newPod(m, "web-1")
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "keep-web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	b.check(server.user.Create(b.Context(), budget))
	b.allow(budget, 0)
	return m, pod, budget
}

// TestABudgetHoldsTheVM: a budget holds the VM; when it gives way the pod is evicted, and only when
// the pod has ended does the VM go.
func TestABudgetHoldsTheVM(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, pod, budget := b.runningWithPod()
	b.remove(m)
	c := b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget)
	want := "pod " + b.namespace + "/web-1: The disruption budget keep-web needs 1 healthy pods and has 1 currently. " +
		"PodDisruptionBudget keep-web wants 1 of its 1 pods to be healthy, so it never allows an eviction: let it be content with fewer, or run more."
	if c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	b.check(server.user.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
	b.allow(budget, 1)
	b.await("the eviction", func() (bool, any) {
		b.check(server.user.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		return !pod.DeletionTimestamp.IsZero(), pod.Status
	})
	b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonDraining)
	if _, vms := b.cloud.count(); vms != 1 {
		t.Error("the VM went before the pod had ended")
	}
	b.check(server.user.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	b.awaitGone(m)
	if _, vms := b.cloud.count(); vms != 0 {
		t.Errorf("%d VMs left", vms)
	}
}

// TestDrainTimeout: when the time for a drain is over the VM goes all the same.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, pod, _ := b.runningWithPod(func(m *clusterv1alpha1.Machine) {
		m.Spec.NodeDrainTimeout = &metav1.Duration{Duration: 3 * time.Second}
	})
	b.remove(m)
	b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget)
	b.awaitGone(m)
	if _, vms := b.cloud.count(); vms != 0 {
		t.Errorf("%d VMs left", vms)
	}
	b.check(server.user.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
}

// TestSeveralBudgets: a pod with several budgets is not evicted, and the API server's words say
// why.
func TestSeveralBudgets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, pod, budget := b.runningWithPod()
	other := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "keep-web-too"}, Spec: *budget.Spec.DeepCopy(),
	}
	b.check(server.user.Create(t.Context(), other))
	b.remove(m)
	c := b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonBlockedByPodDisruptionBudget)
	if !strings.Contains(c.Message, "more than one PodDisruptionBudget") || !strings.Contains(c.Message, "are keep-web, keep-web-too:") {
		t.Errorf("message %q", c.Message)
	}
	b.check(server.user.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	b.awaitGone(m)
}

// ready sets the condition Ready of the machine's Node.
func (b *bench) ready(m *clusterv1alpha1.Machine, status corev1.ConditionStatus) {
	b.Helper()
	node := &corev1.Node{}
	b.check(server.user.Get(b.Context(), client.ObjectKey{Name: m.Name}, node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: "Test", Message: "test"}}
	b.check(server.user.Status().Update(b.Context(), node))
}

// TestSAFE3_SilentNodeIsWaitedFor: that node-lifecycle calls a Node Unknown ends no drain.
func TestSAFE3_SilentNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m, pod, budget := b.runningWithPod()
	b.renewLease(m.Name, time.Now())
	b.ready(m, corev1.ConditionUnknown)
	b.check(server.user.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
	b.allow(budget, 1)
	b.remove(m)
	b.await("the drain to say that the kubelet does not report", func() (bool, any) {
		c := b.awaitReason(m, clusterv1alpha1.ConditionDrained, clusterv1alpha1.ReasonDraining)
		return strings.Contains(c.Message, "Its kubelet does not report."), c.Message
	})
	if _, vms := b.cloud.count(); vms != 1 {
		t.Error("the VM went before the pod had ended")
	}
	b.check(server.user.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	b.awaitGone(m)
}

// renewLease has a Node's kubelet renew its Lease, which lasts for 40 s.
func (b *bench) renewLease(node string, at time.Time) {
	b.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
	if err := server.user.Create(b.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	lease.Spec.LeaseDurationSeconds = new(int32(40))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: at}
	err := server.user.Create(b.Context(), lease)
	if apierrors.IsAlreadyExists(err) {
		b.check(server.user.Get(b.Context(), client.ObjectKeyFromObject(lease), lease))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: at}
		err = server.user.Update(b.Context(), lease)
	}
	b.check(err)
}
