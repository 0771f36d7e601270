package session_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gophercloud/gophercloud/v2"

	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

const (
	listServers  = "GET /compute/v2.1/servers"
	createServer = "POST /compute/v2.1/servers"
	listPorts    = "GET /network/v2.0/ports"
)

// get asks a service for something.
func get(ctx context.Context, client *gophercloud.ServiceClient, url string) error {
	var into any
	_, err := client.Get(ctx, url, &into, nil) //nolint:bodyclose // gophercloud has read and closed it
	return session.Explain(err)
}

// list asks Nova for servers.
func list(ctx context.Context, s *session.Session) error {
	return get(ctx, s.Compute, s.Compute.ServiceURL("servers"))
}

// create asks Nova for a server.
func create(ctx context.Context, s *session.Session) error {
	var into any
	url := s.Compute.ServiceURL("servers")
	_, err := s.Compute.Post(ctx, url, map[string]string{"name": "x"}, &into, nil) //nolint:bodyclose // gophercloud has read and closed it
	return session.Explain(err)
}

func TestATokenIsRenewedOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		var bodies sync.Map
		c.on(createServer, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies.Store(string(body), true)
			say(202, `{"server": {"id": "1"}}`)(w, r)
		})
		s := c.open(newClock())
		c.expire()
		open := make(chan struct{})
		c.on(login, func(w http.ResponseWriter, r *http.Request) {
			<-open
			c.login(w, r)
		})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if err := create(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(open)
		all.Wait()
		c.expectCount(login, 2)
		c.expectCount(createServer, 200)
		bodies.Range(func(body, _ any) bool {
			if body != `{"name":"x"}` {
				t.Errorf("body %s", body)
			}
			return true
		})
	})
}

func TestARefusedRenewalIsRememberedForAMinute(t *testing.T) {
	c, now := newCloud(t), newClock()
	c.on(listServers, say(200, `{"servers": []}`))
	pool := c.pool(now)
	s, err := pool.Open(t.Context(), c.account(), "")
	if err != nil {
		t.Fatal(err)
	}
	c.expire()
	c.on(login, say(401, refusedBody))
	for minute := range 3 {
		for range 20 {
			expect(t, list(t.Context(), s), "CREDENTIALS_INVALID", "The request you have made requires authentication.")
			_, err := pool.Open(t.Context(), c.account(), "")
			expect(t, err, "CREDENTIALS_INVALID", "The request you have made requires authentication.")
			now.advance(3*time.Second - time.Millisecond)
		}
		c.expectCount(login, minute+2)
		now.advance(time.Second)
	}
	c.expectCount(listServers, 1)
	c.on(login, c.login)
	now.advance(time.Minute)
	if err := list(t.Context(), s); err != nil {
		t.Error(err)
	}
}

func TestARenewalThatFailsOtherwise(t *testing.T) {
	c, now := newCloud(t), newClock()
	c.on(listServers, say(200, `{"servers": []}`))
	s := c.open(now)
	c.expire()
	c.on(login, say(503, "<html></html>"))
	for range 5 {
		expect(t, list(t.Context(), s), "OUTCOME_UNKNOWN", "log in: ")
	}
	c.expectCount(login, 2)
	c.on(login, c.login)
	now.advance(2 * time.Second)
	if err := list(t.Context(), s); err != nil {
		t.Error(err)
	}
}

func TestAServiceThatTakesNoToken(t *testing.T) {
	c, now := newCloud(t), newClock()
	c.on(listServers, say(401, expiredBody))
	c.on(listPorts, say(200, `{"ports": []}`))
	s := c.open(now)
	for range 10 {
		expect(t, list(t.Context(), s), "CREDENTIALS_INVALID", "The request you have made requires authentication.")
	}
	c.expectCount(login, 2)
	c.expectCount(listServers, 11)
	if err := get(t.Context(), s.Network, s.Network.ServiceURL("ports")); err != nil {
		t.Errorf("the other services suffer: %v", err)
	}
	now.advance(time.Minute)
	_ = list(t.Context(), s)
	c.expectCount(login, 3)
}

