package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/ownership"
)

// pauseOf says why nothing is to be done for the Machine: it, or its Cluster, is paused.
func pauseOf(ctx context.Context, clusters client.Reader, m *clusterv1alpha1.Machine) (lifecycle.Pause, error) {
	if annotations.IsPaused(m) {
		c := conditions.Paused(m)
		return lifecycle.Pause{Reason: c.Reason, Message: c.Message + "."}, nil
	}
	if m.Spec.ClusterRef == nil {
		return lifecycle.Pause{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterRef.Name}
	err := clusters.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !annotations.IsPaused(cluster) {
		return lifecycle.Pause{}, nil
	}
	if err != nil {
		return lifecycle.Pause{}, fmt.Errorf("read the Machine's Cluster: %w", err)
	}
	return lifecycle.Pause{
		Reason: clusterv1alpha1.ReasonPausedByAnnotation,
		Message: fmt.Sprintf("Cluster %s carries the annotation %s: nothing is done until it is gone.",
			cluster.Name, clusterv1alpha1.PausedAnnotation),
	}, nil
}

// deleteNowOn names the object on which somebody asks for the Machine to be deleted now; empty for
// none. A template that asks for it is not obeyed: each replacement would be deleted at once.
func deleteNowOn(m *clusterv1alpha1.Machine, node *corev1.Node) string {
	templated := slices.Contains(ownership.ReadManaged(m).Annotations, clusterv1alpha1.DeleteNowAnnotation)
	switch {
	case annotations.IsOn(m, clusterv1alpha1.DeleteNowAnnotation) && !templated:
		return "the Machine"
	case node != nil && annotations.IsOn(node, clusterv1alpha1.DeleteNowAnnotation):
		return "Node " + node.Name
	}
	return ""
}

// isForgotten says whether the Machine is to go without its VM. Its own uid is asked for, so that
// no template can ask it of others. Who may set the annotation is the API server's to judge: see
// deploy/crds/forget_policy.yaml.
func isForgotten(m *clusterv1alpha1.Machine) bool {
	uid := ptr.Deref(m.Spec.MachineUID, "")
	return uid != "" && m.Annotations[clusterv1alpha1.ForgetAnnotation] == uid
}

// deleteMachine deletes the Machine, as anybody may.
func (r *reconciler) deleteMachine(ctx context.Context, s *machineScope) error {
	err := r.client.Delete(ctx, s.machine, client.Preconditions{UID: &s.machine.UID})
	if err = client.IgnoreNotFound(err); err != nil {
		s.state.Memory.DeleteNowAt = time.Time{}
		return fmt.Errorf("delete the Machine, as its annotation asks: %w", err)
	}
	return nil
}

// leaveAlone does nothing for a Machine that another system works on, but to show why: no driver is
// asked for it, no Secret read, no Node touched, no finalizer removed, also when it is deleted.
// What a call that was under way came to is kept by its driver's client, and taken over if the
// Machine is Millwright's again.
//
// Taking the VM over from the other system, by AdoptMachine, would begin here.
func (r *reconciler) leaveAlone(ctx context.Context, m *clusterv1alpha1.Machine, mem *memory, why string, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	if mem.driver != nil {
		mem.driver.Untrack(client.ObjectKeyFromObject(m), mem.uid)
	}
	contested := slices.Contains(m.Finalizers, clusterv1alpha1.MachineFinalizer) && !coexistence.IsLeftAlone(m)
	version := m.ResourceVersion
	result, err := coexistence.LeaveAlone(ctx, r.client, m, why)
	if err != nil || m.ResourceVersion == version {
		return result, err
	}
	mem.version = m.ResourceVersion
	if contested {
		// It was Millwright's before: two systems work on it now, or one was moved in without the
		// other being stopped.
		r.events.Eventf(m, nil, corev1.EventTypeWarning, clusterv1alpha1.ReasonManagedByAnother, "LeaveAlone", "%s", why)
	}
	return result, nil
}
