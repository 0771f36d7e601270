package manager

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/core/driverstatus"
)

// lookOnly lets through only those requests to the API server that a manager with --read-only may
// make: reads, the leader's Lease, the drivers' status, the status of this project's objects, and
// questions about who asks for metrics. It is there so that no controller has to be trusted with
// it.
func lookOnly(next http.RoundTripper) http.RoundTripper {
	return &onlooker{next: next}
}

// onlooker refuses what is not allowed.
type onlooker struct{ next http.RoundTripper }

// RoundTrip makes a request that is allowed.
func (l *onlooker) RoundTrip(r *http.Request) (*http.Response, error) {
	if !allowed(r.Method, r.URL.Path) {
		return nil, fmt.Errorf("%s %s: the manager runs with --read-only", r.Method, r.URL.Path)
	}
	return l.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find who can cancel requests.
func (l *onlooker) WrappedRoundTripper() http.RoundTripper { return l.next }

// allowed says whether a manager with --read-only may make a request.
func allowed(method, path string) bool {
	switch {
	case method == http.MethodGet || method == http.MethodHead:
		return true
	case strings.HasPrefix(path, "/apis/coordination.k8s.io/"):
		return strings.HasSuffix(path, "/leases") || strings.HasSuffix(path, "/leases/"+driverstatus.LeaseName)
	case strings.HasPrefix(path, "/api/v1/"):
		return method == http.MethodPatch && strings.HasSuffix(path, "/configmaps/"+driverstatus.ConfigMapName)
	case strings.HasPrefix(path, "/apis/cluster.k8s.io/"):
		return method == http.MethodPatch && strings.HasSuffix(path, "/status")
	case strings.HasPrefix(path, "/apis/authentication.k8s.io/"), strings.HasPrefix(path, "/apis/authorization.k8s.io/"):
		return method == http.MethodPost
	}
	return false
}

// noMutations is the budget of a manager that sends none.
func noMutations() (latest time.Time, leading bool) { return time.Time{}, false }
