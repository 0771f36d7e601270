package fleet

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
