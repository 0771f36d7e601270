package faultproxy_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/conformance/faultproxy"
)

// rig is a proxy before a service that counts the requests that reach it.
type rig struct {
	*testing.T
	relay, control string
	reached        int
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.reached++
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(service.Close)
	proxy := faultproxy.New(slog.New(slog.DiscardHandler))
	for at, handler := range map[*string]http.Handler{
		&r.relay: proxy.Relay("18774", address(t, service.URL)), &r.control: proxy.Control(),
	} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		*at = server.URL
	}
	return r
}

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// do sends a request; status 0: no answer came, or not the whole of it.
func (r *rig) do(method, url, body string) (int, string, http.Header) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, url, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	// Go sends again what a kept connection has lost.
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return 0, "", nil
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, string(raw), response.Header
	}
	return response.StatusCode, string(raw), response.Header
}

// TestRules sends three POSTs to /v2.1/servers under a rule.
func TestRules(t *testing.T) {
	const passed, dropped = http.StatusAccepted, 0
	for name, tc := range map[string]struct {
		rule    string
		want    []int
		reached int
	}{
		"none":                {rule: ``, want: []int{passed, passed, passed}, reached: 3},
		"every request":       {rule: `{"status": 503}`, want: []int{503, 503, 503}},
		"of another method":   {rule: `{"method": "GET", "status": 503}`, want: []int{passed, passed, passed}, reached: 3},
		"of another path":     {rule: `{"path": "^/v2.1/servers/.", "status": 503}`, want: []int{passed, passed, passed}, reached: 3},
		"of another port":     {rule: `{"port": "19696", "status": 503}`, want: []int{passed, passed, passed}, reached: 3},
		"of this kind":        {rule: `{"method": "POST", "path": "/servers$", "port": "18774", "status": 429}`, want: []int{429, 429, 429}},
		"the first":           {rule: `{"times": 1, "status": 429}`, want: []int{429, passed, passed}, reached: 2},
		"the second":          {rule: `{"after": 1, "times": 1, "status": 429}`, want: []int{passed, 429, passed}, reached: 2},
		"the request is lost": {rule: `{"drop": "before", "times": 1}`, want: []int{dropped, passed, passed}, reached: 2},
		"one of two methods":  {rule: `{"method": "PUT|POST", "times": 1, "status": 503}`, want: []int{503, passed, passed}, reached: 2},
		"the answer ends":     {rule: `{"truncate": 2, "times": 1}`, want: []int{dropped, passed, passed}, reached: 3},
		"it is shorter":       {rule: `{"truncate": 20}`, want: []int{passed, passed, passed}, reached: 3},
		"the answer is lost":  {rule: `{"drop": "after", "times": 1}`, want: []int{dropped, passed, passed}, reached: 3},
		"a delay":             {rule: `{"delay": "1ms"}`, want: []int{passed, passed, passed}, reached: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if status, body, _ := r.do(http.MethodPut, r.control+"/rules", "["+tc.rule+"]"); status != http.StatusOK {
				t.Fatalf("PUT /rules: %d %s", status, body)
			}
			var got []int
			for range 3 {
				status, _, _ := r.do(http.MethodPost, r.relay+"/v2.1/servers", "{}")
				got = append(got, status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if r.reached != tc.reached {
				t.Errorf("%d requests reached the service, want %d", r.reached, tc.reached)
			}
		})
	}
}

// TestRuleAnswersForTheService shows what stands for the service's answer.
func TestRuleAnswersForTheService(t *testing.T) {
	r := newRig(t)
	r.do(http.MethodPut, r.control+"/rules", `[{"status": 429, "header": {"Retry-After": "7"}, "body": "slow down"}]`)
	status, body, header := r.do(http.MethodGet, r.relay, "")
	if status != http.StatusTooManyRequests || body != "slow down" || header.Get("Retry-After") != "7" {
		t.Errorf("answered %d %q, Retry-After %q", status, body, header.Get("Retry-After"))
	}
}

// TestWrongRulesAreRefused shows that a mistake is told, and leaves the rules as they were.
func TestWrongRulesAreRefused(t *testing.T) {
	for name, rules := range map[string]string{
		"not JSON":         `nonsense`,
		"an unknown field": `[{"stauts": 503}]`,
		"a bad expression": `[{"path": "("}]`,
		"an unknown drop":  `[{"drop": "sometimes"}]`,
		"no status":        `[{"status": 42}]`,
		"two answers":      `[{"status": 503, "drop": "after"}]`,
		"two endings":      `[{"truncate": 3, "drop": "after"}]`,
		"a bad truncate":   `[{"truncate": -1}]`,
		"a small method":   `[{"method": "get", "status": 503}]`,
		"a body alone":     `[{"body": "slow down"}]`,
		"a header alone":   `[{"header": {"Retry-After": "7"}}]`,
		"a bad number":     `[{"times": -1, "status": 503}]`,
		"a bad delay":      `[{"delay": "soon"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.do(http.MethodPut, r.control+"/rules", `[{"status": 503}]`)
			if status, _, _ := r.do(http.MethodPut, r.control+"/rules", rules); status != http.StatusBadRequest {
				t.Errorf("PUT /rules: %d, want 400", status)
			}
			if status, _, _ := r.do(http.MethodGet, r.relay, ""); status != http.StatusServiceUnavailable {
				t.Errorf("the rule from before is gone: %d", status)
			}
		})
	}
}

// TestCallsAreRememberedAndForgotten shows what is remembered, and that it is forgotten on request.
func TestCallsAreRememberedAndForgotten(t *testing.T) {
	r := newRig(t)
	r.do(http.MethodPut, r.control+"/rules", `[{"method": "DELETE", "drop": "before"}, {"method": "POST", "status": 503}]`)
	r.do(http.MethodGet, r.relay+"/v2.1/servers?tags=a%3Db", "")
	r.do(http.MethodPost, r.relay+"/v2.1/servers", "{}")
	r.do(http.MethodDelete, r.relay+"/v2.1/servers/x", "")
	want := []faultproxy.Call{
		{Port: "18774", Method: "GET", URL: "/v2.1/servers?tags=a%3Db", Status: 202},
		{Port: "18774", Method: "POST", URL: "/v2.1/servers", Status: 503, Broken: true},
		{Port: "18774", Method: "DELETE", URL: "/v2.1/servers/x", Broken: true},
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if diff := cmp.Diff(want, r.calls(method)); diff != "" {
			t.Errorf("%s /calls (-want +got):\n%s", method, diff)
		}
	}
	if diff := cmp.Diff([]faultproxy.Call{}, r.calls(http.MethodGet)); diff != "" {
		t.Errorf("calls after DELETE (-want +got):\n%s", diff)
	}
}

func (r *rig) calls(method string) []faultproxy.Call {
	r.Helper()
	_, body, _ := r.do(method, r.control+"/calls", "")
	var calls []faultproxy.Call
	if err := json.Unmarshal([]byte(body), &calls); err != nil {
		r.Fatal(err)
	}
	for i := range calls {
		calls[i].Time = time.Time{}
	}
	return calls
}

// TestServiceGone shows what a caller gets while the service is down.
func TestServiceGone(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	relay := httptest.NewServer(faultproxy.New(slog.New(slog.DiscardHandler)).Relay("1", address(t, gone.URL)))
	defer relay.Close()
	if status, _, _ := (&rig{T: t}).do(http.MethodGet, relay.URL, ""); status != http.StatusBadGateway {
		t.Errorf("answered %d, want 502", status)
	}
}

// TestServicesAreReachedThroughAProxy shows that the proxy which the environment names is asked.
func TestServicesAreReachedThroughAProxy(t *testing.T) {
	if os.Getenv(asBehindAProxy) == "" {
		// The environment is read once in a process.
		var asked atomic.Int64
		service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		defer service.Close()
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		command.Env = append(os.Environ(), asBehindAProxy+"=1", "HTTP_PROXY="+service.URL, "NO_PROXY=", "no_proxy=")
		if out, err := command.CombinedOutput(); err != nil || asked.Load() != 1 {
			t.Errorf("the proxy was asked %d times: %v\n%s", asked.Load(), err, out)
		}
		return
	}
	relay := httptest.NewServer(faultproxy.New(slog.New(slog.DiscardHandler)).Relay("1", address(t, "http://cloud.invalid")))
	defer relay.Close()
	// What goes to this machine goes past any proxy.
	if status, _, _ := (&rig{T: t}).do(http.MethodGet, relay.URL, ""); status != http.StatusOK {
		t.Errorf("answered %d, want 200", status)
	}
}

const asBehindAProxy = "FAULT_PROXY_TEST_BEHIND_A_PROXY"