// A path that no access rule of an application credential allows is named, each time anew.
func TestAMissingAccessRuleIsNamed(t *testing.T) {
	c := newCloud(t)
	c.on(listServers, say(401, expiredBody))
	account := c.account()
	account.Username, account.UserDomainID, account.Password, account.ProjectName, account.ProjectDomainID = "", "", "", "", ""
	account.ApplicationCredentialID, account.ApplicationCredentialSecret = "a", "s"
	s, err := c.pool(newClock()).Open(t.Context(), account, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		expect(t, list(t.Context(), s), "CREDENTIALS_INVALID", "If the application credential has access rules, one has to allow GET /compute/v2.1/servers.")
	}
	c.expectCount(login, 2)
}

func TestWhatWasNotAskedIsRefused(t *testing.T) {
	post := func(ctx context.Context, s *session.Session) error {
		_, err := s.Compute.Post(ctx, s.Compute.ServiceURL("servers"), map[string]string{"name": "x"}, nil, nil) //nolint:bodyclose // gophercloud has read and closed it
		return err
	}
	for _, test := range []struct {
		name    string
		prepare func(*cloud, *session.Session)
		refused bool
	}{
		{"no token", func(c *cloud, _ *session.Session) { c.expire(); c.on(login, say(401, refusedBody)) }, true},
		{"Keystone is away", func(c *cloud, _ *session.Session) { c.expire(); c.on(login, say(503, "")) }, true},
		{"a pause", func(c *cloud, s *session.Session) {
			c.on(listServers, say(429, "", "Retry-After", "9"))
			_ = list(c.Context(), s)
		}, true},
		{"a pause that the answer asks for", func(c *cloud, _ *session.Session) { c.on(createServer, say(503, "", "Retry-After", "9")) }, false},
		{"a timeout", func(c *cloud, _ *session.Session) {
			c.on(createServer, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				s := c.open(newClock())
				test.prepare(c, s)
				if err := post(t.Context(), s); session.IsRefused(err) != test.refused {
					t.Errorf("refused %t: %v", !test.refused, err)
				}
			})
		})
	}
}

func TestATokenThatWasGivenIsNotRenewed(t *testing.T) {
	c, now := newCloud(t), newClock()
	const check = "GET /identity/v3/auth/tokens"
	c.tokens["given"] = true
	c.on(check, func(w http.ResponseWriter, r *http.Request) { say(200, c.token(), "X-Subject-Token", "given")(w, r) })
	c.on(listServers, say(200, `{"servers": []}`))
	pool := c.pool(now)
	account := spec.Account{IdentityEndpoint: c.url + "/identity/v3", Token: "given"}
	s, err := pool.Open(t.Context(), account, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := list(t.Context(), s); err != nil {
		t.Error(err)
	}
	c.expire()
	for range 3 {
		err := list(t.Context(), s)
		expect(t, err, "CREDENTIALS_INVALID", "token", "cannot be renewed")
		expectFields(t, err, "tokenId")
	}
	c.expectCount(check, 1)
	c.expectCount(login, 0)
}

func TestATokenOfAnotherProjectIsNotUsed(t *testing.T) {
	c, now := newCloud(t), newClock()
	c.on(listServers, say(200, `{"servers": []}`))
	pool := c.pool(now)
	s, err := pool.Open(t.Context(), c.account(), "")
	if err != nil {
		t.Fatal(err)
	}
	c.expire()
	c.project = "another"
	for range 2 {
		expect(t, list(t.Context(), s), "ACCOUNT_CHANGED", "another", projectID)
	}
	c.expectCount(listServers, 1)
	other, err := pool.Open(t.Context(), c.account(), "")
	if err != nil || other == s || other.ProjectID != "another" {
		t.Errorf("%+v, %v", other, err)
	}
	if err := list(t.Context(), other); err != nil {
		t.Error(err)
	}
}

func TestNothingIsAskedTwice(t *testing.T) {
	for _, code := range []int{400, 403, 404, 409, 413, 429, 500, 502, 503, 504} {
		c := newCloud(t)
		c.on(createServer, say(code, ""))
		s := c.open(newClock())
		if err := create(t.Context(), s); err == nil {
			t.Errorf("%d is no error", code)
		}
		c.expectCount(createServer, 1)
	}
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		c.on(listServers, hang)
		s := c.open(newClock())
		began := time.Now()
		expect(t, list(t.Context(), s), "OUTCOME_UNKNOWN", "The cloud did not answer: cloud.example.com: no answer within 30s.")
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := list(ctx, s); !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != "" {
			t.Errorf("the caller's deadline: %v", err)
		}
		c.on(login, hang)
		_, err := c.pool(newClock()).Open(t.Context(), c.account(), "")
		expect(t, err, "OUTCOME_UNKNOWN", "log in: ", "no answer within 30s")
	})
}

