package e2e

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/millwright-dev/millwright/localcluster/stack"
)

// Metrics name namespaces and drivers: who is not bound to millwright-metrics-reader is refused.
func TestOPS2_MetricsAreForWhoMayReadThem(t *testing.T) {
	t.Parallel()
	u := newSharingUser(t)
	if _, err := u.Metrics(t.Context()); err != nil {
		t.Errorf("who may read them: %v", err)
	}
	u.kubectl("create", "serviceaccount", "nobody")
	token := strings.TrimSpace(u.kubectl("create", "token", "nobody"))
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"nobody in particular":      {"", http.StatusUnauthorized},
		"somebody without the role": {token, http.StatusForbidden},
	} {
		if got := askForMetrics(t, u.metricsAddress(), tc.token); got != tc.want {
			t.Errorf("%s gets the status %d, want %d", name, got, tc.want)
		}
	}
}

// metricsAddress is where the manager serves its metrics.
func (u *user) metricsAddress() string {
	u.t.Helper()
	for _, arg := range u.Process(stack.Manager).Args() {
		if address, is := strings.CutPrefix(arg, "--metrics-bind-address="); is {
			return address
		}
	}
	u.t.Fatal("the manager serves no metrics")
	return ""
}

// askForMetrics returns the status of the answer.
func askForMetrics(t *testing.T, address, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the manager signs its certificate itself
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // only the status counts
	return answer.StatusCode
}
