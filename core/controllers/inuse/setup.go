package inuse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machineclasses;clusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machineclasses/status;clusters/status,verbs=patch

// parentIndex finds, in the cache, who inherits from what: by "Kind/name" of that.
const parentIndex = "inuse.parent"

// parents are what a spec inherits from, as keys of the index.
func parents(spec *clusterv1alpha1.MachineSpec) []string {
	var keys []string
	if from := spec.ProviderSpec.ValueFrom; from != nil {
		keys = append(keys, clusterv1alpha1.MachineClassKind+"/"+from.MachineClass.Name)
	}
	if from := spec.ClusterRef; from != nil {
		keys = append(keys, clusterv1alpha1.ClusterKind+"/"+from.Name)
	}
	return keys
}

// specOf is the spec of a machine in any of the kinds that have one.
func specOf(o client.Object) *clusterv1alpha1.MachineSpec {
	switch dependent := o.(type) {
	case *clusterv1alpha1.MachineDeployment:
		return &dependent.Spec.Template.Spec
	case *clusterv1alpha1.MachineSet:
		return &dependent.Spec.Template.Spec
	case *clusterv1alpha1.Machine:
		return &dependent.Spec
	}
	return &clusterv1alpha1.MachineSpec{}
}

// Add adds the controllers of MachineClasses and of Clusters to mgr.
func Add(mgr ctrl.Manager) error {
	for _, dependent := range dependents() {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), dependent, parentIndex, func(o client.Object) []string { return parents(specOf(o)) })
		if err != nil {
			return fmt.Errorf("index %T by what it inherits from: %w", dependent, err)
		}
	}
	for kind, parent := range map[string]client.Object{
		clusterv1alpha1.MachineClassKind: &clusterv1alpha1.MachineClass{}, clusterv1alpha1.ClusterKind: &clusterv1alpha1.Cluster{},
	} {
		r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), kind: kind, parent: parent}
		b := ctrl.NewControllerManagedBy(mgr).
			Named("inheritance-" + kind).
			For(parent)
		for _, dependent := range dependents() {
			b = b.Watches(dependent, handler.EnqueueRequestsFromMapFunc(r.requestsForParent))
		}
		b = b.WithEventFilter(parentsChanged()).WithOptions(controller.Options{RateLimiter: requeue.RateLimiter()})
		if err := b.Complete(r); err != nil {
			return fmt.Errorf("add the controller of %s: %w", kind, err)
		}
	}
	return nil
}

// dependents are the kinds that inherit.
func dependents() []client.Object {
	return []client.Object{&clusterv1alpha1.MachineDeployment{}, &clusterv1alpha1.MachineSet{}, &clusterv1alpha1.Machine{}}
}

// parentsChanged passes over changes of dependents that leave them dependents of the same: a
// Machine changes often.
func parentsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		switch e.ObjectNew.(type) {
		case *clusterv1alpha1.MachineClass, *clusterv1alpha1.Cluster:
			return true
		}
		return !slices.Equal(parents(specOf(e.ObjectOld)), parents(specOf(e.ObjectNew)))
	}}
}

// requestsForParent returns what a dependent inherits from, of this controller's kind.
func (r *reconciler) requestsForParent(_ context.Context, dependent client.Object) []reconcile.Request {
	for _, key := range parents(specOf(dependent)) {
		if kind, name, _ := strings.Cut(key, "/"); kind == r.kind {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: dependent.GetNamespace(), Name: name}}}
		}
	}
	return nil
}
