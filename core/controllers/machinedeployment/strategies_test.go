package machinedeployment_test

import (
	"fmt"
	"slices"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func strategy(kind clusterv1alpha1.MachineDeploymentStrategyType) func(*clusterv1alpha1.MachineDeployment) {
	return func(md *clusterv1alpha1.MachineDeployment) { md.Spec.Strategy.Type = kind }
}

// holding waits until the sets, the oldest first, are to have that many Machines.
func holding(t *testing.T, c *controllertest.Cluster, want ...int32) {
	t.Helper()
	c.Eventually(t, func() string {
		var got []int32
		for _, s := range sets(t, c) {
			got = append(got, *s.Spec.Replicas)
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("sets have %v, want %v", got, want)
		}
		return ""
	})
}

// progressing waits for the reason of the condition Progressing.
func progressing(t *testing.T, c *controllertest.Cluster, md *clusterv1alpha1.MachineDeployment, reason string) {
	t.Helper()
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		p := apimeta.FindStatusCondition(md.Status.Conditions, clusterv1alpha1.ConditionProgressing)
		if p == nil || p.Reason != reason {
			return fmt.Sprintf("Progressing is %+v, want reason %s; sets: %v", p, reason, tellSets(t, c))
		}
		return ""
	})
}

// To recreate, all old Machines are gone before there is a new one.
func TestROL2_RecreateMakesNoMachineBesideAnOldOne(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	manage(t, c)
	md := newDeployment(t, c, 3, strategy(clusterv1alpha1.RecreateStrategy))
	isComplete(t, c, md, 3)
	audit := c.Audit(t)
	actor.Gone(func(m *clusterv1alpha1.Machine) bool { return m.Name != c.Machines(t)[0].Name })
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	staying(t, c, 1, 0)
	holding(t, c, 0, 0)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	isComplete(t, c, md, 3)
	if audit.Most() > 3 || audit.Made() != 6 {
		t.Errorf("%d Machines at once, %d made", audit.Most(), audit.Made())
	}
	controllertest.Patch(t, c, md, size(5))
	isComplete(t, c, md, 5)
}

// With OnDelete a Machine is replaced when somebody deletes it, and by none of its own
// template. This also holds if the deployment's controller was away when the Machine went.
func TestROL2_OnDeleteReplacesWhatSomebodyDeletes(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	stop := manage(t, c)
	md := newDeployment(t, c, 3, strategy(clusterv1alpha1.OnDeleteStrategy))
	isComplete(t, c, md, 3)
	audit := c.Audit(t)
	old := map[string]bool{}
	for _, m := range c.Machines(t) {
		old[m.Name] = true
	}
	controllertest.Patch(t, c, md, kubelet("1.36.1"))
	progressing(t, c, md, clusterv1alpha1.ReasonDeletionAwaited)
	c.Eventually(t, func() string {
		if got := parts(t, c); got != `["Dwindling" ""]` {
			return "sets say " + got
		}
		return ""
	})
	holding(t, c, 3, 0)
	deleteOne(t, c)
	holding(t, c, 2, 1)
	progressing(t, c, md, clusterv1alpha1.ReasonDeletionAwaited)

	stop()
	for _, m := range c.Machines(t) {
		if old[m.Name] {
			if err := c.Delete(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		}
	}
	staying(t, c, 1, 1)
	manage(t, c)
	isComplete(t, c, md, 3)
	holding(t, c, 0, 3)
	if audit.Most() > 3 || audit.Made() != 6 {
		t.Errorf("%d Machines at once, %d made", audit.Most(), audit.Made())
	}
}
