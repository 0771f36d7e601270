package apicases_test

import (
	"net/http"
	"slices"
	"strings"
)

const tokens = "/auth/tokens"

func identityCases() []apiCase {
	return []apiCase{
		{name: "identity: log in with a password", do: logInWithPassword},
		{name: "identity: the catalog", do: showCatalog},
		{name: "identity: ways to name user and project", do: logInByNames},
		{name: "identity: refused logins", do: refusedLogins},
		{name: "identity: bodies that are none of a login", do: malformedLogins},
		{name: "identity: application credentials", do: applicationCredentials},
		{name: "identity: a token for a token", do: tokenForToken},
		{name: "identity: requests without a good token", do: badTokens},
		{name: "identity: versions", do: versions},
	}
}

// tryLogin asks for a token without one.
func (r *run) tryLogin(body any, options ...option) answer {
	r.Helper()
	return r.call(http.MethodPost, identity, tokens, body, append([]option{withToken("")}, options...)...)
}

// ofToken is what matters of a token's body.
var ofToken = only("token.*", "token.methods", "token.user", "token.project", "token.expires_at", "token.issued_at")

func logInWithPassword(r *run) {
	a := r.tryLogin(r.passwordLogin(member, member, r.password), ofToken)
	r.note("a token in the header: %t", a.header.Get("X-Subject-Token") != "")
	roles, _ := pick(a.body, "token.roles.name").(list)
	r.note("its roles contain member: %t", slices.Contains(roles, any("member")))
}

func showCatalog(r *run) {
	a := r.tryLogin(r.passwordLogin(member, member, r.password), quiet())
	entries, _ := pick(a.body, "token.catalog").(list)
	for _, kind := range []string{identity, compute, network, image, volume} {
		for _, entry := range entries {
			if pick(entry, "type") != kind {
				continue
			}
			r.note("%s: entry %v, endpoint %v", kind, pick(entry, "*"), pick(pick(entry, "endpoints").(list)[0], "*"))
			var places []string
			for _, e := range pick(entry, "endpoints").(list) {
				places = append(places, pick(e, "region").(string)+" "+pick(e, "interface").(string))
			}
			slices.Sort(places)
			r.note("%s", strings.Join(places, ", "))
		}
	}
}

func logInByNames(r *run) {
	s := r.login(member)
	user := func(u object) object {
		u["password"] = r.password
		return object{"methods": list{"password"}, "password": object{"user": u}}
	}
	byName := object{"name": member, "domain": object{"name": "Default"}}
	inProject := object{"project": object{"name": member, "domain": object{"name": "Default"}}}
	r.tryLogin(loginOf(user(byName), inProject), only("token.project", "token.user"))
	r.tryLogin(loginOf(user(object{"id": s.user}), object{"project": object{"id": s.project}}), only("token.project", "token.user"))
	unscoped := r.tryLogin(loginOf(user(object{"id": s.user}), nil), only("token.*"))
	r.call(http.MethodGet, compute, "/servers", nil, withToken(unscoped.header.Get("X-Subject-Token")))
}

func refusedLogins(r *run) {
	r.tryLogin(r.passwordLogin(member, member, "wrong"))
	r.tryLogin(r.passwordLogin("nobody", member, r.password))
	r.tryLogin(r.passwordLogin(member, "nowhere", r.password))
	r.tryLogin(r.passwordLogin(member, stranger, r.password))
	elsewhere := object{"name": member, "domain": object{"name": "nowhere"}, "password": r.password}
	r.tryLogin(loginOf(object{"methods": list{"password"}, "password": object{"user": elsewhere}}, nil))
	r.tryLogin(loginOf(object{"methods": list{"password"}, "password": object{"user": object{
		"name": member, "domain": object{"id": "default"}, "password": r.password,
	}}}, object{"project": object{"id": "nowhere"}}))
	r.tryLogin(loginOf(object{"methods": list{"token"}, "token": object{"id": "nonsense"}}, nil))
	r.tryLogin(credentialLogin(object{"id": "nonsense"}, "secret"))
}

