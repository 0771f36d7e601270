package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// resident is a pod on a Node.
func resident(name, node string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: resident}}
spec:
  nodeName: %s
  containers: [{name: app, image: app}]
---
`, name, node)
}

// 200 drains that a PodDisruptionBudget blocks, for as long as it takes, hold up no machine that is
// made meanwhile. The test tells how long machines took without them and beside them.
func TestLIFE10_ManyDrainsDelayNoCreate(t *testing.T) {
	tier.Long(t, "240 machines take minutes")
	t.Parallel()
	const drains, fresh = 200, 20
	u := newUser(t)
	u.apply(deployment("blocked", drains, nil))
	u.awaitRunning(drains)
	var pods strings.Builder
	for _, m := range u.machines() {
		pods.WriteString(resident("on-"+m.Name, m.Status.NodeRef.Name))
	}
	u.apply(pods.String())
	u.apply(fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: resident}\n"+
		"spec: {minAvailable: %d, selector: {matchLabels: {app: resident}}}\n", drains))
	u.kubectl("wait", "pods", "--selector=app=resident", "--for=condition=Ready", "--timeout=60s")

	alone := u.timeOf("alone", fresh)
	u.kubectl("delete", "machines", "--selector=pool=blocked", "--wait=false")
	u.kubectl("delete", "machinedeployment", "blocked", "--wait=false")
	u.awaitBlocked(drains)
	beside := u.timeOf("beside", fresh)
	t.Logf("%d machines are Running after %s, beside %d drains after %s", fresh, alone.Round(time.Millisecond), drains, beside.Round(time.Millisecond))
	u.awaitBlocked(drains)
	u.kubectl("delete", "poddisruptionbudget", "resident")
	u.awaitGone()
	u.kubectl("delete", "pods", "--all", "--wait=false")
}

// timeOf is how long n machines of a new deployment take to be Running. They are gone afterwards.
func (u *user) timeOf(name string, n int) time.Duration {
	u.t.Helper()
	began := time.Now()
	u.apply(deployment(name, n, nil))
	eventually(u.t, fmt.Sprintf("%d machines of %s to be Running", n, name), func(context.Context) error {
		if running := u.count(name, clusterv1alpha1.MachinePhaseRunning); running != n {
			return fmt.Errorf("%d are", running)
		}
		return nil
	})
	took := time.Since(began)
	u.kubectl("delete", "machinedeployment", name, "--wait=false")
	eventually(u.t, name+" to be gone", func(context.Context) error {
		if left := u.count(name, ""); left > 0 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	})
	return took
}

// count counts a pool's machines in a phase, or in any.
func (u *user) count(pool string, phase clusterv1alpha1.MachinePhase) int {
	u.t.Helper()
	n := 0
	for _, m := range u.machines() {
		if m.Labels["pool"] == pool && (phase == "" || m.Status.Phase == phase) {
			n++
		}
	}
	return n
}

// awaitBlocked waits until that many machines say that a budget blocks their drain.
func (u *user) awaitBlocked(n int) {
	u.t.Helper()
	eventually(u.t, fmt.Sprintf("%d drains to be blocked", n), func(context.Context) error {
		blocked := 0
		for _, m := range u.machines() {
			if strings.Contains(words(m.Status.Conditions), clusterv1alpha1.ReasonBlockedByPodDisruptionBudget) {
				blocked++
			}
		}
		if blocked != n {
			return fmt.Errorf("%d are", blocked)
		}
		return nil
	})
}
