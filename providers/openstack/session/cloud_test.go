package session_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// What the real services answered, on Zed.
const (
	refusedBody = `{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}`
	expiredBody = `{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}`
	projectID   = "bbfdac35702e45e28e3883f81009c98f"
	login       = "POST /identity/v3/auth/tokens"
)

// cloud is a Keystone, and what else a test says. It is both a server and a transport, so that
// tests need no network.
type cloud struct {
	*testing.T
	mu sync.Mutex
	// answers are by method and path; of what has none the cloud says 404.
	answers map[string]http.HandlerFunc
	// requests are counted by method and path.
	requests map[string]int
	// bodies are those of logins.
	bodies []string
	// tokens are those that services take.
	tokens map[string]bool
	issued int
	// url, project, the id of its domain, catalog and expires are what logins tell.
	url, project, domain, expires string
	catalog                       []any
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{
		T: t, answers: map[string]http.HandlerFunc{}, requests: map[string]int{}, tokens: map[string]bool{},
		url: "https://cloud.example.com", project: projectID, domain: "default", expires: "2036-11-22T11:06:37.000000Z",
	}
	c.answers[login] = c.login
	return c
}

// serve makes the cloud a server and returns its URL.
func (c *cloud) serve(start func(http.Handler) *httptest.Server) *httptest.Server {
	server := start(c)
	c.Cleanup(server.Close)
	c.url = server.URL
	return server
}

// ServeHTTP counts, and checks tokens.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.Method + " " + r.URL.Path
	c.mu.Lock()
	c.requests[name]++
	answer := c.answers[name]
	known := c.tokens[r.Header.Get("X-Auth-Token")]
	c.mu.Unlock()
	switch {
	case !known && !strings.HasPrefix(r.URL.Path, "/identity/"):
		say(http.StatusUnauthorized, expiredBody)(w, r)
	case answer == nil:
		say(http.StatusNotFound, `{"itemNotFound": {"code": 404, "message": "It could not be found."}}`)(w, r)
	default:
		answer(w, r)
	}
}

// RoundTrip implements http.RoundTripper.
func (c *cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	seen := r.Clone(r.Context())
	if seen.Body == nil {
		seen.Body = http.NoBody
	}
	c.ServeHTTP(w, seen)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// login issues a token.
func (c *cloud) login(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issued++
	token := fmt.Sprintf("token-%d", c.issued)
	c.tokens[token] = true
	c.bodies = append(c.bodies, string(body))
	w.Header().Set("X-Subject-Token", token)
	say(http.StatusCreated, c.token())(w, r)
}

// token is Keystone's description of one.
func (c *cloud) token() string {
	catalog := c.catalog
	if catalog == nil {
		for service, at := range map[string]string{"compute": "/compute/v2.1", "network": "/network", "image": "/image", "block-storage": "/volume/v3/" + c.project} {
			catalog = append(catalog, entry(service, "RegionOne", "public", c.url+at))
		}
	}
	token := map[string]any{"catalog": catalog, "expires_at": c.expires, "methods": []string{"password"}}
	if c.project != "" {
		token["project"] = map[string]any{"id": c.project, "name": "demo", "domain": map[string]any{"id": c.domain, "name": "Default"}}
	}
	raw, err := json.Marshal(map[string]any{"token": token})
	if err != nil {
		c.Error(err)
	}
	return string(raw)
}

// entry is an endpoint in a catalog.
func entry(service, region, kind, url string) any {
	return map[string]any{"type": service, "endpoints": []any{
		map[string]any{"id": "e", "interface": kind, "region": region, "region_id": region, "url": url},
	}}
}

// say answers always the same.
func say(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// on sets what the cloud answers.
func (c *cloud) on(request string, answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[request] = answer
}

// expire makes all tokens void.
func (c *cloud) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.tokens)
}

// count returns how often something was asked.
func (c *cloud) count(request string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[request]
}

// total returns how often anything was asked.
func (c *cloud) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for n := range maps.Values(c.requests) {
		sum += n
	}
	return sum
}

// expectCount checks how often something was asked.
func (c *cloud) expectCount(request string, want int) {
	c.Helper()
	if got := c.count(request); got != want {
		c.Errorf("%s: %d requests, want %d", request, got, want)
	}
}

// account is one that may log in.
func (c *cloud) account() spec.Account {
	return spec.Account{
		IdentityEndpoint: c.url + "/identity/v3", Region: "RegionOne", Interface: spec.InterfacePublic,
		Username: "demo", UserDomainID: "default", Password: "s3cret-password", ProjectName: "demo", ProjectDomainID: "default",
	}
}

// clock stands still unless a test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// pool returns a pool whose requests go to the cloud directly.
func (c *cloud) pool(now *clock) *session.Pool {
	return session.NewPool(session.Options{Transport: c, Clock: now.Now})
}

// open returns a session of a new pool.
func (c *cloud) open(now *clock) *session.Session {
	c.Helper()
	s, err := c.pool(now).Open(c.Context(), c.account(), "")
	if err != nil {
		c.Fatal(err)
	}
	return s
}

// reasonOf returns the reason in an error, empty where it is none of the contract's.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			return info.GetReason()
		}
	}
	return ""
}

// fieldsOf returns the fields that an error names.
func fieldsOf(err error) []string {
	var fields []string
	for _, detail := range status.Convert(err).Details() {
		if bad, is := detail.(*errdetails.BadRequest); is {
			for _, violation := range bad.GetFieldViolations() {
				fields = append(fields, violation.GetField())
			}
		}
	}
	return fields
}

// quotasOf returns the quotas that an error names.
func quotasOf(err error) []string {
	var quotas []string
	for _, detail := range status.Convert(err).Details() {
		if failure, is := detail.(*errdetails.QuotaFailure); is {
			for _, violation := range failure.GetViolations() {
				quotas = append(quotas, violation.GetSubject())
			}
		}
	}
	return quotas
}

// waitOf returns how long an error asks to wait.
func waitOf(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if retry, is := detail.(*errdetails.RetryInfo); is {
			return retry.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// expect checks an error's reason, and that its text holds words.
func expect(t *testing.T, err error, reason string, words ...string) {
	t.Helper()
	if got := reasonOf(err); got != reason {
		t.Errorf("reason %q of %v, want %s", got, err, reason)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

// expectField checks that an error names exactly these fields.
func expectFields(t *testing.T, err error, fields ...string) {
	t.Helper()
	if got := fieldsOf(err); !slices.Equal(got, fields) {
		t.Errorf("fields %q of %v, want %q", got, err, fields)
	}
}
