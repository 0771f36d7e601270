package ownership

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// Adopter is an object that adopts what it selects.
type Adopter struct {
	client.Object
	Selector clusterv1alpha1.LabelSelector
}

// OwnersOf returns whom a change of the object concerns: its controller, if that is of this API
// group's kind of that name. If the object has no controller, it returns those that would adopt it;
// adopters is called only then.
func OwnersOf(o client.Object, kind string, adopters func() []Adopter) []reconcile.Request {
	if metav1.GetControllerOf(o) != nil {
		owner := ControllerOf(o, kind)
		if owner == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}}
	}
	var requests []reconcile.Request
	for _, a := range adopters() {
		selector, err := a.Selector.AsSelector()
		if err == nil && selector.Matches(labels.Set(o.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(a)})
		}
	}
	return requests
}
