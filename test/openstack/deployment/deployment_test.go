package deployment_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/conformance/faultproxy"
	"github.com/millwright-dev/millwright/test/openstack/deployment"
)

// versions asks Keystone for its version; status 0: nobody answered.
func versions(t *testing.T, d *deployment.Deployment) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.IdentityEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestRequestsAreBrokenAndCounted shows that requests are broken and counted on their way to the
// real services.
func TestRequestsAreBrokenAndCounted(t *testing.T) {
	d := deployment.Open(t)
	d.Calls(t)
	t.Run("broken", func(t *testing.T) {
		d.Break(t, faultproxy.Rule{Method: http.MethodGet, Path: "^/v3$", Status: http.StatusTooManyRequests, Times: 1})
		if got := versions(t, d); got != http.StatusTooManyRequests {
			t.Errorf("answered %d, want 429", got)
		}
	})
	if got := versions(t, d); got != http.StatusOK {
		t.Errorf("answered %d afterwards, want 200", got)
	}
	var ours int
	for _, call := range d.Calls(t) {
		if call.Method == http.MethodGet && strings.HasSuffix(call.URL, "/v3") {
			ours++
		}
	}
	if ours != 2 {
		t.Errorf("%d calls, want 2", ours)
	}
}

// TestKilledServiceComesBack shows that a service that was killed comes back when the test is over.
func TestKilledServiceComesBack(t *testing.T) {
	d := deployment.Open(t)
	t.Run("killed", func(t *testing.T) {
		d.Kill(t, "keystone")
		if got := versions(t, d); got != http.StatusBadGateway {
			t.Errorf("answered %d, want 502 from the fault proxy", got)
		}
	})
	if got := versions(t, d); got != http.StatusOK {
		t.Errorf("answered %d afterwards, want 200", got)
	}
}
