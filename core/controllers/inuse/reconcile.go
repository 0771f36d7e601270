package inuse

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// reconciler keeps the objects of one kind.
type reconciler struct {
	client client.Client
	// live reads what no cache has.
	live   client.Reader
	kind   string
	parent client.Object
}

// Reconcile brings the finalizer of one object in step with its use.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	parent, _ := r.parent.DeepCopyObject().(client.Object)
	if err := r.client.Get(ctx, request.NamespacedName, parent); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	used, err := r.isInUse(ctx, parent)
	if err != nil {
		return ctrl.Result{}, err
	}
	held, err := r.settle(ctx, parent, used)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeue.Soon}, nil
	}
	if held {
		return ctrl.Result{RequeueAfter: heldPause}, err
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// heldPause lies between two tries to release Secrets that may not be patched.
const heldPause = time.Minute

// isInUse says whether anything names the object.
func (r *reconciler) isInUse(ctx context.Context, parent client.Object) (bool, error) {
	for _, list := range []client.ObjectList{
		&clusterv1alpha1.MachineDeploymentList{}, &clusterv1alpha1.MachineSetList{}, &clusterv1alpha1.MachineList{},
	} {
		err := r.client.List(ctx, list, client.InNamespace(parent.GetNamespace()), client.UnsafeDisableDeepCopy,
			client.MatchingFields{parentIndex: r.kind + "/" + parent.GetName()})
		if err != nil {
			return false, fmt.Errorf("look for who names it: %w", err)
		}
		if apimeta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// settle sets or removes the finalizer and writes the status. held: the object stays for the
// Secrets that it names in there.
func (r *reconciler) settle(ctx context.Context, parent client.Object, used bool) (held bool, err error) {
	// The API server refuses a finalizer for what is on its way out.
	if used && parent.GetDeletionTimestamp().IsZero() {
		if err := r.patchFinalizer(ctx, parent, controllerutil.AddFinalizer); err != nil {
			return false, err
		}
	}
	status := statusOf(parent)
	secrets, err := r.release(ctx, parent.GetNamespace(), status.ProtectedSecrets)
	if err != nil {
		return false, err
	}
	if err := r.report(ctx, parent, status, used, secrets); err != nil {
		return false, err
	}
	if used || len(secrets) > 0 {
		return len(secrets) > 0, nil
	}
	return false, r.patchFinalizer(ctx, parent, controllerutil.RemoveFinalizer)
}

// release takes the finalizer off Secrets to which earlier versions gave one, and returns those
// that it may not change.
func (r *reconciler) release(ctx context.Context, home string, secrets []clusterv1alpha1.SecretReference) (held []clusterv1alpha1.SecretReference, err error) {
	for _, ref := range secrets {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := r.live.Get(ctx, types.NamespacedName{Namespace: cmp.Or(ref.Namespace, home), Name: ref.Name}, secret)
		if err == nil {
			err = r.patchFinalizer(ctx, secret, controllerutil.RemoveFinalizer)
		}
		if apierrors.IsForbidden(err) {
			held = append(held, ref)
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("release Secret %s: %w", ref.Name, err)
		}
	}
	return held, nil
}

// patchFinalizer adds or removes the finalizer, unless the object is as change makes it.
func (r *reconciler) patchFinalizer(ctx context.Context, o client.Object, change func(o client.Object, finalizer string) bool) error {
	before, _ := o.DeepCopyObject().(client.Object)
	if !change(o, clusterv1alpha1.InUseFinalizer) {
		return nil
	}
	return r.client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// report writes the status, if it differs.
func (r *reconciler) report(ctx context.Context, parent client.Object, status *clusterv1alpha1.InheritedStatus, used bool, held []clusterv1alpha1.SecretReference) error {
	before, _ := parent.DeepCopyObject().(client.Object)
	was := status.DeepCopy()
	condition := metav1.Condition{
		Type: clusterv1alpha1.ConditionInUse, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ReasonNotNamed,
		Message: "Nothing names it.", ObservedGeneration: parent.GetGeneration(),
	}
	if used {
		condition.Status, condition.Reason = metav1.ConditionTrue, clusterv1alpha1.ReasonNamedByMachines
		condition.Message = "MachineDeployments, MachineSets or Machines name it: it is not deleted as long as they do."
	}
	if len(held) > 0 {
		condition.Message += fmt.Sprintf(" An earlier version has left a finalizer on Secret %s, which Millwright may not patch: "+
			"bind its ServiceAccount to the ClusterRole millwright-credentials there.", held[0].Name)
	}
	apimeta.SetStatusCondition(&status.Conditions, condition)
	status.ObservedGeneration, status.ProtectedSecrets = parent.GetGeneration(), held
	if apiequality.Semantic.DeepEqual(was, status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, parent, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// statusOf is the status of an object that is inherited from.
func statusOf(o client.Object) *clusterv1alpha1.InheritedStatus {
	switch parent := o.(type) {
	case *clusterv1alpha1.MachineClass:
		return &parent.Status
	case *clusterv1alpha1.Cluster:
		return &parent.Status
	}
	return &clusterv1alpha1.InheritedStatus{}
}
