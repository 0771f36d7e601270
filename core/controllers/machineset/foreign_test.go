package machineset_test

import (
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// theirs is a finalizer of machine-controller.
const theirs = "machine-delete-finalizer"

// leftAlone waits until the set says that it is left to another system, or does not say so any
// more.
func leftAlone(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, want bool) {
	t.Helper()
	until(t, c, set, func() string {
		found := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionPaused)
		if is := found != nil && found.Reason == clusterv1alpha1.ReasonManagedByAnother; is != want {
			return fmt.Sprintf("Paused is %+v", found)
		}
		return ""
	})
}

// A set of which another system works on one Machine is left alone, and so are its siblings. It
// goes on when that is over.
func TestSAFE8_ASetWithAnotherSystemsMachineIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	counted := &patches{}
	c.Manage(t, counted.funcs(), add)
	audit := c.Audit(t)
	set, sibling := newSetNamed(t, c, "a", 2), newSetNamed(t, c, "b", 1)
	settled(t, c, set, 2)
	settled(t, c, sibling, 1)
	ofDeployment(t, c, "9", set, sibling)
	marked := ours(t, c, set, true)[0]
	controllertest.Patch(t, c, &marked, func(m *clusterv1alpha1.Machine) { m.Finalizers = append(m.Finalizers, theirs) })
	leftAlone(t, c, set, true)
	// The deployment's own controller would wake the sibling; here its size does.
	scaleTo(t, c, sibling, 3)
	leftAlone(t, c, sibling, true)
	scaleTo(t, c, set, 5)
	c.Die(t, ours(t, c, set, true)[1].Name)
	stray := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: "stray", Labels: map[string]string{"group": "other"}, Finalizers: []string{theirs},
		},
		Spec: machineSpec(),
	}
	if err := c.Create(t.Context(), stray); err != nil {
		t.Fatal(err)
	}
	other := newSetNamed(t, c, "other", 1)
	settled(t, c, other, 1)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(stray), stray); err != nil || len(stray.OwnerReferences) > 0 {
		t.Errorf("another system's Machine is adopted: %v, %v", stray.OwnerReferences, err)
	}
	if audit.Made() != 5 || len(ours(t, c, set, true)) != 2 {
		t.Errorf("%d Machines were made, %d are the set's", audit.Made(), len(ours(t, c, set, true)))
	}
	controllertest.Patch(t, c, &marked, func(m *clusterv1alpha1.Machine) { m.Finalizers = []string{clusterv1alpha1.MachineFinalizer} })
	settled(t, c, set, 5)
	leftAlone(t, c, set, false)
}
