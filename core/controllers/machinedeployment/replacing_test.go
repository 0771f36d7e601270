package machinedeployment_test

import (
	"fmt"
	"testing"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// staying waits until so many Machines are there, so many of them not on their way out.
func staying(t *testing.T, c *controllertest.Cluster, present, live int) {
	t.Helper()
	c.Eventually(t, func() string {
		machines, n := c.Machines(t), 0
		for i := range machines {
			if machines[i].DeletionTimestamp.IsZero() {
				n++
			}
		}
		if len(machines) != present || n != live {
			return fmt.Sprintf("%d Machines, %d of them stay, want %d and %d; sets: %v", len(machines), n, present, live, tellSets(t, c))
		}
		return ""
	})
}

func deleteOne(t *testing.T, c *controllertest.Cluster) {
	t.Helper()
	for _, m := range c.Machines(t) {
		if m.DeletionTimestamp.IsZero() {
			if err := c.Delete(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("there is no Machine to delete")
}

// A rollout that begins while a Machine drains, replaced already, waits for the room that both take
// up.
func TestAReplacementUsesTheSurge(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 3)
	isComplete(t, c, md, 3)
	audit := c.Audit(t)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	deleteOne(t, c)
	staying(t, c, 4, 3)
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	c.Eventually(t, func() string {
		all := sets(t, c)
		if len(all) != 2 || all[1].Status.ObservedGeneration != all[1].Generation {
			return fmt.Sprintf("sets: %v", tellSets(t, c))
		}
		return ""
	})
	staying(t, c, 4, 3)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	isComplete(t, c, md, 3)
	if audit.Most() > 4 {
		t.Errorf("there were %d Machines at once, more than 4", audit.Most())
	}
}

// No set is scaled by a change of maxSurge alone, and yet it holds for them from then on.
func TestAReplacementKeepsWithinALoweredSurge(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 3)
	isComplete(t, c, md, 3)
	audit := c.Audit(t)
	controllertest.Patch(t, c, md, bounds("0", "1"))
	c.Eventually(t, func() string {
		if got := sets(t, c)[0].Annotations[clusterv1alpha1.MaxReplicasAnnotation]; got != "3" {
			return "the set may have " + got
		}
		return ""
	})
	isComplete(t, c, md, 3)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	deleteOne(t, c)
	c.Eventually(t, func() string {
		if s := sets(t, c)[0].Status; s.Replicas != 3 || s.AvailableReplicas != 2 {
			return fmt.Sprintf("status is %+v", s)
		}
		return ""
	})
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	isComplete(t, c, md, 3)
	if audit.Most() > 3 {
		t.Errorf("there were %d Machines at once, more than 3", audit.Most())
	}
}

// A step of a rollout and the replacement of a deleted Machine both want the same room. Neither
// sees in the cache at once that the other has taken it.
func TestARolloutAndAReplacementShareTheSurge(t *testing.T) {
	t.Parallel()
	const attempts = 6
	c := controllertest.New(t)
	c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 4)
	isComplete(t, c, md, 4)
	audit := c.Audit(t)
	for i := range attempts {
		controllertest.Patch(t, c, md, kubelet(fmt.Sprintf("1.36.%d", i+1)))
		for range 3 {
			deleteOne(t, c)
		}
		isComplete(t, c, md, 4)
	}
	if audit.Most() > 5 {
		t.Errorf("there were %d Machines at once, more than 5", audit.Most())
	}
}
