package ownership

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// EnqueueOwners enqueues the owners of an object, those before a change and those after it. It does
// so requeue.EventDelay later, so that a thousand Machines that change at once cause a few
// reconciles.
func EnqueueOwners(owners func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, o client.Object, q queue) {
		for _, request := range owners(ctx, o) {
			q.AddAfter(request, requeue.EventDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			enqueue(ctx, e.ObjectNew, q)
			if IndexKey(e.ObjectOld)[0] != IndexKey(e.ObjectNew)[0] {
				enqueue(ctx, e.ObjectOld, q)
			}
		},
	}
}

// OwnersIn finds, in a cache, whom a change of a MachineSet or a Machine concerns: its controller,
// if that is a MachineDeployment or a MachineSet of this API group. For an object without a
// controller it finds those that would adopt it.
func OwnersIn(cache client.Reader) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, o client.Object) []reconcile.Request { return ownersOf(ctx, cache, o) }
}

func ownersOf(ctx context.Context, cache client.Reader, o client.Object) []reconcile.Request {
	kind, owners := clusterv1alpha1.MachineSetKind, client.ObjectList(&clusterv1alpha1.MachineSetList{})
	if _, isSet := o.(*clusterv1alpha1.MachineSet); isSet {
		kind, owners = clusterv1alpha1.MachineDeploymentKind, &clusterv1alpha1.MachineDeploymentList{}
	}
	if metav1.GetControllerOfNoCopy(o) != nil {
		owner := ControllerOf(o, kind)
		if owner == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}}
	}
	if err := cache.List(ctx, owners, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	_ = apimeta.EachListItem(owners, func(item runtime.Object) error {
		if owner, ok := item.(client.Object); ok {
			selector, err := selectorOf(owner)
			if err == nil && selector.Matches(labels.Set(o.GetLabels())) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
			}
		}
		return nil
	})
	return requests
}
