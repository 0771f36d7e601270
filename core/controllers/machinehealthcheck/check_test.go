package machinehealthcheck

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/remediation"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

// fleet is a namespace with Machines that work, and the controller.
type fleet struct {
	*testing.T
	*controllertest.Cluster
	wanted *remediation.Wanted
}

// newFleet makes Machines of a set, each with a Node, and runs the controller. The clock of
// timeouts runs.
func newFleet(t *testing.T, o Options, names ...string) fleet {
	t.Helper()
	f := fleet{T: t, Cluster: controllertest.New(t)}
	for _, name := range names {
		f.add(name)
	}
	o.Clocks, o.Remediation = running{}, remediation.New()
	f.wanted = o.Remediation
	f.Manage(t, interceptor.Funcs{}, func(mgr ctrl.Manager) error {
		o.Workload = mgr
		return Add(mgr, o)
	})
	return f
}

var began = time.Now()

// running are clocks that run.
type running struct{}

func (running) Cluster() (reading time.Duration, runs bool) { return time.Since(began), true }

func (running) DriverRuns(provider string) bool { return provider == "test" }

func (f fleet) add(name string) {
	f.Helper()
	m := &clusterv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name, Labels: map[string]string{"pool": "a"}},
		Spec: clusterv1alpha1.MachineSpec{
			Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
			ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
				CloudProvider: "test", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
				CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"small"}`)},
			}},
		},
	}
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.MachineSetKind, Name: "set", UID: types.UID("1"), Controller: new(true),
	}}
	f.check(f.Create(f.Context(), m))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: f.node(name), Annotations: map[string]string{clusterv1alpha1.NodeMachineAnnotation: f.Namespace + "/" + name},
	}}
	f.check(f.Create(f.Context(), node))
	f.Cleanup(func() { _ = client.IgnoreNotFound(f.Delete(f.Context(), node)) })
	m.Status.Phase, m.Status.NodeRef = clusterv1alpha1.MachinePhaseRunning, &corev1.ObjectReference{Kind: "Node", Name: node.Name}
	m.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ConditionInstanceReady, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ReasonInstanceRunning, LastTransitionTime: metav1.Now(),
	}}
	controllertest.SetReady(m, true)
	f.check(f.Status().Update(f.Context(), m))
	f.report(name, corev1.NodeReady, corev1.ConditionTrue)
}

func (f fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f fleet) node(machine string) string { return f.Namespace + "-" + machine }

// report has the Machine's Node report a condition.
func (f fleet) report(machine string, typ corev1.NodeConditionType, status corev1.ConditionStatus) {
	f.Helper()
	node := &corev1.Node{}
	f.check(f.Get(f.Context(), client.ObjectKey{Name: f.node(machine)}, node))
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: typ, Status: status, LastTransitionTime: metav1.Now()}}
	f.check(f.Status().Patch(f.Context(), node, client.StrategicMergeFrom(before)))
}

// apply makes a MachineHealthCheck of all Machines.
func (f fleet) apply(name string, change func(*clusterv1alpha1.MachineHealthCheckSpec)) *clusterv1alpha1.MachineHealthCheck {
	f.Helper()
	c := &clusterv1alpha1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name},
		Spec: clusterv1alpha1.MachineHealthCheckSpec{
			Selector: clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			UnhealthyNodeConditions: []clusterv1alpha1.UnhealthyCondition{
				{Type: "DiskPressure", Status: metav1.ConditionTrue, Timeout: metav1.Duration{Duration: time.Second}},
			},
		},
	}
	change(&c.Spec)
	f.check(f.Create(f.Context(), c))
	return c
}

// awaitMachine waits until the Machine has these reasons of HealthCheckSucceeded and
// OwnerRemediated; empty for none.
func (f fleet) awaitMachine(name, health, remediated string) {
	f.Helper()
	f.Eventually(f.T, func() string {
		m := &clusterv1alpha1.Machine{}
		f.check(f.Get(f.Context(), client.ObjectKey{Namespace: f.Namespace, Name: name}, m))
		reason := func(typ string) string {
			if c := apimeta.FindStatusCondition(m.Status.Conditions, typ); c != nil {
				return c.Reason
			}
			return ""
		}
		if is := reason(clusterv1alpha1.ConditionHealthCheckSucceeded); is != health {
			return fmt.Sprintf("Machine %s is found %q", name, is)
		}
		if is := reason(clusterv1alpha1.ConditionOwnerRemediated); is != remediated {
			return fmt.Sprintf("Machine %s is remediated %q", name, is)
		}
		if is := f.wanted.Has(f.Namespace, m.UID); is != (remediated == clusterv1alpha1.ReasonWaitingForRemediation) {
			return fmt.Sprintf("sets are to replace Machine %s: %t", name, is)
		}
		return ""
	})
}

func (f fleet) awaitCheck(c *clusterv1alpha1.MachineHealthCheck, expected, healthy int32, reason string, listed ...clusterv1alpha1.UnhealthyMachine) {
	f.Helper()
	f.Eventually(f.T, func() string {
		f.check(f.Get(f.Context(), client.ObjectKeyFromObject(c), c))
		s := &c.Status
		allowed := apimeta.FindStatusCondition(s.Conditions, clusterv1alpha1.ConditionRemediationAllowed)
		if allowed == nil || allowed.Reason != reason || s.ExpectedMachines != expected || s.CurrentHealthy != healthy ||
			fmt.Sprint(s.UnhealthyMachines) != fmt.Sprint(listed) {
			return fmt.Sprintf("the status is %+v", *s)
		}
		return ""
	})
}

func none(*clusterv1alpha1.MachineHealthCheckSpec) {}

func TestLIFE11_UnhealthyMachineIsShownUntilItIsWell(t *testing.T) {
	f := newFleet(t, Options{}, "sick", "well")
	check := f.apply("disks", none)
	f.awaitCheck(check, 2, 2, clusterv1alpha1.ReasonWithinLimits)
	f.report("sick", corev1.NodeDiskPressure, corev1.ConditionTrue)
	f.awaitMachine("sick", clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonWaitingForRemediation)
	f.awaitCheck(check, 2, 1, clusterv1alpha1.ReasonWithinLimits,
		clusterv1alpha1.UnhealthyMachine{Name: "sick", Reason: clusterv1alpha1.ReasonUnhealthyNode, Remediation: clusterv1alpha1.ReasonWaitingForRemediation})
	f.report("sick", corev1.NodeDiskPressure, corev1.ConditionFalse)
	f.awaitMachine("sick", "", "")
	f.awaitMachine("well", "", "")
	f.awaitCheck(check, 2, 2, clusterv1alpha1.ReasonWithinLimits)
}

func TestLIFE11_SparedMachineSaysWhy(t *testing.T) {
	f := newFleet(t, Options{}, "a", "b", "c")
	check := f.apply("disks", func(s *clusterv1alpha1.MachineHealthCheckSpec) { s.UnhealthyRange = "[1-1]" })
	f.report("a", corev1.NodeDiskPressure, corev1.ConditionTrue)
	f.report("b", corev1.NodeDiskPressure, corev1.ConditionTrue)
	f.awaitMachine("a", clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonTooManyUnhealthy)
	f.Eventually(t, func() string {
		f.check(f.Get(t.Context(), client.ObjectKeyFromObject(check), check))
		if apimeta.IsStatusConditionFalse(check.Status.Conditions, clusterv1alpha1.ConditionRemediationAllowed) {
			return ""
		}
		return fmt.Sprintf("the status is %+v", check.Status)
	})
	f.report("b", corev1.NodeDiskPressure, corev1.ConditionFalse)
	f.awaitMachine("a", clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonWaitingForRemediation)
	m := &clusterv1alpha1.Machine{}
	f.check(f.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "a"}, m))
	controllertest.Patch(t, f.Cluster, m, func(m *clusterv1alpha1.Machine) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1alpha1.SkipRemediationAnnotation, "")
	})
	f.awaitMachine("a", clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonRemediationSkipped)
	controllertest.Patch(t, f.Cluster, m, func(m *clusterv1alpha1.Machine) {
		m.Annotations = map[string]string{clusterv1alpha1.RemediateMachineAnnotation: ""}
	})
	f.awaitMachine("a", clusterv1alpha1.ReasonRemediationRequested, clusterv1alpha1.ReasonWaitingForRemediation)
	f.check(f.Delete(t.Context(), check))
	f.awaitMachine("a", "", "")
}

func TestLIFE11_DefaultCheckReplacesWhatIsNotReady(t *testing.T) {
	f := newFleet(t, Options{DefaultTimeout: time.Second}, "a", "b")
	f.report("a", corev1.NodeReady, corev1.ConditionUnknown)
	f.awaitMachine("a", clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonWaitingForRemediation)
	f.awaitMachine("b", "", "")
	// A check that selects it is held to instead.
	f.apply("disks", none)
	f.awaitMachine("a", "", "")
}

func TestLIFE11_CheckThatCannotBeReadSaysSo(t *testing.T) {
	f := newFleet(t, Options{}, "a")
	check := f.apply("broken", func(s *clusterv1alpha1.MachineHealthCheckSpec) {
		s.Selector.MatchLabels = map[string]string{"no label/at all": "a"}
	})
	f.awaitCheck(check, 0, 0, clusterv1alpha1.ReasonCheckInvalid)
	f.apply("works", none)
	f.report("a", corev1.NodeDiskPressure, corev1.ConditionTrue)
	f.awaitMachine("a", clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonWaitingForRemediation)
}

// A Machine whose Node has registered is not replaced for want of one, though nothing has told the
// Machine of it yet: watches may lag behind for longer than the timeout. One whose controller has
// seen the Node and cannot take it is, but for a Node with an unknown providerID: the next one
// would have such an ID, too.
func TestLIFE11_ANodeThatIsThereIsNotMissed(t *testing.T) {
	f := newFleet(t, Options{}, "late", "lost")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	f.check(f.Create(t.Context(), node))
	t.Cleanup(func() { _ = client.IgnoreNotFound(f.Delete(context.Background(), node)) })
	change := func(name string, change func(*clusterv1alpha1.Machine)) {
		m := &clusterv1alpha1.Machine{}
		f.check(f.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: name}, m))
		change(m)
		f.check(f.Status().Update(t.Context(), m))
	}
	for _, name := range []string{"late", "lost"} {
		change(name, func(m *clusterv1alpha1.Machine) {
			m.Status.NodeRef = nil
			controllertest.SetReady(m, false)
		})
	}
	f.apply("joins", func(s *clusterv1alpha1.MachineHealthCheckSpec) {
		s.NodeStartupTimeout = &metav1.Duration{Duration: time.Second}
	})
	f.awaitMachine("lost", clusterv1alpha1.ReasonNodeStartupTimeout, clusterv1alpha1.ReasonWaitingForRemediation)
	f.awaitMachine("late", "", "")
	nodeReady := func(reason string) func(*clusterv1alpha1.Machine) {
		return func(m *clusterv1alpha1.Machine) {
			apimeta.FindStatusCondition(m.Status.Conditions, clusterv1alpha1.ConditionNodeReady).Reason = reason
		}
	}
	change("late", nodeReady(clusterv1alpha1.ReasonNodeConflict))
	f.awaitMachine("late", clusterv1alpha1.ReasonNodeStartupTimeout, clusterv1alpha1.ReasonWaitingForRemediation)
	change("lost", nodeReady(clusterv1alpha1.ReasonProviderIDUnknown))
	f.awaitMachine("lost", "", "")
}
