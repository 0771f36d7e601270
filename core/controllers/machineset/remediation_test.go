package machineset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/remediation"
)

// later is a clock that is ahead of every pause.
func later() *offset {
	ahead := &offset{}
	ahead.by.Store(int64(time.Hour))
	return ahead
}

// until waits until check finds no fault with the set.
func until(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, check func() string) {
	t.Helper()
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		return check()
	})
}

// eventsOf counts the events of that reason about the set.
func eventsOf(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, reason string) int32 {
	t.Helper()
	events := &corev1.EventList{}
	if err := c.List(t.Context(), events, client.InNamespace(c.Namespace)); err != nil {
		t.Fatal(err)
	}
	n := int32(0)
	for _, e := range events.Items {
		if e.Reason == reason && e.InvolvedObject.Name == set.Name {
			n += max(e.Count, 1)
		}
	}
	return n
}

func TestSAFE4_NothingIsReplacedWhileTooMuchIsUnhealthy(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	c.Act(t)
	c.Manage(t, interceptor.Funcs{}, addLimited(later(), "33%"))
	audit := c.Audit(t)
	failing, other := newSet(t, c, 4), newSetNamed(t, c, "other", 6)
	settled(t, c, failing, 4)
	settled(t, c, other, 6)
	lost := ours(t, c, other, true)[:3]
	for _, m := range lost {
		c.Report(t, m.Name, false)
	}
	victim := ours(t, c, failing, true)[0].Name
	c.Fail(t, victim, "Boom", "the host burns")
	until(t, c, failing, func() string {
		c := apimeta.FindStatusCondition(failing.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != clusterv1alpha1.ReasonTooManyUnhealthy || !strings.Contains(c.Message, "33%") {
			return fmt.Sprintf("4 of 10 are unhealthy, and the condition is %+v", c)
		}
		return ""
	})
	// Another one changes nothing, neither here nor there.
	another := ours(t, c, failing, true)[1].Name
	c.Fail(t, another, "Boom", "the host burns")
	until(t, c, failing, func() string {
		if failing.Status.ReadyReplicas != 2 {
			return "not observed"
		}
		return ""
	})
	if audit.Made() != 10 || len(ours(t, c, failing, true)) != 4 {
		t.Errorf("%d Machines were made: something was replaced", audit.Made())
	}
	for _, m := range lost {
		c.Report(t, m.Name, true)
	}
	settled(t, c, failing, 4)
	if failing.Status.NextIndex != 6 || apimeta.FindStatusCondition(failing.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed) != nil {
		t.Errorf("both should be replaced, and the condition be gone: %+v", failing.Status)
	}
	c.Eventually(t, func() string {
		if n := eventsOf(t, c, failing, "RemediationHalted"); n != 1 {
			return fmt.Sprintf("%d events tell of it", n)
		}
		return ""
	})
	if n := eventsOf(t, c, other, "RemediationHalted"); n != 0 {
		t.Errorf("%d events tell of a set that has nothing to replace", n)
	}
}

// unhealthy shows what a health check has found of a Machine: it is to be replaced, or spared.
func unhealthy(t *testing.T, c *controllertest.Cluster, name string, remediation string) {
	t.Helper()
	m := &clusterv1alpha1.Machine{}
	m.Namespace, m.Name = c.Namespace, name
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	before := m.DeepCopy()
	for typ, reason := range map[string]string{
		clusterv1alpha1.ConditionHealthCheckSucceeded: clusterv1alpha1.ReasonUnhealthyNode,
		clusterv1alpha1.ConditionOwnerRemediated:      remediation,
	} {
		apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: typ, Status: metav1.ConditionFalse, Reason: reason})
	}
	if err := c.Status().Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// Machines that work, and that a health check wants replaced, are, as many at once as the set may.
