package machineset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/scale"
)

func TestAStrangersNameIsSkipped(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	set := newSet(t, c, 0)
	names := scale.NewNames(set.Name, string(set.UID), 0).Take(3)
	stranger := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: names[1]}, Spec: machineSpec(),
	}
	if err := c.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	c.Manage(t, interceptor.Funcs{}, add)
	scaleTo(t, c, set, 2)
	settled(t, c, set, 2)
	for i, m := range c.Machines(t) {
		if m.Name != names[i] || metav1.IsControlledBy(&m, set) != (i != 1) {
			t.Errorf("%s: ours %t", m.Name, metav1.IsControlledBy(&m, set))
		}
	}
	c.Eventually(t, func() string {
		events := &corev1.EventList{}
		if err := c.List(t.Context(), events, client.InNamespace(c.Namespace)); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "NameTaken" }) {
			return "no event tells of the stranger"
		}
		return ""
	})
}

func TestFailedMachinesAreReplacedOneAtATime(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	ahead := &offset{}
	ahead.by.Store(int64(time.Minute))
	c.Manage(t, interceptor.Funcs{}, addAt(ahead))
	audit := c.Audit(t)
	set := newSet(t, c, 3)
	settled(t, c, set, 3)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return false })
	for _, m := range c.Machines(t) {
		c.Fail(t, m.Name, "Boom", "the host burns")
	}
	for made := 4; made <= 6; made++ {
		c.Eventually(t, func() string {
			if there := c.Machines(t); audit.Made() != made || len(there) != 3 {
				return fmt.Sprintf("%d made, %d there", audit.Made(), len(there))
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				return err.Error()
			}
			if set.Status.Replicas != 3 || set.Status.NextIndex != int64(made) {
				return "not observed"
			}
			return ""
		})
		newest := scale.NewNames(set.Name, string(set.UID), int64(made-1)).Take(1)[0]
		if n := len(waitingFailed(c.Machines(t))); n != 6-made {
			t.Fatalf("%d of 3 failed Machines are left while the replacement %s comes up", n, newest)
		}
		actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Name == newest })
	}
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	settled(t, c, set, 3)
	atMost(t, audit, 4)
}

func TestAMachineThatFailsAtOnceIsReplacedAfterAPause(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t).Up(func(*clusterv1alpha1.Machine) bool { return false })
	// Behind, so that the pause does not pass by itself.
	clock := &offset{}
	clock.by.Store(-int64(time.Hour))
	c.Manage(t, interceptor.Funcs{}, addAt(clock))
	audit := c.Audit(t)
	set := newSet(t, c, 1)
	c.Eventually(t, func() string {
		if audit.Made() != 1 {
			return "not created"
		}
		return ""
	})
	name := c.Machines(t)[0].Name
	c.Fail(t, name, "Boom", "the host burns")
	hasFailure(t, c, set, "MachinesFailed: Machine "+name+": the host burns (none is replaced within 10s of the creation of one that failed)")
	if m := c.Machines(t)[0]; m.Name != name || !m.DeletionTimestamp.IsZero() {
		t.Errorf("%s is replaced at once", name)
	}
	clock.by.Store(int64(time.Minute))
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Annotations = map[string]string{"look": "again"} })
	c.Eventually(t, func() string {
		if m := c.Machines(t); audit.Made() != 2 || len(m) != 1 || m[0].Name == name {
			return fmt.Sprintf("%d made", audit.Made())
		}
		return ""
	})
}

// waitingFailed returns the failed Machines that nobody has deleted.
func waitingFailed(machines []clusterv1alpha1.Machine) []clusterv1alpha1.Machine {
	return slices.DeleteFunc(machines, func(m clusterv1alpha1.Machine) bool {
		return m.Status.FailureReason == nil || !m.DeletionTimestamp.IsZero()
	})
}

func TestARefusedTemplateIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return false })
	c.Manage(t, interceptor.Funcs{}, add)
	audit := c.Audit(t)
	set := newSet(t, c, 1)
	c.Eventually(t, func() string {
		if audit.Made() != 1 {
			return "not created"
		}
		return ""
	})
	name := c.Machines(t)[0].Name
	c.Fail(t, name, clusterv1alpha1.ReasonSpecInvalid, "flavor: there is no flavor small")
	want := "TemplateInvalid: Machine " + name + ": flavor: there is no flavor small"
	hasFailure(t, c, set, want)
	scaleTo(t, c, set, 3)
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if set.Status.ObservedGeneration != set.Generation {
			return "not observed"
		}
		return ""
	})
	if audit.Made() != 1 {
		t.Errorf("%d Machines were made from a template that is refused", audit.Made())
	}
	hasFailure(t, c, set, want)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Template.Spec.ProviderSpec.Value.CloudProviderSpec.Raw = []byte(`{"flavor":"large"}`)
	})
	settled(t, c, set, 3)
	hasFailure(t, c, set, "")
	atMost(t, audit, 4)
}

func TestRefusedRequestsAreReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	var allowed atomic.Bool
	c.Manage(t, interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*clusterv1alpha1.Machine); ok && !allowed.Load() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "x", errors.New("exceeded quota"))
			}
			return inner.Create(ctx, obj, opts...)
		},
	}, add)
	set := newSet(t, c, 3)
	name := scale.NewNames(set.Name, string(set.UID), 0).Take(1)[0]
	hasFailure(t, c, set, `MachineCreationFailed: create Machine `+name+`: machines "x" is forbidden: exceeded quota`)
	if set.Status.ObservedGeneration != set.Generation {
		t.Errorf("a set that is refused is observed all the same: %+v", set.Status)
	}
	allowed.Store(true)
	settled(t, c, set, 3)
	hasFailure(t, c, set, "")
	if c.Machines(t)[0].Name != name {
		t.Errorf("a refused name was not used again: %s", c.Machines(t)[0].Name)
	}
}
