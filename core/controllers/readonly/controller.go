package readonly

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/conditions"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments;machinesets;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machinedeployments/status;machinesets/status;machines/status,verbs=patch

// message is the same for all objects, and never changes.
const message = "The manager runs with --read-only: nothing is created, changed or deleted."

// Add adds to mgr what shows that it only looks on. No other controller may run beside it.
func Add(mgr ctrl.Manager) error {
	for name, empty := range map[string]func() client.Object{
		"machinedeployment": func() client.Object { return &clusterv1alpha1.MachineDeployment{} },
		"machineset":        func() client.Object { return &clusterv1alpha1.MachineSet{} },
		"machine":           func() client.Object { return &clusterv1alpha1.Machine{} },
	} {
		r := &reconciler{client: mgr.GetClient(), empty: empty}
		if err := ctrl.NewControllerManagedBy(mgr).Named("readonly-" + name).For(empty()).Complete(r); err != nil {
			return fmt.Errorf("add the controller that marks each %s: %w", name, err)
		}
	}
	return nil
}

// reconciler marks the objects of one kind, of which empty makes one to read into.
type reconciler struct {
	client client.Client
	empty  func() client.Object
}

// Reconcile sets the condition, unless the object has it already or belongs to an object above.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if metav1.GetControllerOfNoCopy(o) != nil {
		return ctrl.Result{}, nil
	}
	return conditions.Write(ctx, r.client, o, metav1.Condition{
		Type: clusterv1alpha1.ConditionPaused, Status: metav1.ConditionTrue,
		Reason: clusterv1alpha1.ReasonReadOnly, Message: message,
	})
}
