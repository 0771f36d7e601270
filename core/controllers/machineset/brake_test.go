package machineset_test

import (
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// shows waits until the set has the condition True with that reason; without a reason, until it
// does not have it.
func shows(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, kind, reason string) {
	t.Helper()
	until(t, c, set, func() string {
		found := apimeta.FindStatusCondition(set.Status.Conditions, kind)
		if set.Status.ObservedGeneration != set.Generation {
			return "not observed"
		}
		if found == nil && reason != "" || found != nil && (found.Status != metav1.ConditionTrue || found.Reason != reason) {
			return fmt.Sprintf("%s is %+v, want reason %q", kind, found, reason)
		}
		return ""
	})
}

func TestSAFE2_AnOvershootFreezesCreation(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	set, sibling := newSetNamed(t, c, "new", 0), newSetNamed(t, c, "old", 8)
	ofDeployment(t, c, "9", set, sibling)
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	settled(t, c, sibling, 8)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	// Whoever sizes the sets has lost count: 8 of at most 4 there are, and 3 more are wanted. The
	// margin is 2.
	ofDeployment(t, c, "4", set, sibling)
	scaleTo(t, c, set, 3)
	shows(t, c, set, clusterv1alpha1.ConditionFrozen, clusterv1alpha1.ReasonOvershoot)
	if cond := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionFrozen); !strings.Contains(cond.Message, "no more than 4,") {
		t.Errorf("the condition says: %s", cond.Message)
	}
	scaleTo(t, c, sibling, 1)
	has(t, c, sibling, 8, 1)
	shows(t, c, set, clusterv1alpha1.ConditionFrozen, clusterv1alpha1.ReasonOvershoot)
	if audit.Made() != 8 {
		t.Errorf("%d Machines were made: creation is not frozen", audit.Made())
	}
	// As soon as enough are gone, it goes on by itself.
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	settled(t, c, set, 3)
	shows(t, c, set, clusterv1alpha1.ConditionFrozen, "")
	c.Eventually(t, func() string {
		if n := eventsOf(t, c, set, "Overshoot"); n != 1 {
			return fmt.Sprintf("%d events tell of it", n)
		}
		return ""
	})
	shows(t, c, sibling, clusterv1alpha1.ConditionFrozen, "")
}

func TestOPS10_APausedSetIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	counted := &patches{}
	c.Manage(t, counted.funcs(), addAt(later()))
	audit := c.Audit(t)
	set := newSet(t, c, 3)
	settled(t, c, set, 3)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Annotations = map[string]string{clusterv1alpha1.PausedAnnotation: ""}
	})
	shows(t, c, set, clusterv1alpha1.ConditionPaused, clusterv1alpha1.ReasonPausedByAnnotation)
	gone, failed := c.Machines(t)[0], c.Machines(t)[1]
	if err := c.Delete(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	c.Fail(t, failed.Name, "Boom", "the host burns")
	stray := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "stray", Labels: map[string]string{"group": "nodes"}},
		Spec:       machineSpec(),
	}
	if err := c.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Replicas = new(int32(5))
		s.Spec.Template.Labels["team"] = "a"
	})
	// Its numbers go on.
	has(t, c, set, 2, 1)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.Replicas = new(int32(0)) })
	has(t, c, set, 2, 1)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.Replicas = nil })
	has(t, c, set, 2, 1)
	if set.Spec.Replicas != nil {
		t.Error("a paused set is given a size")
	}
	counted.are(t, c, 0, 0, 0)
	if audit.Made() != 4 || len(ours(t, c, set, true)) != 2 {
		t.Errorf("%d Machines were made, %d are the set's", audit.Made(), len(ours(t, c, set, true)))
	}
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Replicas = new(int32(4))
		s.Annotations[clusterv1alpha1.PausedAnnotation] = "false"
	})
	settled(t, c, set, 4)
	shows(t, c, set, clusterv1alpha1.ConditionPaused, "")
	inTemplate(t, c, func(m *clusterv1alpha1.Machine) string {
		if m.Labels["team"] != "a" || !metav1.IsControlledBy(m, set) {
			return "it has not been taken up again"
		}
		return ""
	})
}
