package simkubelet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deploy makes a Deployment whose pods run on Nodes with the label pool=NAME only, one on each
// while there is room.
func deploy(t *testing.T, name string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector:   map[string]string{"pool": name},
					InitContainers: []corev1.Container{{Name: "init", Image: "example.com/init"}},
					Containers:     []corev1.Container{{Name: "main", Image: "example.com/main"}},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
				},
			},
		},
	}
	deployments := admin(t).AppsV1().Deployments("default")
	if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // The fleet still runs, so that pods go.
		ctx := context.WithoutCancel(t.Context())
		if err := deployments.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		eventually(t, "the pods go", func() error {
			pods, err := admin(t).CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
			if err == nil && len(pods.Items) > 0 {
				return fmt.Errorf("%d pods", len(pods.Items))
			}
			return err
		})
	})
}

// waitForPods waits until exactly that many pods of a Deployment exist, all of them Ready, and
// returns them.
func waitForPods(t *testing.T, name string, count int) []corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	eventually(t, "pods of "+name, func() error {
		var err error
		pods, err = admin(t).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		ready := 0
		for i := range pods.Items {
			if podReady(&pods.Items[i]) {
				ready++
			}
		}
		if ready != count || len(pods.Items) != count {
			return fmt.Errorf("%d pods, %d ready, want %d", len(pods.Items), ready, count)
		}
		return nil
	})
	return pods.Items
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func evict(t *testing.T, pod *corev1.Pod) error {
	t.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
	return admin(t).PolicyV1().Evictions(pod.Namespace).Evict(t.Context(), eviction)
}

// podLease is short enough for Nodes with pods to stay Ready in a cluster of that NodeGracePeriod,
// however long a test takes: a pod whose Node is lost for a moment is not Ready meanwhile.
const podLease = 4 * time.Second

func TestPodsRunAreEvictedAndComeUpElsewhere(t *testing.T) {
	t.Parallel()
	c := newCloud()
	runFleet(t, c, podLease)
	for _, name := range []string{"evict-1", "evict-2"} {
		c.set(name, running, userData("--hostname-override="+name+" --node-labels=pool=evict"))
		waitForNode(t, name, corev1.ConditionTrue, true)
	}
	created := time.Now()
	deploy(t, "evict", 2)
	pods := waitForPods(t, "evict", 2)
	t.Logf("pods were Ready %s after their Deployment was created", time.Since(created).Round(time.Millisecond))
	if pods[0].Status.PodIP == "" || pods[0].Status.HostIP != "192.0.2.1" {
		t.Errorf("pod IP %q, host IP %q", pods[0].Status.PodIP, pods[0].Status.HostIP)
	}
	setBudget(t, 2)
	if err := evict(t, &pods[0]); !apierrors.IsTooManyRequests(err) {
		t.Fatalf("an eviction that breaks the budget: %v, want 429", err)
	}
	cordon := []byte(`{"spec":{"unschedulable":true}}`)
	if _, err := admin(t).CoreV1().Nodes().Patch(t.Context(), pods[0].Spec.NodeName, types.MergePatchType, cordon, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	setBudget(t, 1)
	if err := evict(t, &pods[0]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod goes and another one comes up elsewhere", func() error {
		for _, pod := range waitForPods(t, "evict", 2) {
			// The scheduler may have put both on the first Node that it knew.
			if pod.UID != pods[1].UID && pod.Spec.NodeName == pods[0].Spec.NodeName {
				return fmt.Errorf("%s is still on %s", pod.Name, pod.Spec.NodeName)
			}
		}
		return nil
	})
}

// setBudget keeps that many pods of the Deployment evict available, and returns when the budget is
// in force.
func setBudget(t *testing.T, minAvailable int) {
	t.Helper()
	budgets := admin(t).PolicyV1().PodDisruptionBudgets("default")
	value := intstr.FromInt(minAvailable)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "evict", Namespace: "default"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &value, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "evict"}}},
	}
	if err := budgets.Delete(t.Context(), "evict", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if _, err := budgets.Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the budget is in force", func() error {
		b, err := budgets.Get(t.Context(), "evict", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if b.Status.CurrentHealthy != 2 || int(b.Status.DesiredHealthy) != minAvailable {
			return fmt.Errorf("status %+v", b.Status)
		}
		return nil
	})
}

func TestPodsOfAStoppedVMStayAsTheyAre(t *testing.T) {
	t.Parallel()
	c := newCloud()
	runFleet(t, c, podLease)
	c.set("still", running, userData("--hostname-override=still --node-labels=pool=still"))
	waitForNode(t, "still", corev1.ConditionTrue, true)
	deploy(t, "still", 1)
	pod := waitForPods(t, "still", 1)[0]

	c.set("still", stopped, "")
	waitForNode(t, "still", corev1.ConditionFalse, false)
	eventually(t, "the pod is declared not Ready", func() error {
		p, err := admin(t).CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if podReady(p) {
			return errors.New("it is Ready")
		}
		return nil
	})
	if err := evict(t, &pod); err != nil {
		t.Fatal(err)
	}
	p, err := admin(t).CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || p.DeletionTimestamp == nil {
		t.Fatalf("an evicted pod on a dead machine: %v, want it to stay terminating", err)
	}
	c.set("still", running, "")
	eventually(t, "the pod goes when the VM is back", func() error {
		if next := waitForPods(t, "still", 1)[0]; next.UID == pod.UID {
			return errors.New("it is there")
		}
		return nil
	})
}
