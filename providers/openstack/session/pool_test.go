package session_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

func TestManyOpensLogInOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		open := make(chan struct{})
		c.on(login, func(w http.ResponseWriter, r *http.Request) {
			<-open
			c.login(w, r)
		})
		pool := c.pool(newClock())
		var all sync.WaitGroup
		got := make([]*session.Session, 100)
		for i := range got {
			all.Go(func() {
				version := []string{"", spec.MinComputeAPIVersion, "2.79"}[i%3]
				s, err := pool.Open(t.Context(), c.account(), version)
				if err != nil {
					t.Error(err)
				}
				got[i] = s
			})
		}
		synctest.Wait()
		close(open)
		all.Wait()
		c.expectCount(login, 1)
		if c.total() != 1 {
			t.Errorf("%d requests, want the login alone", c.total())
		}
		for i, s := range got {
			if s != got[[]int{0, 0, 2}[i%3]] {
				t.Errorf("session %d is another one", i)
			}
		}
		first := got[0]
		if first.ProjectID != projectID || first.Region != "RegionOne" || first.Compute.Microversion != spec.MinComputeAPIVersion ||
			got[2].Compute.Microversion != "2.79" {
			t.Errorf("%+v", first)
		}
	})
}

func TestWhoGivesUpDoesNotEndTheLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		open := make(chan struct{})
		c.on(login, func(w http.ResponseWriter, r *http.Request) {
			<-open
			c.login(w, r)
		})
		pool := c.pool(newClock())
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := pool.Open(ctx, c.account(), "")
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		close(open)
		if _, err := pool.Open(t.Context(), c.account(), ""); err != nil {
			t.Error(err)
		}
		c.expectCount(login, 1)
	})
}

func TestAPanicReachesWhoAsked(t *testing.T) {
	c := newCloud(t)
	pool := c.pool(newClock())
	c.on(login, func(http.ResponseWriter, *http.Request) { panic("a bug") })
	for range 2 {
		func() {
			defer func() {
				if cause, _ := recover().(string); !strings.HasPrefix(cause, "a bug\n") || !strings.Contains(cause, "pool_test.go") {
					t.Errorf("panic %q", cause)
				}
			}()
			_, err := pool.Open(t.Context(), c.account(), "")
			t.Errorf("no panic: %v", err)
		}()
	}
}

