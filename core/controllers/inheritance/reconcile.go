package inheritance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/controllers/fleet"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// reconciler keeps the objects of one kind.
type reconciler struct {
	client client.Client
	// live reads what no cache has.
	live   client.Reader
	specs  *specresolver.Resolver
	kind   string
	parent client.Object
	// protected are the uids of objects whose Secrets this process has looked after, as their status says.
	protected sync.Map
}

// Reconcile brings the finalizers of one object and of its Secrets in step with its use. A Secret gets its finalizer before
// anything needs it and loses it first: what is written down in the status is what may still carry one.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	parent, _ := r.parent.DeepCopyObject().(client.Object)
	if err := r.client.Get(ctx, request.NamespacedName, parent); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	used, err := r.used(ctx, parent)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.settle(ctx, parent, used)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: fleet.Soon}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// used says whether anything names the object.
func (r *reconciler) used(ctx context.Context, parent client.Object) (bool, error) {
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

func (r *reconciler) settle(ctx context.Context, parent client.Object, used bool) error {
	secrets, status := inherited(parent)
	if !used {
		secrets = nil
	}
	secrets = slices.DeleteFunc(secrets, func(ref clusterv1alpha1.SecretReference) bool {
		return !r.specs.MayRefer(parent.GetNamespace(), ref.Namespace)
	})
	if used && parent.GetDeletionTimestamp().IsZero() {
		if err := r.finalize(ctx, parent, true); err != nil {
			return err
		}
	}
	if all := union(status.ProtectedSecrets, secrets); !slices.Equal(all, status.ProtectedSecrets) {
		r.protected.Delete(parent.GetUID())
		if err := r.report(ctx, parent, status, used, all); err != nil {
			return err
		}
	}
	_, done := r.protected.Load(parent.GetUID())
	if !done || !slices.Equal(status.ProtectedSecrets, secrets) {
		if err := r.protect(ctx, parent, status, secrets); err != nil {
			return err
		}
	}
	if err := r.report(ctx, parent, status, used, secrets); err != nil {
		return err
	}
	r.protected.Store(parent.GetUID(), struct{}{})
	if used {
		return nil
	}
	r.protected.Delete(parent.GetUID())
	return r.finalize(ctx, parent, false)
}

// protect sets the finalizer on the Secrets that are needed, and removes it from those that were.
func (r *reconciler) protect(ctx context.Context, parent client.Object, status *clusterv1alpha1.InheritedStatus, secrets []clusterv1alpha1.SecretReference) error {
	for _, ref := range status.ProtectedSecrets {
		name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if name.Namespace == "" {
			name.Namespace = parent.GetNamespace()
		}
		wanted := slices.Contains(secrets, ref)
		if !wanted {
			others, err := r.othersNeed(ctx, parent, name)
			if err != nil {
				return err
			}
			if others {
				continue
			}
		}
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := r.live.Get(ctx, name, secret)
		if err == nil {
			err = r.finalize(ctx, secret, wanted)
		}
		if apierrors.IsForbidden(err) {
			log.FromContext(ctx).Info("Not allowed to protect a Secret; nothing depends on it but its protection", "secret", name)
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("protect Secret %s: %w", name, err)
		}
	}
	return nil
}

// othersNeed says whether another object keeps the Secret.
func (r *reconciler) othersNeed(ctx context.Context, parent client.Object, secret types.NamespacedName) (bool, error) {
	var classes clusterv1alpha1.MachineClassList
	var clusters clusterv1alpha1.ClusterList
	for _, list := range []client.ObjectList{&classes, &clusters} {
		if err := r.client.List(ctx, list); err != nil {
			return false, fmt.Errorf("look for who else needs a Secret: %w", err)
		}
	}
	var all []client.Object
	for i := range classes.Items {
		all = append(all, &classes.Items[i])
	}
	for i := range clusters.Items {
		all = append(all, &clusters.Items[i])
	}
	for _, other := range all {
		if other.GetUID() == parent.GetUID() {
			continue
		}
		_, status := inherited(other)
		for _, ref := range status.ProtectedSecrets {
			same := ref.Namespace == secret.Namespace || ref.Namespace == "" && other.GetNamespace() == secret.Namespace
			if same && ref.Name == secret.Name {
				return true, nil
			}
		}
	}
	return false, nil
}

// finalize sets or removes the finalizer. An object on its way out gets none: the API server would refuse it.
func (r *reconciler) finalize(ctx context.Context, o client.Object, wanted bool) error {
	before, _ := o.DeepCopyObject().(client.Object)
	changed := false
	if wanted && o.GetDeletionTimestamp().IsZero() {
		changed = controllerutil.AddFinalizer(o, clusterv1alpha1.InUseFinalizer)
	}
	if !wanted {
		changed = controllerutil.RemoveFinalizer(o, clusterv1alpha1.InUseFinalizer)
	}
	if !changed {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return r.client.Patch(ctx, o, patch)
}

// report writes the status, if it differs.
func (r *reconciler) report(ctx context.Context, parent client.Object, status *clusterv1alpha1.InheritedStatus, used bool, secrets []clusterv1alpha1.SecretReference) error {
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
	apimeta.SetStatusCondition(&status.Conditions, condition)
	status.ObservedGeneration, status.ProtectedSecrets = parent.GetGeneration(), secrets
	if apiequality.Semantic.DeepEqual(was, status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, parent, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// inherited returns the Secrets that an object names, and its status.
func inherited(o client.Object) ([]clusterv1alpha1.SecretReference, *clusterv1alpha1.InheritedStatus) {
	var named []clusterv1alpha1.SecretReference
	add := func(refs ...*clusterv1alpha1.SecretReference) {
		for _, ref := range refs {
			if ref != nil {
				named = append(named, *ref)
			}
		}
	}
	switch parent := o.(type) {
	case *clusterv1alpha1.MachineClass:
		add(parent.SecretRef, parent.CredentialsSecretRef)
		return named, &parent.Status
	case *clusterv1alpha1.Cluster:
		add(parent.Spec.CredentialsSecretRef)
		return named, &parent.Status
	}
	return nil, &clusterv1alpha1.InheritedStatus{}
}

// union has all of both, each once.
func union(a, b []clusterv1alpha1.SecretReference) []clusterv1alpha1.SecretReference {
	all := slices.Clone(a)
	for _, ref := range b {
		if !slices.Contains(all, ref) {
			all = append(all, ref)
		}
	}
	return all
}
