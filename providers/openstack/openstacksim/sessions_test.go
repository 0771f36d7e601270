package openstacksim

import (
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	neutronports "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// expire makes all tokens be of yesterday.
func (w *world) expire() {
	w.cloud.front.Lock()
	defer w.cloud.front.Unlock()
	for _, one := range w.cloud.keystone.Tokens {
		one.Expires = testcloud.Now().Add(-time.Hour)
	}
}

func TestExpiredTokensAreRenewed(t *testing.T) {
	w := open(t, Options{})
	before := w.provider.Token()
	w.expire()
	for _, path := range []string{"/compute/v2.1/servers", "/networking/v2.0/ports", "/image/v2/images", "/volume/v3/p/volumes"} {
		if got := w.call("GET", path, ""); got.status != 401 || got.header.Get("Www-Authenticate") == "" {
			t.Errorf("%s with an expired token: %d %s", path, got.status, got.raw)
		}
	}
	if _, err := servers.List(w.compute, nil).AllPages(t.Context()); err != nil {
		t.Errorf("a list: %v", err)
	}
	if after := w.provider.Token(); after == before {
		t.Error("the token is the same")
	}
	if n := len(w.calls("Authenticate", "")); n != 2 {
		t.Errorf("%d logins", n)
	}
}

func TestExpiredTokensWithoutReauthentication(t *testing.T) {
	w := serve(t, Options{})
	o := options("demo")
	o.IdentityEndpoint, o.AllowReauth = w.server.URL+"/v3", false
	var err error
	if w.provider, err = openstack.AuthenticatedClient(t.Context(), o); err != nil {
		t.Fatalf("login: %v", err)
	}
	w.network = w.service(openstack.NewNetworkV2)
	w.expire()
	if _, err := neutronports.List(w.network, nil).AllPages(t.Context()); !gophercloud.ResponseCodeIs(err, 401) {
		t.Errorf("a list: %v", err)
	}
}

func TestRevokedTokens(t *testing.T) {
	w := open(t, Options{})
	if got := w.call("HEAD", "/v3/auth/tokens", "", "X-Subject-Token", w.provider.Token()); got.status != 200 || got.raw != "" {
		t.Errorf("look at a token: %d %q", got.status, got.raw)
	}
	if got := w.call("DELETE", "/v3/auth/tokens", "", "X-Subject-Token", w.provider.Token()); got.status != 204 {
		t.Errorf("revoke: %d %s", got.status, got.raw)
	}
	if got := w.call("GET", "/compute/v2.1/servers", ""); got.status != 401 {
		t.Errorf("a revoked token: %d", got.status)
	}
}

func TestTokenLifetime(t *testing.T) {
	w := open(t, Options{TokenLifetime: time.Minute})
	for _, one := range w.cloud.keystone.Tokens {
		if life := one.Expires.Sub(one.Issued); life < 59*time.Second || life > 61*time.Second {
			t.Errorf("a token lives for %s", life)
		}
	}
}

func TestApplicationCredentials(t *testing.T) {
	w := open(t, Options{})
	path := "/v3/users/" + state.HexID("user", "demo") + "/application_credentials"
	made := w.call("POST", path, `{"application_credential": {"name": "mine", "secret": "s3cret"}}`)
	one, _ := made.body["application_credential"].(map[string]any)
	id, _ := one["id"].(string)
	if made.status != 201 || id == "" || one["secret"] != "s3cret" {
		t.Fatalf("%d %s", made.status, made.raw)
	}
	o := gophercloud.AuthOptions{IdentityEndpoint: w.server.URL + "/v3", ApplicationCredentialID: id, ApplicationCredentialSecret: "s3cret"}
	provider, err := openstack.AuthenticatedClient(t.Context(), o)
	if err != nil {
		t.Fatalf("login: %v", err)
	}
	w.check([]apiCase{
		{"list", "GET", path, "", 200, `"name":"mine"`},
		{"again", "POST", path, `{"application_credential": {"name": "mine"}}`, 409, "Duplicate entry"},
		{"of another user", "GET", "/v3/users/x/application_credentials", "", 403, "You are not authorized"},
		{"delete", "DELETE", path + "/" + id, "", 204, ""},
		{"delete again", "DELETE", path + "/" + id, "", 404, "Could not find Application Credential"},
	})
	if got := w.call("GET", "/compute/v2.1/servers", "", "X-Auth-Token", provider.Token()); got.status != 401 {
		t.Errorf("a token of a credential that is gone: %d", got.status)
	}
}

func TestLoginCanFailToo(t *testing.T) {
	w := serve(t, Options{})
	w.inject(errorFault(backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE, &backendv1alpha1.FaultMatch{Operation: "Authenticate"}))
	o := options("demo")
	o.IdentityEndpoint = w.server.URL + "/v3"
	if _, err := openstack.AuthenticatedClient(t.Context(), o); !gophercloud.ResponseCodeIs(err, 503) {
		t.Errorf("login: %v", err)
	}
	w.removeFaults()
	w.login("demo")
}
