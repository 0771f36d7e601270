package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/localcluster/supervisor"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

const (
	// apiServerAway is how long the API server is stopped; others are silent for nodesSilent after
	// it.
	apiServerAway, nodesSilent = 40 * time.Second, 15 * time.Second
	// unreachableAfter is less than either.
	unreachableAfter = 10 * time.Second
	// grace is what pods get, and take: more than both together.
	grace = 85 * time.Second
)

// newWatchfulUser returns a user of a stack of its own, in which Nodes are called silent, and
// unreachable, within seconds.
func newWatchfulUser(t *testing.T) *user {
	t.Helper()
	takeTurn(t)
	dir, err := os.MkdirTemp("", "mw-out-")
	if err != nil {
		t.Fatal(err)
	}
	options := stackOptions(dir)
	options.CloudArgs = nil
	options.NodeGracePeriod = 6 * time.Second
	options.KubeletArgs = []string{"--lease-duration=4s"}
	options.ManagerArgs = []string{"-v=4", "--settle-period=1s", "--node-unreachable-after=" + unreachableAfter.String()}
	options.Ended = func(end *supervisor.ExitError) { t.Log("ended by itself:", end.Process, end.State) }
	f, err := newFixture(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.end(0) != 0 {
			t.Error("the stack did not end well")
		}
	})
	return newUserOf(t, f)
}

// lasting renders a Deployment of pods that take all of their grace to end, one on each Node, and
// its PodDisruptionBudget.
func lasting(name string, replicas, minAvailable int, grace time.Duration) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: {%[5]s: ""}
    spec:
      terminationGracePeriodSeconds: %[4]d
      containers: [{name: app, image: app}]
      topologySpreadConstraints:
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: DoNotSchedule
        nodeTaintsPolicy: Honor
        labelSelector: {matchLabels: {app: %[1]s}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s}
spec:
  minAvailable: %[3]d
  selector: {matchLabels: {app: %[1]s}}
