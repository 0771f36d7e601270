package readonly

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments;machinesets;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments/status;machinesets/status;machines/status,verbs=patch

// message is the same for all objects, and never changes.
const message = "The manager runs with --read-only: nothing is created, changed or deleted."

// Add adds to mgr what shows that it only looks on. No other controller may run beside it.
func Add(mgr ctrl.Manager) error {
	return errors.Join(
		add(mgr, "readonly-machinedeployment", &clusterv1alpha1.MachineDeployment{}),
		add(mgr, "readonly-machineset", &clusterv1alpha1.MachineSet{}),
		add(mgr, "readonly-machine", &clusterv1alpha1.Machine{}),
	)
}

func add[T client.Object](mgr ctrl.Manager, name string, kind T) error {
	r := reconcile.AsReconciler(mgr.GetClient(), reconciler[T]{client: mgr.GetClient()})
	if err := ctrl.NewControllerManagedBy(mgr).Named(name).For(kind).Complete(r); err != nil {
		return fmt.Errorf("add the controller %s: %w", name, err)
	}
	return nil
}

// reconciler marks the objects of one kind.
type reconciler[T client.Object] struct{ client client.Client }

// Reconcile sets the condition, unless the object has it already or belongs to an object above.
func (r reconciler[T]) Reconcile(ctx context.Context, o T) (ctrl.Result, error) {
	if metav1.GetControllerOfNoCopy(o) != nil {
		return ctrl.Result{}, nil
	}
	return conditions.Write(ctx, r.client, o, metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonReadOnly, Message: message,
	})
}
