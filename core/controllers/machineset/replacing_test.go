package machineset_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

// ofDeployment makes sets those of a MachineDeployment that may have most Machines, and returns it.
func ofDeployment(t *testing.T, c *controllertest.Cluster, most string, sets ...*clusterv1alpha1.MachineSet) *clusterv1alpha1.MachineDeployment {
	t.Helper()
	group := map[string]string{"group": "deployment"}
	deployment := &clusterv1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "deployment"},
		Spec: clusterv1alpha1.MachineDeploymentSpec{
			Selector: clusterv1alpha1.LabelSelector{MatchLabels: group},
			Template: clusterv1alpha1.MachineTemplateSpec{ObjectMeta: clusterv1alpha1.ObjectMeta{Labels: group}, Spec: machineSpec()},
		},
	}
	if err := c.Create(t.Context(), deployment); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
			s.OwnerReferences = []metav1.OwnerReference{
				*metav1.NewControllerRef(deployment, clusterv1alpha1.GroupVersion.WithKind("MachineDeployment")),
			}
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, clusterv1alpha1.MaxReplicasAnnotation, most)
		})
	}
	return deployment
}

// ours returns the Machines of the set; those that stay, if staying.
func ours(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, staying bool) []clusterv1alpha1.Machine {
	t.Helper()
	var found []clusterv1alpha1.Machine
	for _, m := range c.Machines(t) {
		if metav1.IsControlledBy(&m, set) && (!staying || m.DeletionTimestamp.IsZero()) {
			found = append(found, m)
		}
	}
	return found
}

// has waits until the set has reported that many Machines, and how many of them are available.
func has(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, replicas, available int32) {
	t.Helper()
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if s := set.Status; s.ObservedGeneration != set.Generation || s.Replicas != replicas || s.AvailableReplicas != available {
			return fmt.Sprintf("status is %+v, want %d Machines, %d available", s, replicas, available)
		}
		return ""
	})
}

func deleteOne(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet) {
	t.Helper()
	victim := ours(t, c, set, true)[0]
	if err := c.Delete(t.Context(), &victim); err != nil {
		t.Fatal(err)
	}
}

func TestADeletedMachineIsReplacedBeforeItIsGoneIfThereIsRoom(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, why string
		// most is how many Machines the set's MachineDeployment may have; empty if it has none.
		most string
		// sibling is the size of the other set.
		sibling  int32
		replaced bool
	}{
		{name: "alone", why: "one may be replaced at a time", replaced: true},
		{name: "with surge", why: "there is room for one more", most: "4", replaced: true},
		{name: "with surge that a rollout left over", why: "there is room for one more", most: "6", sibling: 2, replaced: true},
		{name: "without surge", why: "there must never be more than replicas", most: "3"},
		{name: "with surge that a rollout uses", why: "the sibling has the room", most: "4", sibling: 1},
		{name: "with a limit that nobody can read", why: "nobody knows how much room there is", most: "many"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := controllertest.New(t)
			actor := c.Act(t)
			set, sibling := newSet(t, c, 3), newSetNamed(t, c, "sibling", tc.sibling)
			if tc.most != "" {
				ofDeployment(t, c, tc.most, set, sibling)
			}
			c.Manage(t, interceptor.Funcs{}, add)
			audit := c.Audit(t)
			settled(t, c, set, 3)
			settled(t, c, sibling, tc.sibling)
			actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
			deleteOne(t, c, set)
			most := 3
			if tc.replaced {
				most = 4
				has(t, c, set, 4, 3)
			} else {
				has(t, c, set, 3, 2)
			}
			actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
			c.Eventually(t, func() string {
				if want := 4 + int(tc.sibling); audit.Made() != want {
					return fmt.Sprintf("%s: %d Machines were made, want %d", tc.why, audit.Made(), want)
				}
				return ""
			})
			settled(t, c, set, 3)
			atMost(t, audit, most+int(tc.sibling))
		})
	}
}

// The sets of a deployment that was deleted go one before the other, and nobody counts the Machines
// of those that are gone.
func TestNobodyIsReplacedWhileTheDeploymentGoes(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	set := newSet(t, c, 3)
	deployment := ofDeployment(t, c, "4", set)
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	settled(t, c, set, 3)
	if err := c.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	deleteOne(t, c, set)
	has(t, c, set, 3, 2)
	atMost(t, audit, 3)
}

// No event of the set itself tells that there is room now.
func TestRoomThatASiblingGivesUpIsUsed(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	set, sibling := newSet(t, c, 3), newSetNamed(t, c, "sibling", 1)
	ofDeployment(t, c, "4", set, sibling)
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	settled(t, c, set, 3)
	settled(t, c, sibling, 1)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	deleteOne(t, c, set)
	has(t, c, set, 3, 2)
	scaleTo(t, c, sibling, 0)
	has(t, c, sibling, 1, 0)
	actor.Gone(func(m *clusterv1alpha1.Machine) bool { return metav1.IsControlledBy(m, sibling) })
	has(t, c, set, 4, 3)
	atMost(t, audit, 4)
}

func TestMachinesThatDrainCountWhenTheSetIsScaled(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	set := newSet(t, c, 6)
	settled(t, c, set, 6)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	scaleTo(t, c, set, 5)
	has(t, c, set, 6, 5)
	scaleTo(t, c, set, 2)
	has(t, c, set, 6, 2)
	// There is room for 6; 6 there are.
	scaleTo(t, c, set, 5)
	has(t, c, set, 6, 2)
	if audit.Made() != 6 {
		t.Errorf("%d Machines were made for 6", audit.Made())
	}
	first := ""
	actor.Gone(func(m *clusterv1alpha1.Machine) bool {
		if first == "" {
			first = m.Name
		}
		return m.Name == first
	})
	has(t, c, set, 6, 3)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return true })
	settled(t, c, set, 5)
	atMost(t, audit, 6)
	if audit.Made() != 9 {
		t.Errorf("%d Machines were made, want 6 and 3 later", audit.Made())
	}
}

func TestASizeLeftOutCountsNoMachineTwice(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	c.Manage(t, interceptor.Funcs{}, add)
	set := newSet(t, c, 3)
	settled(t, c, set, 3)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	deleteOne(t, c, set)
	has(t, c, set, 4, 3)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.Replicas = nil })
	has(t, c, set, 4, 3)
	if set.Spec.Replicas == nil || *set.Spec.Replicas != 3 {
		t.Errorf("replicas: %v", set.Spec.Replicas)
	}
}
