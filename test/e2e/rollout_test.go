package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// A rolling update holds its limits at each instant: machines that are going count as surge.
func TestROL1_RollingUpdate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		surge, unavailable string
		most, least        int
	}{
		"one more, none less": {"1", "0", 5, 4},
		"none more, one less": {"0", "1", 4, 3},
		"half more, a quarter less": {
			"50%", "25%", 6, 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.surge != "50%" {
				tier.Long(t, "the other case has both limits")
			}
			u := newSharingUser(t)
			limits := map[string]string{"surge": tc.surge, "unavailable": tc.unavailable}
			u.apply(deployment("rolled", 4, limits))
			u.awaitRunning(4)
			old := u.uids()
			peak := u.keepExtremes()
			limits["kubelet"] = "1.34.2"
			u.apply(deployment("rolled", 4, limits))
			u.rolledOut("rolled")
			u.awaitRunning(4)
			most, least := peak()
			if most > tc.most || least < tc.least {
				t.Errorf("between %d and %d machines, want at most %d, and at least %d available", least, most, tc.most, tc.least)
			}
			for _, uid := range u.uids() {
				for _, before := range old {
					if uid == before {
						t.Errorf("machine uid %s has the old template still", uid)
					}
				}
			}
		})
	}
}

// keepExtremes counts machines at each change. Its result ends that. It returns the most machines
// that there were, those being deleted included, and the fewest that were Running and not being
// deleted.
func (u *user) keepExtremes() func() (most, least int) {
	ctx, stop := context.WithCancel(u.t.Context())
	machines := map[string]bool{}
	var list clusterv1alpha1.MachineList
	if err := u.client.List(ctx, &list, client.InNamespace(u.namespace)); err != nil {
		u.t.Fatal(err)
	}
	for i := range list.Items {
		machines[list.Items[i].Name] = available(&list.Items[i])
	}
	most, least := len(machines), len(machines)
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.eachEventSince(ctx, list.ResourceVersion, func(m *clusterv1alpha1.Machine, gone bool) {
			machines[m.Name] = available(m)
			if gone {
				delete(machines, m.Name)
			}
			up := 0
			for _, is := range machines {
				if is {
					up++
				}
			}
			most, least = max(most, len(machines)), min(least, up)
		})
	}()
	return func() (int, int) {
		stop()
		<-done
		return most, least
	}
}

func available(m *clusterv1alpha1.Machine) bool {
	return m.DeletionTimestamp.IsZero() && m.Status.Phase == clusterv1alpha1.MachinePhaseRunning
}

// A template that can never come up takes no old machine beyond maxUnavailable, and rolling back
// ends it.
func TestROL1_BrokenTemplateKeepsOldMachines(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	u.apply(deployment("careful", 3, nil))
	u.awaitRunning(3)
	old := u.uids()
	u.apply(deployment("careful", 3, map[string]string{"flavor": "no-such-flavor"}))
	eventually(t, "the new machine to say what is missing", func(context.Context) error {
		for _, m := range u.machines() {
			if saysWhy(&m, clusterv1alpha1.ReasonDependencyNotFound, "no-such-flavor") {
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
	if running := u.running(); running != 3 {
		t.Errorf("%d old machines are Running beside the broken one, want 3", running)
	}
	u.apply(deployment("careful", 3, nil))
	u.awaitRunning(3)
	if got := u.uids(); strings.Join(got, " ") != strings.Join(old, " ") {
		t.Errorf("rolling back replaced machines: uids %v became %v", old, got)
	}
}

func (u *user) running() int {
	n := 0
	for _, m := range u.machines() {
		if available(&m) {
			n++
		}
	}
	return n
}

// Scaling down in the middle of a rollout, and up again.
func TestROL1_ScaledInTheMiddle(t *testing.T) {
	tier.Long(t, "it is long, and the controller's own test has it")
	t.Parallel()
	u := newUser(t)
	u.apply(deployment("moving", 4, nil))
	u.awaitRunning(4)
	u.slowCloud()
	u.apply(deployment("moving", 4, map[string]string{"kubelet": "1.34.2"}))
	u.kubectl("wait", "machinedeployment/moving", "--for=jsonpath={.status.updatedReplicas}=1", "--timeout=60s")
	u.kubectl("scale", "machinedeployment", "moving", "--replicas=6")
	u.kubectl("wait", "machinedeployment/moving", "--for=jsonpath={.status.updatedReplicas}=6", "--timeout=90s")
	u.awaitRunning(6)
	u.kubectl("scale", "machinedeployment", "moving", "--replicas=0")
	u.awaitGone()
}
