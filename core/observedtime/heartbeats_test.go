package observedtime

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// TestASilentNodeCountsWhereOthersReport: a silent Node is taken at its word only where at least
// half of the others report.
func TestASilentNodeCountsWhereOthersReport(t *testing.T) {
	const reports, notReady, silent, never = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown, corev1.ConditionStatus("")
	for name, c := range map[string]struct {
		nodes []corev1.ConditionStatus
		names int
		most  bool
	}{
		"the only Node":                    {nodes: []corev1.ConditionStatus{silent}, most: true},
		"another one that reports":         {nodes: []corev1.ConditionStatus{silent, reports}, names: 1, most: true},
		"one that says it is not Ready":    {nodes: []corev1.ConditionStatus{silent, notReady}, names: 1, most: true},
		"one that is silent, too":          {nodes: []corev1.ConditionStatus{silent, silent}},
		"one that has never reported":      {nodes: []corev1.ConditionStatus{silent, never}},
		"half of the others":               {nodes: []corev1.ConditionStatus{silent, silent, reports}, names: 1, most: true},
		"less than half of the others":     {nodes: []corev1.ConditionStatus{silent, silent, silent, reports}, names: 1},
		"all Nodes, as after long outages": {nodes: []corev1.ConditionStatus{silent, silent, silent, silent}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []corev1.Node
			for i, status := range c.nodes {
				node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}
				if status != never {
					node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
				}
				nodes = append(nodes, node)
			}
			if names, most := reportingOf(nodes); len(names) != c.names || most != c.most {
				t.Errorf("%q report, most %t; want %d, %t", names, most, c.names, c.most)
			}
		})
	}
}

// renewLease has a Node's kubelet renew its Lease, which lasts for 40 s.
func renewLease(t *testing.T, c client.Client, node string, at time.Time) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	if _, err := controllerutil.CreateOrUpdate(t.Context(), c, lease, func() error {
		lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new(int32(40)), &metav1.MicroTime{Time: at}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestLeasesAreSeenToBeRenewed: by what changes in them between two looks, whatever the kubelets'
// clocks show.
func TestLeasesAreSeenToBeRenewed(t *testing.T) {
	c := controllertest.New(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
	if err := c.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	one, two, three := c.Namespace+"-1", c.Namespace+"-2", c.Namespace+"-3"
	names := []string{one, two, three}
	h := &heartbeats{leases: c}
	now, kubelets := time.Now(), time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)
	look := func(want bool, renewed ...string) {
		t.Helper()
		kubelets, now = kubelets.Add(time.Second), now.Add(leaseInterval)
		for _, name := range renewed {
			renewLease(t, c, name, kubelets)
		}
		if got := h.renewing(t.Context(), names, now); got != want {
			t.Errorf("most of the Leases are renewed %t, want %t", got, want)
		}
	}
	look(false, one, two) // One look sees no renewal, and the third Node has no Lease.
	look(true, one, two)
	look(true, one) // A Lease that ran late has not run out.
	for range 3 {
		look(true, one)
	}
	now = now.Add(time.Minute)
	look(false)
	look(false, one)
	look(true, two)
	if chosen := h.sample([]string{"a", "b", "c", "d", three, two, one}); len(chosen) != leasesRead || chosen[0] != two || chosen[1] != one {
		t.Errorf("the next look is at %q", chosen)
	}
}

// TestHeartbeatsAreLookedAtOnDemand: only while drains ask, and no more often than kubelets renew.
func TestHeartbeatsAreLookedAtOnDemand(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	reads := 0
	h := &heartbeats{read: func(context.Context, time.Time) bool {
		reads++
		return true
	}}
	step := func(d time.Duration, want bool, wantReads int) {
		t.Helper()
		clock.Step(d)
		if got := h.look(t.Context(), clock.Now()); got != want || reads != wantReads {
			t.Errorf("a look found %t after %d reads, want %t after %d", got, reads, want, wantReads)
		}
	}
	step(0, false, 0)
	h.want(clock.Now())
	step(askInterval, true, 1)
	step(askInterval, true, 1)
	step(leaseInterval, true, 2)
	step(heartbeatsWanted, false, 2)
	h.want(clock.Now())
	step(0, true, 3)
}