func malformedLogins(r *run) {
	r.tryLogin(object{})
	r.tryLogin(loginOf(object{"methods": list{"password"}, "password": object{"user": object{"name": member, "password": r.password}}}, nil))
}

func credentialLogin(credential object, secret string) object {
	credential["secret"] = secret
	return loginOf(object{"methods": list{"application_credential"}, "application_credential": credential}, nil)
}

func applicationCredentials(r *run) {
	path := "/users/" + r.login(member).user + "/application_credentials"
	name := r.name("credential", r.unique("credential"))
	a := r.call(http.MethodPost, identity, path, object{"application_credential": object{"name": name, "secret": "s3cret"}},
		only("application_credential.*", "application_credential.name", "application_credential.project_id", "application_credential.unrestricted"))
	id := a.text("application_credential.id")
	r.owns(identity, path+"/"+id)
	r.tryLogin(credentialLogin(object{"id": id}, "s3cret"), only("token.methods", "token.project", "token.user"))
	byName := object{"name": name, "user": object{"name": member, "domain": object{"id": "default"}}}
	r.tryLogin(credentialLogin(byName, "s3cret"), only("token.project"))
	r.tryLogin(credentialLogin(object{"id": id}, "wrong"))
	r.call(http.MethodDelete, identity, path+"/"+id, nil)
	r.tryLogin(credentialLogin(object{"id": id}, "s3cret"), only("error.code", "error.title"))
}

func tokenForToken(r *run) {
	s := r.login(member)
	r.name("token", s.token)
	body := loginOf(object{"methods": list{"token"}, "token": object{"id": s.token}}, object{"project": object{"id": s.project}})
	a := r.tryLogin(body, only("token.project"))
	methods, _ := pick(a.body, "token.methods").(list)
	for _, method := range []string{"password", "token"} { // Keystone keeps a set, in any order
		r.note("its methods contain %s: %t", method, slices.Contains(methods, any(method)))
	}
}

func badTokens(r *run) {
	revoked := r.tryLogin(r.passwordLogin(member, member, r.password), quiet()).header.Get("X-Subject-Token")
	response, raw := r.send(http.MethodDelete, r.identity+tokens, http.Header{"X-Auth-Token": {revoked}, "X-Subject-Token": {revoked}}, nil) //nolint:bodyclose // send has read and closed it
	if response.StatusCode != http.StatusNoContent {
		r.Fatalf("revoke a token: %d %s", response.StatusCode, raw)
	}
	for _, bad := range []struct{ what, token string }{{"no token", ""}, {"a token of nobody's", "nonsense"}, {"a token that was revoked", revoked}} {
		r.note("%s", bad.what)
		r.call(http.MethodGet, compute, "/servers", nil, withToken(bad.token))
		r.call(http.MethodPost, compute, "/servers", r.vm("vm", nil), withToken(bad.token))
		r.call(http.MethodGet, network, "/ports", nil, withToken(bad.token))
		r.call(http.MethodGet, image, "/images", nil, withToken(bad.token))
		r.call(http.MethodGet, volume, "/volumes", nil, withToken(bad.token))
		r.call(http.MethodGet, identity, "/auth/projects", nil, withToken(bad.token))
	}
}

// versions asks for the documents that clients find a service's versions in.
func versions(r *run) {
	show := func(root, path string, paths ...string) {
		r.Helper()
		base := r.names.value(root)
		response, raw := r.send(http.MethodGet, base+path, nil, nil) //nolint:bodyclose // send has read and closed it
		r.note("GET %s%s", root, path)
		a := answer{run: r, status: response.StatusCode, header: response.Header, raw: raw, body: decode(raw)}
		r.writeAnswer(a, request{only: paths})
	}
	show("identity root", "/", "versions.values.id", "versions.values.status", "versions.values.links.href")
	show(identity, "", "version.*", "version.id", "version.status")
	show("compute root", "/", "versions.*", "versions.id", "versions.status", "versions.version", "versions.min_version")
	show(compute, "/", "version.*", "version.id", "version.status", "version.version", "version.min_version", "version.links.rel")
	show("network root", "/")
	show("volumev3 root", "/", "versions.*", "versions.id", "versions.status", "versions.version", "versions.min_version")
}