// One that the check spares stays.
func TestLIFE11_SET4_UnhealthyMachinesAreReplaced(t *testing.T) {
	t.Parallel()
	const size = 12
	c := controllertest.New(t)
	actor := c.Act(t)
	// Longer than the pause after a creation, and not as long as a Machine may take to come up.
	ahead := &offset{}
	ahead.by.Store(int64(time.Minute))
	wanted := remediation.New()
	c.Manage(t, interceptor.Funcs{}, addRemediating(ahead, "50%", wanted))
	set := newSetWith(t, c, "nodes", size, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Remediation = &clusterv1alpha1.MachineRemediation{MaxInFlight: new(intstr.FromString("20%"))}
	})
	settled(t, c, set, size)
	all := ours(t, c, set, true)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return false })
	uids := map[types.UID]bool{}
	for _, m := range all[:4] {
		uids[m.UID] = true
	}
	wanted.Set(c.Namespace, uids)
	for _, m := range all[:4] {
		unhealthy(t, c, m.Name, clusterv1alpha1.ReasonWaitingForRemediation)
	}
	unhealthy(t, c, all[4].Name, clusterv1alpha1.ReasonTooManyUnhealthy)
	// Its condition is old: nobody wants it replaced any more.
	unhealthy(t, c, all[5].Name, clusterv1alpha1.ReasonWaitingForRemediation)
	until(t, c, set, func() string {
		if set.Status.NextIndex != size+3 || set.Status.Replicas != size {
			return fmt.Sprintf("a fifth of 12, rounded up, should be under way: %+v", set.Status)
		}
		return ""
	})
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	until(t, c, set, func() string {
		if set.Status.NextIndex != size+4 || set.Status.Replicas != size || set.Status.AvailableReplicas != size {
			return fmt.Sprintf("four should have been replaced: %+v", set.Status)
		}
		return ""
	})
	for _, spared := range all[4:6] {
		if !slices.ContainsFunc(ours(t, c, set, true), func(m clusterv1alpha1.Machine) bool { return m.Name == spared.Name }) {
			t.Errorf("Machine %s, which is spared, is gone", spared.Name)
		}
	}
}

// One set's template is broken: most of all Machines have failed, and none of them ever came up. A
// Machine of another set that worked is replaced.
func TestSAFE4_WhatNeverCameUpHaltsNoRepair(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	actor.Up(func(m *clusterv1alpha1.Machine) bool { return m.Labels["group"] != "broken" })
	stop := c.Manage(t, interceptor.Funcs{}, addLimited(&offset{}, "33%"))
	broken, other := newSetNamed(t, c, "broken", 6), newSetNamed(t, c, "other", 3)
	settled(t, c, other, 3)
	has(t, c, broken, 6, 0)
	for _, m := range ours(t, c, broken, true) {
		c.Fail(t, m.Name, "Failed", "no host was found")
	}
	victim := ours(t, c, other, true)[0].Name
	c.Die(t, victim)
	until(t, c, other, func() string {
		for _, m := range ours(t, c, other, true) {
			if m.Name == victim {
				return "the Machine that worked is there still"
			}
		}
		return ""
	})
	settled(t, c, other, 3)
	// Those that worked make a meltdown as before. Both die before the controller looks again, as
	// it replaces a single one.
	stop()
	for _, m := range ours(t, c, other, true)[:2] {
		c.Die(t, m.Name)
	}
	c.Manage(t, interceptor.Funcs{}, addLimited(&offset{}, "33%"))
	until(t, c, other, func() string {
		if !apimeta.IsStatusConditionFalse(other.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed) {
			return fmt.Sprintf("2 of 3 that worked have died: %+v", other.Status.Conditions)
		}
		return ""
	})
}

func TestSET4_PausesGrowWhileReplacementsFail(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return false })
	clock := &offset{}
	stop := c.Manage(t, interceptor.Funcs{}, addAt(clock))
	audit := c.Audit(t)
	set := newSet(t, c, 1)
	pokes := 0
	// passes lets time pass, and has the set looked at.
	passes := func(by time.Duration) {
		clock.by.Store(int64(by))
		pokes++
		controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) {
			s.Annotations = map[string]string{"look": fmt.Sprint(pokes)}
		})
	}
	// fails has the newest Machine fail, and waits until that is shown. Stamps of the API server
	// are whole seconds: the next Machine has to be made in a later one.
	fails := func(made int, pause string) {
		name := ""
		c.Eventually(t, func() string {
			for _, m := range ours(t, c, set, true) {
				if name = m.Name; audit.Made() == made && time.Since(m.CreationTimestamp.Time) > time.Second {
					return ""
				}
			}
			return fmt.Sprintf("%d Machines were made, not %d, or just now", audit.Made(), made)
		})
		c.Fail(t, name, "Boom", "bad image")
		hasFailure(t, c, set, "MachinesFailed: Machine "+name+": bad image (none is replaced within "+pause+" of the creation of one that failed)")
	}
	// Time passes just far enough, so that there is left as much of the next pause as possible.
	fails(1, "10s")
	passes(10 * time.Second)
	fails(2, "20s")
	passes(20 * time.Second)
	fails(3, "40s")
	until(t, c, set, func() string {
		if r := set.Status.Remediation; r == nil || r.Attempts != 2 || r.Newest.IsZero() {
			return fmt.Sprintf("two attempts were in vain, the status says %+v", r)
		}
		return ""
	})
	stop()
	c.Manage(t, interceptor.Funcs{}, addAt(clock))
	passes(40 * time.Second)
	fails(4, "1m20s")
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	passes(time.Hour)
	settled(t, c, set, 1)
	until(t, c, set, func() string {
		if set.Status.Remediation != nil {
			return fmt.Sprintf("one has come up, and the status says %+v", set.Status.Remediation)
		}
		return ""
	})
}

