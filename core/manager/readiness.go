package manager

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// syncCheckTimeout is how long a probe waits for caches: less than a kubelet waits for the probe.
const syncCheckTimeout = 500 * time.Millisecond

// errNotSynced is why a manager is not ready.
var errNotSynced = errors.New("the caches have not synced yet")

// cachesSynced is ready once all caches that there are have been filled. A manager that waits for
// the Lease fills those of what the controllers index, so it is ready, too. One that has just
// got the Lease is not ready again before its controllers see everything.
func cachesSynced(wait func(context.Context) bool) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), syncCheckTimeout)
		defer cancel()
		if !wait(ctx) {
			return errNotSynced
		}
		return nil
	}
}
