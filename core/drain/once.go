package drain

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// asksOnce returns a client that never waits and asks again by itself. client-go does so, ten
// times, for every answer with a Retry-After, and the API server gives an eviction one of ten
// seconds while a PodDisruptionBudget's status lags behind: a pass would hold its worker for
// minutes. Passes are repeated anyway.
func asksOnce(workload cluster.Cluster) (client.Client, error) {
	asks := *workload.GetHTTPClient()
	asks.Transport = withoutRetryAfter{asks.Transport}
	return client.New(workload.GetConfig(), client.Options{
		HTTPClient: &asks, Scheme: workload.GetScheme(), Mapper: workload.GetRESTMapper(),
	})
}

// withoutRetryAfter takes the header Retry-After out of all answers; it is what client-go goes by.
type withoutRetryAfter struct {
	// next may be nil, as a http.Client's.
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t withoutRetryAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	answer, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Header.Del("Retry-After")
	return answer, nil
}
