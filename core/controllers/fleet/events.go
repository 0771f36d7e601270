package fleet

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// gather is how long changes of an owner's many objects are gathered before it is reconciled once for all of them.
const gather = 50 * time.Millisecond

// Pauses before an object whose reconcile failed is tried again, from the first failure to the last.
const (
	shortestRetry = 20 * time.Millisecond
	longestRetry  = 10 * time.Second
)

// RateLimiter is when objects are tried again, each at its own pace. What fails is mostly the API server, for all at
// once: none is to wait long once it is back.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](shortestRetry, longestRetry)
}

// ForOwners reconciles the owners of an object, those before a change and those after it, a moment after it changed, so
// that a thousand Machines that change at once cause a few reconciles and not a thousand.
func ForOwners(owners func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, o client.Object, q queue) {
		for _, request := range owners(ctx, o) {
			q.AddAfter(request, gather)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(ctx, e.ObjectNew, q)
			if OwnerKey(e.ObjectOld)[0] != OwnerKey(e.ObjectNew)[0] {
				add(ctx, e.ObjectOld, q)
			}
		},
	}
}

// Adopter is an object that adopts what it selects.
type Adopter struct {
	client.Object
	Selector clusterv1alpha1.LabelSelector
}

// OwnersOf returns whom a change of the object concerns: its controller, if that is of the project's kind of that name,
// or, if it has none, those that would adopt it. adopters is asked only then.
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
