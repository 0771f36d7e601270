package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/conditions"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/ownership"
)

// pauseOf says why nothing is to be done for the Machine: it, or its Cluster, is paused.
func (r *reconciler) pauseOf(ctx context.Context, m *clusterv1alpha1.Machine) (lifecycle.Pause, error) {
	if annotations.IsPaused(m) {
		c := conditions.Paused(m)
		return lifecycle.Pause{Reason: c.Reason, Message: c.Message + "."}, nil
	}
	if m.Spec.ClusterRef == nil {
		return lifecycle.Pause{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterRef.Name}
	err := r.client.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy)
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
	uid := machineUID(m)
	return uid != "" && m.Annotations[clusterv1alpha1.ForgetAnnotation] == uid
}

// deleteMachine deletes the Machine, as anybody may.
func (r *reconciler) deleteMachine(ctx context.Context, s *machineScope) error {
	err := r.client.Delete(ctx, s.machine, client.Preconditions{UID: &s.machine.UID})
	if err = client.IgnoreNotFound(err); err != nil {
		s.state.Memory.DeleteNowAt = time.Time{}
		s.memory.lifecycle = s.state.Memory
		return fmt.Errorf("delete the Machine, as its annotation asks: %w", err)
	}
	return nil
}

// machinesUnder returns the Machines that name a Cluster.
func (r *reconciler) machinesUnder(ctx context.Context, cluster client.Object) []reconcile.Request {
	var machines clusterv1alpha1.MachineList
	if err := r.client.List(ctx, &machines, client.InNamespace(cluster.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range machines.Items {
		if ref := machines.Items[i].Spec.ClusterRef; ref != nil && ref.Name == cluster.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&machines.Items[i])})
		}
	}
	return requests
}

// pauseChanged passes a Cluster that is paused, or goes on.
func pauseChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return annotations.IsPaused(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return annotations.IsPaused(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return annotations.IsPaused(e.ObjectOld) != annotations.IsPaused(e.ObjectNew)
		},
	}
}
