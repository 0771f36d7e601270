package manager

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/transport"

	"github.com/millwright-dev/millwright/core/driverstatus"
)

// interceptor comes between the manager and the API server.
type interceptor struct {
	next http.RoundTripper
	do   func(next http.RoundTripper, r *http.Request) (*http.Response, error)
}

// intercept has each request made by do.
func intercept(do func(next http.RoundTripper, r *http.Request) (*http.Response, error)) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper { return &interceptor{next, do} }
}

// RoundTrip makes one request.
func (i *interceptor) RoundTrip(r *http.Request) (*http.Response, error) { return i.do(i.next, r) }

// WrappedRoundTripper lets client-go find who can cancel requests.
func (i *interceptor) WrappedRoundTripper() http.RoundTripper { return i.next }

// eventPath is in the path of each request about Events.
const eventPath = "/apis/events.k8s.io/"

// repeatEvents has Events written again that the API server could not take just then. The
// recorder of client-go repeats, a dozen times with pauses, what never reached the API server.
// It drops what the API server answered with an error, whichever it was. So an answer that says
// nothing against the Event is made one that never came. A repetition has the Event's name: one
// that was written after all is not written twice.
func repeatEvents(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.Path, eventPath) || !mayPass(response.StatusCode) {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("the API server answers %s", response.Status)
}

// mayPass says whether the API server may take the same request later.
func mayPass(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// refuseChanges lets through only those requests that a manager with --read-only may make. It is
// there so that no controller has to be trusted with it.
func refuseChanges(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if !isAllowed(r.Method, r.URL.Path) {
		return nil, fmt.Errorf("%s %s: the manager runs with --read-only", r.Method, r.URL.Path)
	}
	return next.RoundTrip(r)
}

// isAllowed says whether a manager with --read-only may make a request: reads, the leader's Lease,
// the drivers' status, the status of this project's objects, and questions about who asks for
// metrics.
func isAllowed(method, path string) bool {
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
