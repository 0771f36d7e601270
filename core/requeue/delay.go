package requeue

import (
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrStale says that the cache is behind the API server.
var ErrStale = errors.New("the cache is behind the API server")

// Soon is when to look again after ErrStale or a conflict. Mostly the event comes before.
const Soon = 100 * time.Millisecond

// Delays between attempts after failures of one object's reconcile, the first and the longest.
const (
	firstRetry   = 20 * time.Millisecond
	longestRetry = 10 * time.Second
)

// RateLimiter retries each object with its own exponential backoff. Most failures are the API
// server's and hit all objects at once, so the longest delay is short.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry)
}

// Result is what a reconcile returns: an error is retried with backoff, else the object comes again
// after that delay; 0 means never.
func Result(after time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// statusInterval is how often a status is written of which only numbers have changed. A thousand
// Machines that become Ready one after the other are not worth a thousand writes.
const statusInterval = time.Second

// StatusDue says whether to write a status now; if not, but later, in how long. The argument
// changed says that it differs from what is written; urgent, that it differs in more than
// numbers. The argument written is when it was last written.
func StatusDue(changed, urgent bool, written, now time.Time) (time.Duration, bool) {
	if !changed {
		return 0, false
	}
	if wait := written.Add(statusInterval).Sub(now); !urgent && wait > 0 {
		return wait, false
	}
	return 0, true
}
