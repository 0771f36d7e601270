package machineset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
)

func TestMachinesHaveAllTheyNeedAtBirth(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	c.Manage(t, interceptor.Funcs{}, add)
	set := newSet(t, c, 2)
	settled(t, c, set, 2)
	uids := map[string]bool{}
	for _, m := range c.Machines(t) {
		owner := metav1.GetControllerOf(&m)
		if owner == nil || owner.UID != set.UID || owner.Kind != "MachineSet" || !*owner.BlockOwnerDeletion {
			t.Errorf("%s is owned by %+v", m.Name, owner)
		}
		if !slices.Equal(m.Finalizers, []string{clusterv1alpha1.MachineFinalizer}) {
			t.Errorf("%s has finalizers %v", m.Name, m.Finalizers)
		}
		if m.Labels["group"] != "nodes" || m.Annotations["note"] != "kept" || m.Spec.MachineUID == nil {
			t.Errorf("%s lacks something: %+v", m.Name, m)
		}
		uids[*m.Spec.MachineUID] = true
	}
	if len(uids) != 2 {
		t.Errorf("machineUIDs are %v", uids)
	}
	if want := (clusterv1alpha1.MachineSetStatus{
		Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, ObservedGeneration: 1,
		Selector: "group=nodes", NextIndex: 2, Conditions: set.Status.Conditions,
	}); !apiEqual(set.Status, want) {
		t.Errorf("status is %+v, want %+v", set.Status, want)
	}
	if !apimeta.IsStatusConditionTrue(set.Status.Conditions, clusterv1alpha1.ConditionAvailable) {
		t.Errorf("conditions are %+v", set.Status.Conditions)
	}
}

func apiEqual(a, b clusterv1alpha1.MachineSetStatus) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestASetGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	set := newSet(t, c, 3)
	settled(t, c, set, 3)
	atMost(t, audit, 3)
	scaleTo(t, c, set, 40)
	settled(t, c, set, 40)
	atMost(t, audit, 40)

	var kept []string
	for i, m := range c.Machines(t) {
		if i%4 == 0 {
			kept = append(kept, m.Name)
			continue
		}
		controllertest.Patch(t, c, &m, func(m *clusterv1alpha1.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1alpha1.DeleteMachineAnnotation, "true")
		})
	}
	scaleTo(t, c, set, 10)
	settled(t, c, set, 10)
	var left []string
	for _, m := range c.Machines(t) {
		left = append(left, m.Name)
	}
	if !slices.Equal(left, kept) {
		t.Errorf("left are %v, those without a mark were %v", left, kept)
	}
	scaleTo(t, c, set, 0)
	settled(t, c, set, 0)
	if audit.Made() != 40 {
		t.Errorf("%d Machines were made for 40", audit.Made())
	}
}

// unsteady loses answers: every third request to create a Machine is carried out, but its answer is
// lost; every fifth is lost before it arrives.
func unsteady() interceptor.Funcs {
	var n atomic.Int64
	return interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*clusterv1alpha1.Machine); !ok {
				return inner.Create(ctx, obj, opts...)
			}
			switch i := n.Add(1); {
			case i%3 == 0:
				if err := inner.Create(ctx, obj, opts...); err != nil {
					return err
				}
				return errors.New("the answer was lost")
			case i%5 == 0:
				return errors.New("the request was lost")
			default:
				return inner.Create(ctx, obj, opts...)
			}
		},
	}
}

func TestLostAnswersMakeNoMachineTooMany(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	c.Manage(t, unsteady(), add)
	audit := c.Audit(t)
	set := newSet(t, c, 25)
	settled(t, c, set, 25)
	atMost(t, audit, 25)
	if audit.Made() != 25 {
		t.Errorf("%d Machines were made for 25", audit.Made())
	}
}

