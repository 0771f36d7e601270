package manager

import (
	"fmt"
	"net/http"
	"strings"
)

// eventPath is in the path of each request about Events.
const eventPath = "/apis/events.k8s.io/"

// repeatEvents has Events written again that the API server could not take just then. client-go's
// recorder repeats, a dozen times with pauses, what never reached the API server, and drops what
// that answered with an error, whichever it was. So an answer that says nothing against the Event
// is made one that never came. A repetition has the Event's name: one that was written after all is
// not written twice.
func repeatEvents(next http.RoundTripper) http.RoundTripper { return &eventRepeater{next: next} }

type eventRepeater struct{ next http.RoundTripper }

// RoundTrip fails where a request about an Event is answered with an error that may pass.
func (e *eventRepeater) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.Path, eventPath) || !mayPass(response.StatusCode) {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("the API server answers %s", response.Status)
}

// WrappedRoundTripper lets client-go find who can cancel requests.
func (e *eventRepeater) WrappedRoundTripper() http.RoundTripper { return e.next }

// mayPass says whether the API server may take the same request later.
func mayPass(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}
