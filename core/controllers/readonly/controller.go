package readonly

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments;machinesets;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments/status;machinesets/status;machines/status,verbs=patch

// message is the same for all objects, and never changes.
const message = "The manager runs with --read-only: nothing is created, changed or deleted."

// Add adds to mgr what shows that it only looks on. No other controller may run beside it.
func Add(mgr ctrl.Manager) error {
	for name, k := range map[string]kind{
		"machinedeployment": {
			empty: func() client.Object { return &clusterv1alpha1.MachineDeployment{} },
			conditions: func(o client.Object) *[]metav1.Condition {
				return &o.(*clusterv1alpha1.MachineDeployment).Status.Conditions
			},
		},
		"machineset": {
			empty:      func() client.Object { return &clusterv1alpha1.MachineSet{} },
			conditions: func(o client.Object) *[]metav1.Condition { return &o.(*clusterv1alpha1.MachineSet).Status.Conditions },
		},
		"machine": {
			empty:      func() client.Object { return &clusterv1alpha1.Machine{} },
			conditions: func(o client.Object) *[]metav1.Condition { return &o.(*clusterv1alpha1.Machine).Status.Conditions },
		},
	} {
		k.client = mgr.GetClient()
		err := ctrl.NewControllerManagedBy(mgr).Named("readonly-" + name).For(k.empty()).Complete(&k)
		if err != nil {
			return fmt.Errorf("add the controller that marks each %s: %w", name, err)
		}
	}
	return nil
}

// kind marks the objects of one kind.
type kind struct {
	client client.Client
	empty  func() client.Object
	// conditions are where an object of this kind has them.
	conditions func(client.Object) *[]metav1.Condition
}

// Reconcile sets the condition, unless it stands there already or belongs to an object above.
func (k *kind) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	o := k.empty()
	if err := k.client.Get(ctx, r.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if metav1.GetControllerOf(o) != nil {
		return ctrl.Result{}, nil
	}
	before := o.DeepCopyObject().(client.Object)
	changed := apimeta.SetStatusCondition(k.conditions(o), metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonReadOnly, Message: message, ObservedGeneration: o.GetGeneration(),
	})
	if !changed {
		return ctrl.Result{}, nil
	}
	// Conditions are one list to a merge patch: it must not undo what somebody else has written
	// meanwhile.
	err := k.client.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