// Each leader dies after a few requests, in the middle of a batch, with the last answer lost.
func TestKilledLeadersMakeNoMachineTooMany(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	audit := c.Audit(t)
	set := newSet(t, c, 50)
	for life := range 6 {
		killed := make(chan struct{})
		var n atomic.Int64
		stop := c.Manage(t, interceptor.Funcs{
			Create: func(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if _, ok := obj.(*clusterv1alpha1.Machine); !ok {
					return inner.Create(ctx, obj, opts...)
				}
				switch i := n.Add(1); {
				case i < int64(3+life):
					return inner.Create(ctx, obj, opts...)
				case i == int64(3+life):
					defer close(killed)
					return errors.Join(inner.Create(ctx, obj, opts...), errors.New("killed"))
				default:
					return errors.New("dead")
				}
			},
			SubResourcePatch: func(ctx context.Context, inner client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if n.Load() >= int64(3+life) {
					return errors.New("dead")
				}
				return inner.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}, add)
		c.Eventually(t, func() string {
			select {
			case <-killed:
				return ""
			default:
				return fmt.Sprintf("leader %d has not created enough", life)
			}
		})
		stop()
	}
	c.Manage(t, interceptor.Funcs{}, add)
	settled(t, c, set, 50)
	atMost(t, audit, 50)
	if audit.Made() != 50 {
		t.Errorf("%d Machines were made for 50", audit.Made())
	}
}

// Two managers that both believe to lead: nothing is made twice.
func TestTwoLeadersMakeNoMachineTooMany(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	audit := c.Audit(t)
	c.Manage(t, unsteady(), add)
	c.Manage(t, interceptor.Funcs{}, add)
	set := newSet(t, c, 40)
	settled(t, c, set, 40)
	atMost(t, audit, 40)
	if audit.Made() != 40 {
		t.Errorf("%d Machines were made for 40", audit.Made())
	}
}

func TestMachinesAreAdoptedAndReleased(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	orphan := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "alone", Labels: map[string]string{"group": "nodes"}},
		Spec:       machineSpec(),
	}
	foreign := orphan.DeepCopy()
	foreign.Name, foreign.Labels["group"] = "foreign", "others"
	for _, m := range []*clusterv1alpha1.Machine{orphan, foreign} {
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	set := newSet(t, c, 2)
	settled(t, c, set, 2)
	atMost(t, audit, 3)
	ownedBySet := func(name string) bool {
		m := &clusterv1alpha1.Machine{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, m); err != nil {
			t.Fatal(err)
		}
		return metav1.IsControlledBy(m, set)
	}
	if !ownedBySet("alone") || ownedBySet("foreign") {
		t.Errorf("owned: alone %t, foreign %t", ownedBySet("alone"), ownedBySet("foreign"))
	}
	controllertest.Patch(t, c, orphan, func(m *clusterv1alpha1.Machine) { m.Labels["group"] = "none" })
	c.Eventually(t, func() string {
		if ownedBySet("alone") {
			return "not released"
		}
		return ""
	})
	// The set's status may be that of before the release: Machines are counted.
	c.Eventually(t, func() string {
		if n := len(c.Machines(t)); n != 4 {
			return fmt.Sprintf("there are %d Machines", n)
		}
		return ""
	})
	settled(t, c, set, 2)
	atMost(t, audit, 4)
}

func TestASetThatIsBeingDeletedCreatesNothing(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	set := newSet(t, c, 2)
	settled(t, c, set, 2)
	if err := c.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Machines(t) {
		if err := c.Delete(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	c.Eventually(t, func() string {
		if n := len(c.Machines(t)); n > 0 {
			return fmt.Sprintf("%d Machines are left", n)
		}
		return ""
	})
	// What comes after the set in the queue has been worked on, so the set was.
	other := newSetNamed(t, c, "other", 1)
	settled(t, c, other, 1)
	if audit.Made() != 3 {
		t.Errorf("%d Machines were made", audit.Made())
	}
}

func TestMinReadySecondsCount(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	c.Manage(t, interceptor.Funcs{}, add)
	set := newSet(t, c, 1)
	settled(t, c, set, 1)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.MinReadySeconds = 86400 })
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if s := set.Status; s.ReadyReplicas != 1 || s.AvailableReplicas != 0 || s.ObservedGeneration != set.Generation {
			return fmt.Sprintf("status is %+v", s)
		}
		return ""
	})
	// No event comes when the time is up: the controller wakes by itself.
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.MinReadySeconds = 2 })
	scaleTo(t, c, set, 2)
	settled(t, c, set, 2)
}

func TestASetWithoutASizeIsGivenOne(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	set := newSetNamed(t, c, "nodes", 1)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Replicas = nil
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, clusterv1alpha1.NodeGroupMinSizeAnnotation, "2")
	})
	c.Manage(t, interceptor.Funcs{}, add)
	settled(t, c, set, 2)
	scaleTo(t, c, set, 3)
	settled(t, c, set, 3)
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.Replicas = nil })
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if set.Spec.Replicas == nil || *set.Spec.Replicas != 3 {
			return fmt.Sprintf("replicas: %v", set.Spec.Replicas)
		}
		return ""
	})
}