// breaking answers by closing the connection, after some of an answer.
func breaking(some string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, some)
		conn.Close()
	}
}

func TestLostAnswers(t *testing.T) {
	const half = "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"server\""
	for name, answer := range map[string]string{"no answer": "", "half an answer": half} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			server := c.serve(httptest.NewServer)
			s, err := session.NewPool(session.Options{}).Open(t.Context(), c.account(), "")
			if err != nil {
				t.Fatal(err)
			}
			c.on(listServers, say(200, `{"servers": []}`))
			c.on(createServer, breaking(answer))
			for asked := range 3 {
				// The connection is one that has been used: on those net/http repeats what may be
				// repeated.
				if err := list(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				expect(t, create(t.Context(), s), "OUTCOME_UNKNOWN",
					strings.TrimPrefix(server.URL, "http://")+": the connection was closed before the answer was complete.")
				c.expectCount(createServer, asked+1)
			}
		})
	}
}

func TestAReadOnAClosedConnectionIsRepeated(t *testing.T) {
	c := newCloud(t)
	c.serve(httptest.NewServer)
	s, err := session.NewPool(session.Options{}).Open(t.Context(), c.account(), "")
	if err != nil {
		t.Fatal(err)
	}
	c.on(listServers, func(w http.ResponseWriter, r *http.Request) {
		c.on(listServers, say(200, `{"servers": []}`))
		breaking("")(w, r)
	})
	if err := list(t.Context(), s); err != nil {
		t.Error(err)
	}
	c.expectCount(listServers, 2)
}

// sentTo records the server of each request, with its scheme.
type sentTo struct {
	next    http.RoundTripper
	servers map[string]int
}

func (s *sentTo) RoundTrip(r *http.Request) (*http.Response, error) {
	s.servers[r.URL.Scheme+"://"+r.URL.Host]++
	return s.next.RoundTrip(r)
}

// A request takes a token or a password along: no redirect to another host, port or scheme is
// followed, and the error names both.
func TestSAFE8_NoRedirectToAnotherServerIsFollowed(t *testing.T) {
	const home = "https://cloud.example.com"
	for location, server := range map[string]string{
		"https://thief.example.com/servers":                     "https://thief.example.com",
		"//thief.example.com/servers":                           "https://thief.example.com",
		"https://cloud.example.com.thief.example.com/servers":   "https://cloud.example.com.thief.example.com",
		"https://cloud.example.com@thief.example.com/servers":   "https://thief.example.com",
		"https://cloud.example.com:8774/compute/v2.1/servers":   "https://cloud.example.com:8774",
		"http://cloud.example.com/compute/v2.1/servers?a=b#c":   "http://cloud.example.com",
		"http://name:word@cloud.example.com/compute/v2.1/other": "http://cloud.example.com",
	} {
		t.Run(location, func(t *testing.T) {
			c := newCloud(t)
			sent := &sentTo{next: c, servers: map[string]int{}}
			pool := session.NewPool(session.Options{Transport: sent, Clock: newClock().Now})
			s, err := pool.Open(t.Context(), c.account(), "")
			if err != nil {
				t.Fatal(err)
			}
			redirect := say(http.StatusTemporaryRedirect, "", "Location", location)
			says := home + " answered 307 Temporary Redirect, which leads to " + server + " and is not followed."
			c.on(listServers, redirect)
			expect(t, list(t.Context(), s), "PROVIDER_INTERNAL", says)
			c.on(createServer, redirect)
			expect(t, create(t.Context(), s), "PROVIDER_INTERNAL", says)
			// Logins: with a password, and with a token, which is asked about first.
			c.on(login, redirect)
			c.on(strings.Replace(login, "POST", "GET", 1), redirect)
			password, token := c.account(), c.account()
			password.Password, token.Username, token.Password, token.Token = "another-password", "", "", "a-token"
			for _, account := range []spec.Account{password, token} {
				_, err := pool.Open(t.Context(), account, "")
				expect(t, err, "PROVIDER_INTERNAL", says)
			}
			if len(sent.servers) != 1 || sent.servers[home] != 5 {
				t.Errorf("requests went to %v, want five to %s", sent.servers, home)
			}
		})
	}
}

