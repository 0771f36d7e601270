package controllertest

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/ownership"
)

// Actor plays the controller of Machines: it brings them up, and lets go of those that are deleted.
type Actor struct {
	cluster *Cluster
	mu      sync.Mutex
	up      func(*clusterv1alpha1.Machine) bool
	gone    func(*clusterv1alpha1.Machine) bool
}

// Act starts an Actor, which runs until the test ends. All Machines come up, and all deletions
// succeed, until Up or Gone say otherwise.
func (c *Cluster) Act(t *testing.T) *Actor {
	t.Helper()
	yes := func(*clusterv1alpha1.Machine) bool { return true }
	a := &Actor{cluster: c, up: yes, gone: yes}
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(t.Context(), func(ctx context.Context) {
			if err := a.round(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("the actor: %v", err)
			}
		}, tick)
	})
	t.Cleanup(running.Wait)
	return a
}

// Up decides from now on which Machines come up.
func (a *Actor) Up(up func(*clusterv1alpha1.Machine) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.up = up
}

// Gone decides from now on which deletions succeed.
func (a *Actor) Gone(gone func(*clusterv1alpha1.Machine) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = gone
}

func (a *Actor) round(ctx context.Context) error {
	a.mu.Lock()
	up, gone := a.up, a.gone
	a.mu.Unlock()
	machines := &clusterv1alpha1.MachineList{}
	if err := a.cluster.List(ctx, machines, client.InNamespace(a.cluster.Namespace)); err != nil {
		return err
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		var err error
		switch {
		case !m.DeletionTimestamp.IsZero() && m.Status.Phase != clusterv1alpha1.MachinePhaseDeleting:
			err = a.takeDown(ctx, m)
		case !m.DeletionTimestamp.IsZero() && gone(m):
			err = a.release(ctx, m)
		case m.DeletionTimestamp.IsZero() && m.Status.FailureReason == nil && up(m) && m.Status.NodeRef == nil:
			err = a.bringUp(ctx, m)
		}
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// takeDown begins with a Machine's deletion. That it had failed is not to be seen any more.
func (a *Actor) takeDown(ctx context.Context, m *clusterv1alpha1.Machine) error {
	m.Status.Phase = clusterv1alpha1.MachinePhaseDeleting
	m.Status.FailureReason, m.Status.FailureMessage = nil, nil
	return a.cluster.Status().Update(ctx, m)
}

// release removes the finalizer once the Machine may go.
func (a *Actor) release(ctx context.Context, m *clusterv1alpha1.Machine) error {
	err := ownership.CheckRemoval(ctx, a.cluster, m)
	if errors.Is(err, ownership.ErrNameNotRecorded) {
		return nil
	}
	if err != nil {
		return err
	}
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, clusterv1alpha1.MachineFinalizer)
	return a.cluster.Patch(ctx, m, client.MergeFrom(before))
}

func (a *Actor) bringUp(ctx context.Context, m *clusterv1alpha1.Machine) error {
	m.Status.Phase = clusterv1alpha1.MachinePhaseRunning
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
	SetReady(m, true)
	return a.cluster.Status().Update(ctx, m)
}

// SetReady sets the conditions Ready and NodeReady in m.
func SetReady(m *clusterv1alpha1.Machine, ready bool) {
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	for _, kind := range []string{clusterv1alpha1.ConditionReady, clusterv1alpha1.ConditionNodeReady} {
		apimeta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test"})
	}
}

// Fail makes a Machine Failed, for that reason.
func (c *Cluster) Fail(t *testing.T, name, reason, message string) {
	t.Helper()
	c.updateStatus(t, name, func(m *clusterv1alpha1.Machine) {
		m.Status.Phase, m.Status.FailureReason, m.Status.FailureMessage = clusterv1alpha1.MachinePhaseFailed, &reason, &message
		m.Status.NodeRef = nil
		SetReady(m, false)
	})
}

// Refuse makes a Machine Failed because its cloudProviderSpec, which it inherits, was refused.
func (c *Cluster) Refuse(t *testing.T, name, spec string) {
	t.Helper()
	c.updateStatus(t, name, func(m *clusterv1alpha1.Machine) {
		m.Status.ProviderSpec = &clusterv1alpha1.AppliedProviderSpec{
			CloudProvider: "test", CloudProviderSpec: runtime.RawExtension{Raw: []byte(spec)},
		}
	})
	c.Fail(t, name, clusterv1alpha1.ReasonSpecInvalid, "the spec is wrong")
}

// Die makes a Machine that worked Failed: its VM is gone. Of such a Machine programs are told no
// failure.
func (c *Cluster) Die(t *testing.T, name string) {
	t.Helper()
	c.updateStatus(t, name, func(m *clusterv1alpha1.Machine) {
		m.Status.Phase = clusterv1alpha1.MachinePhaseFailed
		SetReady(m, false)
	})
}

// Report makes a Machine's Node Ready, or not.
func (c *Cluster) Report(t *testing.T, name string, ready bool) {
	t.Helper()
	c.updateStatus(t, name, func(m *clusterv1alpha1.Machine) { SetReady(m, ready) })
}

func (c *Cluster) updateStatus(t *testing.T, name string, change func(*clusterv1alpha1.Machine)) {
	t.Helper()
	err := retry.RetryOnConflict(wait.Backoff{Duration: tick, Steps: 100}, func() error {
		m := &clusterv1alpha1.Machine{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, m); err != nil {
			return err
		}
		change(m)
		return c.Status().Update(t.Context(), m)
	})
	if err != nil {
		t.Fatal(err)
	}
}