`, name, replicas, minAvailable, int(grace.Seconds()), localcluster.UsesGraceAnnotation)
}

// The API server is stopped for 40 s under 20 drains, and kubelets are silent for a while after
// it: no pod is killed in its grace, no budget broken, and all drains end afterwards.
func TestSAFE3_APIServerAwayWhileDraining(t *testing.T) {
	tier.Long(t, "it takes four minutes")
	t.Parallel()
	const drains = 20
	u := newWatchfulUser(t)
	story := u.followPods()
	u.apply(deployment("old", drains, nil))
	u.awaitRunning(drains)
	u.apply(lasting("app", drains, drains*3/4, grace))
	u.apply(lasting("tight", 2, 2, 5*time.Second))
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	u.kubectl("rollout", "status", "deployment/tight", "--timeout=60s")
	story.allUp("app", drains)
	story.allUp("tight", 2)
	u.apply(deployment("new", 4, nil))
	u.awaitRunning(drains + 4)

	u.kubectl("delete", "machinedeployment", "old", "--wait=false")
	eventually(t, "a pod that is terminating on each Node", func(ctx context.Context) error {
		if n := len(u.terminatingOn(ctx)); n != drains {
			return fmt.Errorf("there are some on %d Nodes", n)
		}
		return nil
	})
	u.signal(localcluster.APIServer, syscall.SIGSTOP)
	u.keepsVMs("while the API server is away", drains+4, time.Now().Add(apiServerAway))
	u.signal(stack.Kubelets, syscall.SIGSTOP)
	u.signal(localcluster.APIServer, syscall.SIGCONT)
	u.awaitSilentNodes(drains + 4)
	u.keepsVMs("while no Node reports", drains+4, time.Now().Add(nodesSilent))
	u.signal(stack.Kubelets, syscall.SIGCONT)
	u.awaitSilentNodes(0)
	u.kubectl("patch", "poddisruptionbudget", "tight", "--type=merge", "--patch", `{"spec":{"minAvailable":1}}`)
	u.awaitDrained(drains, 3*grace)
	story.judge(u, map[string]int{"app": drains * 3 / 4, "tight": 1})
	u.kubectl("delete", "deployment,poddisruptionbudget", "--all")
}

// A Node whose kubelet is gone, while those of others report, holds its machine only for a while.
func TestLIFE10_UnreachableNode(t *testing.T) {
	tier.Long(t, "it waits for most of three minutes")
	t.Parallel()
	u := newWatchfulUser(t)
	u.apply(deployment("mixed", 3, nil))
	u.awaitRunning(3)
	u.apply(lasting("app", 3, 1, grace))
	u.kubectl("rollout", "status", "deployment/app", "--timeout=60s")
	dead := u.machines()[0]
	u.change(*dead.Spec.ProviderID, backendv1alpha1.VMChange_VM_CHANGE_STOP)
	u.awaitSilentNodes(1)
	u.kubectl("delete", "machine", dead.Name, "--wait=false")
	began := time.Now()
	eventually(t, "the drain to say that the Node does not report", func(context.Context) error {
		m, found := u.find(dead.Name)
		if !found {
			return errors.New("the machine is gone")
		}
		if text := words(m.Status.Conditions); !strings.Contains(text, "Its kubelet does not report") {
			return errors.New(text)
		}
		return nil
	})
	u.kubectl("wait", "machine/"+dead.Name, "--for=delete", "--timeout=60s")
	if took := time.Since(began); took < unreachableAfter || took >= grace {
		t.Errorf("the machine went after %s, want between %s and %s", took, unreachableAfter, grace)
	}
	u.awaitRunning(3)
	u.kubectl("delete", "deployment,poddisruptionbudget", "--all")
}

// signal sends a signal to one of the stack's processes. One that is stopped goes on at the test's
// end.
func (u *user) signal(process string, sig syscall.Signal) {
	u.t.Helper()
	if sig == syscall.SIGSTOP {
		u.t.Cleanup(func() { _ = u.Process(process).Signal(syscall.SIGCONT) })
	}
	if err := u.Process(process).Signal(sig); err != nil {
		u.t.Fatal(err)
	}
}

// keepsVMs looks at the cloud until then, and ends the test when a VM goes.
func (u *user) keepsVMs(when string, want int, until time.Time) {
	u.t.Helper()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for now := range tick.C {
		if got := u.resources(u.t.Context())["vm"]; got != want {
			u.t.Fatalf("%s there are %d VMs, want %d", when, got, want)
		}
		if now.After(until) {
			return
		}
	}
}

// terminatingOn counts the user's pods that are terminating, by Node.
func (u *user) terminatingOn(ctx context.Context) map[string]int {
	u.t.Helper()
	on := map[string]int{}
	for _, pod := range u.pods(ctx) {
		if pod.DeletionTimestamp != nil {
			on[pod.Spec.NodeName]++
		}
	}
	return on
}

// awaitSilentNodes waits until node-lifecycle calls n Nodes silent.
func (u *user) awaitSilentNodes(n int) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("%d silent Nodes", n), func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := u.workload.List(ctx, &nodes); err != nil {
			return err
		}
		silent := 0
		for i := range nodes.Items {
			for _, c := range nodes.Items[i].Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
					silent++
				}
			}
		}
		if silent != n {
			return fmt.Errorf("%d of %d Nodes are silent", silent, len(nodes.Items))
		}
		return nil
	})
}

// awaitDrained waits until the machines of the pool old are gone, within a limit.
func (u *user) awaitDrained(n int, limit time.Duration) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var left []string
		for _, m := range u.machines() {
			if m.Labels["pool"] == "old" {
				left = append(left, m.Name)
			}
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			u.t.Fatalf("of %d drains these do not end within %s: %s", n, limit, strings.Join(left, " "))
		}
	}
}

// drainedReason is the reason of the condition Drained that a Machine shows.
func drainedReason(m *clusterv1alpha1.Machine) string {
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1alpha1.ConditionDrained {
			return c.Reason
		}
	}
	return ""
}

// ended says whether a pod that is gone had all of its grace, up to the second that its
// deletionTimestamp is rounded to.
func ended(pod *corev1.Pod, at time.Time) bool {
	return pod.DeletionTimestamp != nil && !at.Before(metav1.Time.Add(*pod.DeletionTimestamp, -time.Second))
}