func TestLIFE12_APreservedMachineIsKept(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	c.Manage(t, interceptor.Funcs{}, addLimited(later(), "1"))
	audit := c.Audit(t)
	set := newSet(t, c, 3)
	settled(t, c, set, 3)
	kept, other := c.Machines(t)[0], c.Machines(t)[1]
	controllertest.Patch(t, c, &kept, func(m *clusterv1alpha1.Machine) {
		m.Annotations[clusterv1alpha1.PreserveMachineAnnotation] = ""
	})
	c.Fail(t, kept.Name, "Boom", "to be studied")
	hasFailure(t, c, set, "MachinesFailed: Machine "+kept.Name+": to be studied")
	// It is counted neither against the budget nor as unhealthy, of which there may be one.
	c.Fail(t, other.Name, "Boom", "the host burns")
	has(t, c, set, 3, 2)
	c.Eventually(t, func() string {
		if audit.Made() != 4 {
			return fmt.Sprintf("%d Machines were made", audit.Made())
		}
		return ""
	})
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(&other), &other); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Machine that failed is there still (%v)", err)
		}
		return ""
	})
	has(t, c, set, 3, 2)
	actor.Gone(func(*clusterv1alpha1.Machine) bool { return false })
	if m := c.Machines(t)[0]; m.Name != kept.Name || !m.DeletionTimestamp.IsZero() {
		t.Fatal("the preserved Machine is replaced")
	}
	controllertest.Patch(t, c, &kept, func(m *clusterv1alpha1.Machine) {
		m.Annotations[clusterv1alpha1.PreserveMachineAnnotation] = "false"
	})
	has(t, c, set, 4, 3)
	if m := c.Machines(t)[0]; m.Name != kept.Name || m.DeletionTimestamp.IsZero() {
		t.Error("a Machine that nobody wants to keep any more is not replaced")
	}
}

// A template that inherits from a MachineClass is tried again when that has changed, and not
// before.
func TestAPI5_ATemplateIsTriedAgainWhenItsClassIsMended(t *testing.T) {
	t.Parallel()
	c := controllertest.New(t)
	actor := c.Act(t)
	actor.Up(func(*clusterv1alpha1.Machine) bool { return false })
	class := &clusterv1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "large"}, Provider: "test",
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"smal"}`)},
	}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	c.Manage(t, interceptor.Funcs{}, addAt(later()))
	audit := c.Audit(t)
	set := newSetWith(t, c, "nodes", 1, func(s *clusterv1alpha1.MachineSet) {
		s.Spec.Template.Spec.ProviderSpec = clusterv1alpha1.ProviderSpec{
			ValueFrom: &clusterv1alpha1.ProviderSpecSource{MachineClass: clusterv1alpha1.LocalReference{Name: "large"}},
			Value:     clusterv1alpha1.ProviderSpecValue{OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu},
		}
	})
	refused := func(made int, spec string) {
		t.Helper()
		until(t, c, set, func() string {
			if there := ours(t, c, set, true); audit.Made() != made || len(there) != 1 {
				return fmt.Sprintf("%d made, %d there, want the one of %d", audit.Made(), len(there), made)
			}
			return ""
		})
		c.Refuse(t, ours(t, c, set, true)[0].Name, spec)
		until(t, c, set, func() string {
			if f := failureOf(set); !strings.HasPrefix(f, clusterv1alpha1.ReasonTemplateInvalid) {
				return "it says " + f
			}
			return ""
		})
	}
	refused(1, `{"flavor":"smal"}`)
	controllertest.Patch(t, c, class, func(mc *clusterv1alpha1.MachineClass) { mc.ProviderSpec.Raw = []byte(`{"flavor":"sml"}`) })
	refused(2, `{"flavor":"sml"}`)
	controllertest.Patch(t, c, class, func(mc *clusterv1alpha1.MachineClass) { mc.Labels = map[string]string{"looked": "at"} })
	actor.Up(func(*clusterv1alpha1.Machine) bool { return true })
	controllertest.Patch(t, c, class, func(mc *clusterv1alpha1.MachineClass) { mc.ProviderSpec.Raw = []byte(`{"flavor":"small"}`) })
	settled(t, c, set, 1)
	if audit.Made() != 3 {
		t.Errorf("%d Machines were made, one for each of three classes wanted", audit.Made())
	}
}