func TestRedirectsWithinAServer(t *testing.T) {
	c := newCloud(t)
	s := c.open(newClock())
	for _, code := range []int{301, 302, 303, 307, 308} {
		c.on(createServer, say(code, "", "Location", "/compute/v2.1/elsewhere"))
		expect(t, create(t.Context(), s), "PROVIDER_INTERNAL", "which leads to another path of it and is not followed.")
	}
	c.on(listServers, say(302, "", "Location", "/compute/v2.1/servers/"))
	c.on(listServers+"/", say(200, `{"servers": []}`))
	if err := list(t.Context(), s); err != nil {
		t.Errorf("a read: %v", err)
	}
	c.on(listServers, say(302, "", "Location", "/compute/v2.1/servers"))
	expect(t, list(t.Context(), s), "PROVIDER_INTERNAL", "302 Found")
}

func TestATokenGoesOnlyToItsService(t *testing.T) {
	c := newCloud(t)
	s := c.open(newClock())
	c.on(listServers, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Scheme != "https" || r.URL.Host != "cloud.example.com" || r.Host != "cloud.example.com" {
			t.Errorf("%s, %s", r.URL, r.Host)
		}
		say(200, `{"servers": []}`)(w, r)
	})
	if err := get(t.Context(), s.Compute, "http://10.0.0.1:8774/compute/v2.1/servers?marker=x"); err != nil {
		t.Error(err)
	}
	c.expectCount(listServers, 1)
}

func TestCallsAreCountedAndLogged(t *testing.T) {
	c := newCloud(t)
	var lines bytes.Buffer
	var calls []session.Call
	pool := session.NewPool(session.Options{
		Transport: c, UserAgent: "millwright/1",
		Log:     slog.New(slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(call session.Call) { calls = append(calls, call) },
	})
	c.on(listServers, func(w http.ResponseWriter, r *http.Request) {
		if agent := r.Header.Get("User-Agent"); !strings.HasPrefix(agent, "millwright/1 gophercloud/") {
			t.Errorf("user agent %s", agent)
		}
		say(200, `{"servers": [{"name": "answer-body"}]}`, "X-Openstack-Request-Id", "req-1")(w, r)
	})
	s, err := pool.Open(t.Context(), c.account(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t.Context(), s.Compute, s.Compute.ServiceURL("servers")+"?name=in-query"); err != nil {
		t.Fatal(err)
	}
	c.on(createServer, say(409, ""))
	_ = create(t.Context(), s)
	want := []session.Call{{Service: "identity", Method: "POST", Code: 201}, {Service: "compute", Method: "GET", Code: 200}, {Service: "compute", Method: "POST", Code: 409}}
	if diff := cmp.Diff(want, calls, cmpopts.IgnoreFields(session.Call{}, "Duration", "Waited")); diff != "" {
		t.Error(diff)
	}
	for _, word := range []string{`"path":"/compute/v2.1/servers"`, `"status":200`, `"request_id":"req-1"`} {
		if !strings.Contains(lines.String(), word) {
			t.Errorf("%s is not logged", word)
		}
	}
	for _, secret := range []string{"s3cret", "token-1", "in-query", "answer-body", `"x"`} {
		if strings.Contains(lines.String(), secret) {
			t.Errorf("%s is logged: %s", secret, lines.String())
		}
	}
}