func TestRefusedLogins(t *testing.T) {
	const long, short = time.Minute, 2 * time.Second
	for _, test := range []struct {
		name       string
		answer     http.HandlerFunc
		reason     string
		words      string
		fields     []string
		remembered time.Duration
	}{
		{"wrong password", say(401, refusedBody), "CREDENTIALS_INVALID", "The request you have made requires authentication.", nil, long},
		{
			"unknown application credential", say(404, `{"error":{"code":404,"message":"Could not find Application Credential: nonsense.","title":"Not Found"}}`),
			"CREDENTIALS_INVALID", "Could not find Application Credential: nonsense.", nil, long,
		},
		{"no Keystone there", say(404, "<html></html>"), "DEPENDENCY_NOT_FOUND", "cloud.example.com answered 404 Not Found.", []string{"identityEndpoint"}, long},
		{"no Keystone behind the proxy", say(404, "default backend - 404"), "DEPENDENCY_NOT_FOUND", "answered 404 Not Found: default backend - 404.", []string{"identityEndpoint"}, long},
		{"forbidden", say(403, `{"error":{"code":403,"message":"You are not authorized.","title":"Forbidden"}}`), "PERMISSION_MISSING", "You are not authorized.", nil, long},
		{
			"no domain", say(400, `{"error":{"code":400,"message":"Expecting to find domain in user. The server could not comply …","title":"Bad Request"}}`),
			"CREDENTIALS_INVALID", "Expecting to find domain in user.", nil, long,
		},
		{"a proxy before Keystone", say(400, "<html></html>"), "OUTCOME_UNKNOWN", "400 Bad Request", nil, short},
		{"Keystone is ill", say(500, `{"error":{"code":500,"message":"An unexpected error prevented the server from fulfilling your request.","title":"Internal Server Error"}}`), "PROVIDER_INTERNAL", "An unexpected error", nil, short},
		{"Keystone is away", say(503, "<html></html>"), "OUTCOME_UNKNOWN", "503 Service Unavailable", nil, short},
		{"no JSON", say(201, "<html></html>"), "OUTCOME_UNKNOWN", "The cloud's answer cannot be read", nil, short},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, now := newCloud(t), newClock()
			c.on(login, test.answer)
			pool := c.pool(now)
			ask := func(logins int) {
				t.Helper()
				for range 3 {
					_, err := pool.Open(t.Context(), c.account(), "")
					expect(t, err, test.reason, "log in: ", test.words)
					expectFields(t, err, test.fields...)
				}
				c.expectCount(login, logins)
			}
			ask(1)
			now.advance(test.remembered - time.Millisecond)
			ask(1)
			now.advance(time.Millisecond)
			ask(2)
			other := c.account()
			other.Password = "another one"
			if _, err := pool.Open(t.Context(), other, ""); err == nil {
				t.Error("another credential is let in")
			}
			c.expectCount(login, 3)
			c.on(login, c.login)
			now.advance(test.remembered)
			if _, err := pool.Open(t.Context(), c.account(), ""); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeystoneAsksToWait(t *testing.T) {
	c, now := newCloud(t), newClock()
	c.on(login, say(429, "", "Retry-After", "30"))
	pool := c.pool(now)
	_, err := pool.Open(t.Context(), c.account(), "")
	expect(t, err, "RATE_LIMITED")
	now.advance(10 * time.Second)
	_, err = pool.Open(t.Context(), c.account(), "")
	expect(t, err, "RATE_LIMITED", "identity")
	if waitOf(err) != 20*time.Second {
		t.Errorf("wait %s", waitOf(err))
	}
	c.expectCount(login, 1)
	c.on(login, c.login)
	now.advance(20 * time.Second)
	if _, err := pool.Open(t.Context(), c.account(), ""); err != nil {
		t.Error(err)
	}
}

func TestSessionsEnd(t *testing.T) {
	c, now := newCloud(t), newClock()
	pool := c.pool(now)
	open := func(a spec.Account, logins int) *session.Session {
		t.Helper()
		s, err := pool.Open(t.Context(), a, "")
		if err != nil {
			t.Fatal(err)
		}
		c.expectCount(login, logins)
		return s
	}
	kept, other := c.account(), c.account()
	other.Password = "another one"
	first := open(kept, 1)
	open(other, 2)
	for range 3 {
		now.advance(50 * time.Minute)
		if open(kept, 2) != first {
			t.Error("a session that is in use has been replaced")
		}
	}
	open(other, 3)
}

func TestASessionMovesWithItsEndpoints(t *testing.T) {
	c := newCloud(t)
	pool := c.pool(newClock())
	open := func() *session.Session {
		t.Helper()
		s, err := pool.Open(t.Context(), c.account(), "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c.on(listServers, say(200, `{"servers": []}`))
	before := open()
	c.expire()
	if err := list(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if open() != before {
		t.Error("a new token makes another session")
	}
	c.url = "https://elsewhere.example.com"
	c.expire()
	_ = list(t.Context(), before)
	account := c.account()
	account.IdentityEndpoint = "https://cloud.example.com/identity/v3"
	after, err := pool.Open(t.Context(), account, "")
	if err != nil || after == before || after.Compute.Endpoint != "https://elsewhere.example.com/compute/v2.1/" {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestLoginsSayWho(t *testing.T) {
	password := func(user map[string]any) map[string]any {
		user["password"] = "p"
		return map[string]any{"methods": []any{"password"}, "password": map[string]any{"user": user}}
	}
	id := func(id string) map[string]any { return map[string]any{"id": id} }
	project := func(p map[string]any) map[string]any { return map[string]any{"project": p} }
	for _, test := range []struct {
		name            string
		account         spec.Account
		identity, scope any
	}{
		{
			"by names", spec.Account{Username: "u", UserDomainName: "D", Password: "p", ProjectName: "pr", ProjectDomainID: "pd"},
			password(map[string]any{"name": "u", "domain": map[string]any{"name": "D"}}), project(map[string]any{"name": "pr", "domain": id("pd")}),
		},
		{
			"by one domain", spec.Account{Username: "u", DomainName: "D", Password: "p", ProjectName: "pr"},
			password(map[string]any{"name": "u", "domain": map[string]any{"name": "D"}}), project(map[string]any{"name": "pr", "domain": map[string]any{"name": "D"}}),
		},
		{
			"by ids", spec.Account{UserID: "u", UserDomainID: "x", Password: "p", ProjectID: "pr", ProjectDomainID: "x"},
			password(id("u")), project(id("pr")),
		},
		{"without a project", spec.Account{UserID: "u", Password: "p"}, password(id("u")), nil},
		{"by a trust", spec.Account{UserID: "u", Password: "p", TrustID: "t"}, password(id("u")), map[string]any{"OS-TRUST:trust": id("t")}},
		{
			"by an application credential", spec.Account{ApplicationCredentialID: "a", ApplicationCredentialSecret: "s", ProjectID: projectID},
			map[string]any{"methods": []any{"application_credential"}, "application_credential": map[string]any{"id": "a", "secret": "s"}}, nil,
		},
		{
			"by the name of one", spec.Account{ApplicationCredentialName: "a", ApplicationCredentialSecret: "s", Username: "u", UserDomainID: "d"},
			map[string]any{"methods": []any{"application_credential"}, "application_credential": map[string]any{
				"name": "a", "secret": "s", "user": map[string]any{"name": "u", "domain": id("d")},
			}}, nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			for _, endpoint := range []string{"/identity", "/identity/", "/identity/v3", "/identity/v3/", "/identity/v2.0/"} {
				test.account.IdentityEndpoint = c.url + endpoint
				if _, err := c.pool(newClock()).Open(t.Context(), test.account, ""); err != nil {
					t.Fatal(err)
				}
			}
			c.expectCount(login, 5)
			var got struct {
				Auth struct{ Identity, Scope any }
			}
			if err := json.Unmarshal([]byte(c.bodies[0]), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.identity, got.Auth.Identity); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.scope, got.Auth.Scope); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	const check = "GET /identity/v3/auth/tokens"
	for _, test := range []struct {
		name           string
		account        spec.Account
		checks, logins int
	}{
		{"for its own project", spec.Account{}, 1, 0},
		{"for its own project, by id", spec.Account{ProjectID: projectID}, 1, 0},
		{"for its own project, by name", spec.Account{ProjectName: "demo", ProjectDomainID: "default"}, 1, 0},
		{"for another one", spec.Account{ProjectID: "another"}, 1, 1},
		{"for another one, by name", spec.Account{ProjectName: "another", ProjectDomainID: "default"}, 1, 1},
		{"for a trust", spec.Account{TrustID: "t"}, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			c.tokens["given"] = true
			c.on(check, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Auth-Token") != "given" || r.Header.Get("X-Subject-Token") != "given" {
					t.Errorf("headers %v", r.Header)
				}
				say(200, c.token(), "X-Subject-Token", "given")(w, r)
			})
			test.account.IdentityEndpoint, test.account.Token = c.url+"/identity/v3", "given"
			s, err := c.pool(newClock()).Open(t.Context(), test.account, "")
			if err != nil || s.ProjectID != projectID {
				t.Fatal(s, err)
			}
			c.expectCount(check, test.checks)
			c.expectCount(login, test.logins)
		})
	}
	t.Run("unknown", func(t *testing.T) {
		c := newCloud(t)
		c.on(check, say(401, refusedBody))
		_, err := c.pool(newClock()).Open(t.Context(), spec.Account{IdentityEndpoint: c.url + "/identity", Token: "given"}, "")
		expect(t, err, "CREDENTIALS_INVALID", "The request you have made requires authentication.")
	})
}

func TestEndpoints(t *testing.T) {
	type catalog []any
	all := func(region, kind, at string) catalog {
		return catalog{
			entry("compute", region, kind, at+":8774/v2.1"), entry("network", region, kind, at+":9696"), entry("image", region, kind, at+":9292"),
		}
	}
	with := func(lists ...catalog) (joined catalog) {
		for _, list := range lists {
			joined = append(joined, list...)
		}
		return joined
	}
	const a = "https://a.example.com"
	for _, test := range []struct {
		name         string
		catalog      catalog
		region, kind string
		// want are compute, network, image and volume.
		want  []string
		words string
	}{
		{"no versions", all("A", "public", a), "A", "", []string{a + ":8774/v2.1/", a + ":9696/v2.0/", a + ":9292/v2/", ""}, ""},
		{
			"versions everywhere",
			catalog{
				entry("compute", "A", "public", a+"/compute/v2.1/p"), entry("network", "A", "public", a+"/network/v2.0/"),
				entry("image", "A", "public", a+"/image/v2"), entry("volumev3", "A", "public", a+"/volume/v3/p"),
			},
			"A", "public", []string{a + "/compute/v2.1/p/", a + "/network/v2.0/", a + "/image/v2/", a + "/volume/v3/p/"}, "",
		},
		{
			"nowhere",
			catalog{
				entry("compute", "A", "public", a+"/compute"), entry("networking", "A", "public", a+"/network"),
				entry("image", "A", "public", a+"/image"), entry("block-storage", "A", "public", a+"/volume"),
			},
			"A", "public", []string{a + "/compute/v2.1/", a + "/network/v2.0/", a + "/image/v2/", a + "/volume/v3/" + projectID + "/"}, "",
		},
		{"an old Cinder", with(all("A", "public", a), catalog{entry("volume", "A", "public", a+"/v1/p"), entry("volumev2", "A", "public", a+"/v2/p")}), "A", "", []string{a + ":8774/v2.1/", a + ":9696/v2.0/", a + ":9292/v2/", ""}, ""},
		{"the other region", with(all("A", "public", a), all("B", "public", "https://b.example.com")), "B", "", []string{"https://b.example.com:8774/v2.1/", "https://b.example.com:9696/v2.0/", "https://b.example.com:9292/v2/", ""}, ""},
		{"internal", with(all("A", "public", a), all("A", "internal", "http://10.0.0.1")), "A", "internal", []string{"http://10.0.0.1:8774/v2.1/", "http://10.0.0.1:9696/v2.0/", "http://10.0.0.1:9292/v2/", ""}, ""},
		{"the only region", all("A", "public", a), "", "", []string{a + ":8774/v2.1/", a + ":9696/v2.0/", a + ":9292/v2/", ""}, ""},
		{"no such region", with(all("B", "public", a), all("A", "public", a)), "C", "", nil, "The catalog has no public endpoint of the compute service in the region C. There are the regions A, B."},
		{"no Neutron", all("A", "public", a)[:1], "A", "", nil, "no public endpoint of the network service in the region A"},
		{"which of two", with(all("B", "public", a), all("A", "public", a)), "", "", nil, "name one of A, B"},
		{"none at all", catalog{}, "", "", nil, "The catalog has no public endpoint of the compute service"},
		{"none that is internal", all("A", "public", a), "A", "internal", nil, "no internal endpoint of the compute service in the region A, nor has it any such endpoint"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			c.catalog = test.catalog
			account := c.account()
			account.Region, account.Interface = test.region, test.kind
			s, err := c.pool(newClock()).Open(t.Context(), account, "")
			if test.want == nil {
				expect(t, err, "DEPENDENCY_NOT_FOUND", test.words)
				expectFields(t, err, "region")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := []string{s.Compute.ResourceBaseURL(), s.Network.ResourceBaseURL(), s.Image.ResourceBaseURL(), ""}
			if s.Volume != nil {
				got[3] = s.Volume.ResourceBaseURL()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if c.total() != 1 {
				t.Errorf("%d requests, want the login alone", c.total())
			}
		})
	}
}

func TestAccountsThatAreNone(t *testing.T) {
	c := newCloud(t)
	for name, test := range map[string]struct {
		change func(*spec.Account)
		field  string
	}{
		"no URL":       {func(a *spec.Account) { a.IdentityEndpoint = "" }, "identityEndpoint"},
		"no scheme":    {func(a *spec.Account) { a.IdentityEndpoint = "cloud.example.com/v3" }, "identityEndpoint"},
		"a file":       {func(a *spec.Account) { a.IdentityEndpoint = "file:///etc/passwd" }, "identityEndpoint"},
		"a password":   {func(a *spec.Account) { a.IdentityEndpoint = "https://u:p@cloud.example.com/v3" }, "identityEndpoint"},
		"no CA bundle": {func(a *spec.Account) { a.CACert = "nonsense" }, "caCert"},
		"an empty CA bundle": {func(a *spec.Account) {
			a.CACert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("nonsense")}))
		}, "caCert"},
	} {
		account := c.account()
		test.change(&account)
		_, err := c.pool(newClock()).Open(t.Context(), account, "")
		if reasonOf(err) != "SPEC_INVALID" || strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: %v", name, err)
		}
		expectFields(t, err, test.field)
	}
	if c.total() != 0 {
		t.Errorf("%d requests", c.total())
	}
}

func TestErrorsOfLoginsHoldNoSecrets(t *testing.T) {
	c := newCloud(t)
	for name, test := range map[string]spec.Account{
		"password":               {UserID: "u", Password: "s3cret-password"},
		"token":                  {Token: "s3cret-token", ProjectID: "another"},
		"application credential": {ApplicationCredentialID: "a", ApplicationCredentialSecret: "s3cret-secret"},
	} {
		// The worst that a proxy might do.
		echo := func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			answer, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "Refused: " + string(body) + r.Header.Get("X-Subject-Token")}})
			say(401, string(answer))(w, r)
		}
		c.on(login, echo)
		c.on("GET /identity/v3/auth/tokens", echo)
		test.IdentityEndpoint = c.url + "/identity/v3"
		_, err := c.pool(newClock()).Open(t.Context(), test, "")
		expect(t, err, "CREDENTIALS_INVALID", "Refused: ")
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
