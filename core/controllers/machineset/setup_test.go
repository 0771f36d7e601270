package machineset_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/machineset"
	"github.com/millwright-dev/millwright/core/internal/controllertest"
	"github.com/millwright-dev/millwright/core/remediation"
)

func TestMain(m *testing.M) { os.Exit(controllertest.Run(m)) }

func add(mgr ctrl.Manager) error { return addAt(&offset{})(mgr) }

// addAt adds the controller with a clock of its own. However many Machines fail, they are replaced.
func addAt(c *offset) func(ctrl.Manager) error { return addLimited(c, "100%") }

// addLimited adds the controller with a clock and a limit of unhealthy Machines.
func addLimited(c *offset, most string) func(ctrl.Manager) error {
	return addRemediating(c, most, nil)
}

// addRemediating adds one that replaces what health checks want replaced.
func addRemediating(c *offset, most string, wanted *remediation.Wanted) func(ctrl.Manager) error {
	return func(mgr ctrl.Manager) error {
		return machineset.Add(mgr, machineset.Options{
			MaxConcurrentReconciles: 4, Clock: c, MaxUnhealthy: intstr.Parse(most), Settle: settle, Remediation: wanted,
		})
	}
}

// settle is for how long a Machine must be known to have failed.
const settle = 300 * time.Millisecond

// offset is a clock that is ahead of the time by as much as a test says.
type offset struct{ by atomic.Int64 }

func (o *offset) Now() time.Time { return time.Now().Add(time.Duration(o.by.Load())) }

func (o *offset) Since(t time.Time) time.Duration { return o.Now().Sub(t) }

// newSet makes the set nodes, of that size.
func newSet(t *testing.T, c *controllertest.Cluster, replicas int32) *clusterv1alpha1.MachineSet {
	t.Helper()
	return newSetNamed(t, c, "nodes", replicas)
}

func machineSpec() clusterv1alpha1.MachineSpec {
	return clusterv1alpha1.MachineSpec{
		Versions: clusterv1alpha1.MachineVersions{Kubelet: "1.36.3"},
		ProviderSpec: clusterv1alpha1.ProviderSpec{Value: clusterv1alpha1.ProviderSpecValue{
			CloudProvider: "test", OperatingSystem: clusterv1alpha1.OperatingSystemUbuntu,
			CloudProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"small","disk":10}`)},
		}},
	}
}

func scaleTo(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, replicas int32) {
	t.Helper()
	controllertest.Patch(t, c, set, func(s *clusterv1alpha1.MachineSet) { s.Spec.Replicas = &replicas })
}

// settled waits until the set has seen its spec, and has that many Machines, all available.
func settled(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, replicas int32) {
	t.Helper()
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.Replicas != replicas || s.AvailableReplicas != replicas {
			return fmt.Sprintf("status is %+v, %d should be available", s, replicas)
		}
		return ""
	})
}

func atMost(t *testing.T, audit *controllertest.Audit, n int) {
	t.Helper()
	if audit.Most() > n {
		t.Errorf("there were %d Machines at once, %d should have been the most", audit.Most(), n)
	}
}

func newSetNamed(t *testing.T, c *controllertest.Cluster, name string, replicas int32) *clusterv1alpha1.MachineSet {
	t.Helper()
	return newSetWith(t, c, name, replicas, func(*clusterv1alpha1.MachineSet) {})
}

// newSetWith changes the set before it is made.
func newSetWith(
	t *testing.T, c *controllertest.Cluster, name string, replicas int32, change func(*clusterv1alpha1.MachineSet),
) *clusterv1alpha1.MachineSet {
	t.Helper()
	set := &clusterv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec: clusterv1alpha1.MachineSetSpec{
			Replicas: &replicas,
			Selector: clusterv1alpha1.LabelSelector{MatchLabels: map[string]string{"group": name}},
			Template: clusterv1alpha1.MachineTemplateSpec{
				ObjectMeta: clusterv1alpha1.ObjectMeta{
					Labels: map[string]string{"group": name}, Annotations: map[string]string{"note": "kept"},
				},
				Spec: machineSpec(),
			},
		},
	}
	change(set)
	if err := c.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return set
}

func failureOf(set *clusterv1alpha1.MachineSet) string {
	c := apimeta.FindStatusCondition(set.Status.Conditions, clusterv1alpha1.ConditionReplicaFailure)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func hasFailure(t *testing.T, c *controllertest.Cluster, set *clusterv1alpha1.MachineSet, want string) {
	t.Helper()
	c.Eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if got := failureOf(set); got != want {
			return fmt.Sprintf("ReplicaFailure is %q, want %q", got, want)
		}
		return ""
	})
}
