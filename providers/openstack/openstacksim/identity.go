package openstacksim

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// requiresAuthentication is what Keystone says to whom it does not know, and says no more.
const requiresAuthentication = "The request you have made requires authentication."

// The one domain that there is.
const (
	domainID   = "default"
	domainName = "Default"
)

// keystoneTime is how Keystone writes times.
const keystoneTime = "2006-01-02T15:04:05.000000Z"

// account is a user of Keystone, with the one project that it may use.
type account struct {
	ID, Name    string
	ProjectID   string
	ProjectName string
	Admin       bool
}

// token is one that Keystone has given.
type token struct {
	ID      string    `json:"id"`
	UserID  string    `json:"userID"`
	Methods []string  `json:"methods"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	// Scoped says that it is for the account's project.
	Scoped bool `json:"scoped,omitempty"`
	// Credential is the application credential that the token was given for; empty for a user.
	Credential string `json:"credential,omitempty"`
	Audit      string `json:"audit"`
	user       *account
}

func (c *Cloud) foundProject(p Project) {
	id := p.ID
	if id == "" {
		id = hexID("project", p.Name)
	}
	userID := hexID("user", p.Name)
	c.users[userID] = &account{ID: userID, Name: p.Name, ProjectID: id, ProjectName: p.Name, Admin: p.Admin}
	one := &credential{ID: hexID("application credential", p.Name), Name: p.Name, Secret: Password, UserID: userID}
	c.credentials[one.ID] = one
}

// projectID returns the id of a project that the world names; the name itself where there is none.
func (c *Cloud) projectID(name string) string {
	for _, u := range c.users {
		if u.ProjectName == name {
			return u.ProjectID
		}
	}
	return name
}

// reference names a thing of Keystone: by its id, or by its name and domain.
type reference struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Domain *reference `json:"domain"`
}

// loginRequest is the body of POST /v3/auth/tokens.
type loginRequest struct {
	Auth *struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password *struct {
				User struct {
					reference
					Password string `json:"password"`
				} `json:"user"`
			} `json:"password"`
			Token *struct {
				ID string `json:"id"`
			} `json:"token"`
			Credential *struct {
				reference
				Secret string     `json:"secret"`
				User   *reference `json:"user"`
			} `json:"application_credential"`
		} `json:"identity"`
		// Scope is an object, or the string "unscoped".
		Scope json.RawMessage `json:"scope"`
	} `json:"auth"`
}

// login implements POST /v3/auth/tokens.
func login(c *Cloud, t *turn) (reply, error) {
	var r loginRequest
	if err := json.Unmarshal(t.body, &r); err != nil || r.Auth == nil {
		return reply{}, expecting("auth", "request body")
	}
	if len(r.Auth.Identity.Methods) == 0 {
		return reply{}, expecting("identity", "auth")
	}
	given, err := c.authenticate(&r)
	if err != nil {
		return reply{}, err
	}
	given.ID, given.Issued, given.Expires, given.Audit = newToken(), testcloud.Now(), testcloud.Now().Add(c.options.TokenLifetime), newAudit()
	if given.Scoped, err = scoped(given.user, &r); err != nil {
		return reply{}, err
	}
	c.tokens[given.ID] = given
	c.forgetTokens()
	answer := reply{status: http.StatusCreated, body: c.tokenView(t, given)}
	answer.set("X-Subject-Token", given.ID)
	answer.set("Vary", "X-Auth-Token")
	c.save(func(e *entry) { e.Tokens = append(e.Tokens, given) })
	return answer, nil
}

func expecting(attribute, target string) error {
	return refuse(http.StatusBadRequest, "Expecting to find %s in %s. The server could not comply with the request since it is either malformed or "+
		"otherwise incorrect. The client is assumed to be in error.", attribute, target)
}

// authenticate returns a token for whom the request proves to be.
func (c *Cloud) authenticate(r *loginRequest) (*token, error) {
	methods := r.Auth.Identity.Methods
	switch {
	case slices.Contains(methods, "password") && r.Auth.Identity.Password != nil:
		user := r.Auth.Identity.Password.User
		if user.ID == "" && user.Domain == nil {
			return nil, expecting("domain", "user")
		}
		if who := c.user(user.reference); who != nil && user.Password == Password {
			return &token{UserID: who.ID, user: who, Methods: methods}, nil
		}
	case slices.Contains(methods, "token") && r.Auth.Identity.Token != nil:
		known := c.tokens[r.Auth.Identity.Token.ID]
		if known == nil || !known.Expires.After(testcloud.Now()) {
			return nil, refuse(http.StatusNotFound, "Could not recognize Fernet token")
		}
		both := slices.Compact(append(slices.Clone(known.Methods), "token"))
		return &token{UserID: known.UserID, user: known.user, Credential: known.Credential, Methods: both}, nil
	case slices.Contains(methods, "application_credential") && r.Auth.Identity.Credential != nil:
		one, err := c.credentialed(r)
		if err != nil {
			return nil, err
		}
		if one.Secret == r.Auth.Identity.Credential.Secret {
			return &token{UserID: one.UserID, user: c.users[one.UserID], Credential: one.ID, Methods: methods}, nil
		}
	}
	return nil, refuse(http.StatusUnauthorized, requiresAuthentication)
}

func (c *Cloud) user(wanted reference) *account {
	if wanted.ID != "" {
		return c.users[wanted.ID]
	}
	if !wanted.Domain.isDefault() {
		return nil
	}
	for _, u := range c.users {
		if u.Name == wanted.Name {
			return u
		}
	}
	return nil
}

// credentialed returns the application credential of a request, which is named by its id, or by its
// name and its user.
func (c *Cloud) credentialed(r *loginRequest) (*credential, error) {
	wanted := r.Auth.Identity.Credential
	if wanted.ID != "" {
		if one := c.credentials[wanted.ID]; one != nil {
			return one, nil
		}
		return nil, refuse(http.StatusNotFound, "Could not find Application Credential: %s.", wanted.ID)
	}
	if wanted.User == nil {
		return nil, expecting("user", "application_credential")
	}
	who := c.user(*wanted.User)
	for _, one := range c.credentials {
		if who != nil && one.UserID == who.ID && one.Name == wanted.Name {
			return one, nil
		}
	}
	return nil, refuse(http.StatusUnauthorized, requiresAuthentication)
}

func (n *reference) isDefault() bool {
	return n != nil && (n.ID == domainID || n.ID == "" && n.Name == domainName)
}

// scoped says whether the login is for the account's project. One for another project is refused.
// An application credential is always for its project.
func scoped(who *account, r *loginRequest) (bool, error) {
	if slices.Contains(r.Auth.Identity.Methods, "application_credential") {
		return true, nil
	}
	var scope struct {
		Project *reference `json:"project"`
	}
	if err := json.Unmarshal(r.Auth.Scope, &scope); err != nil || scope.Project == nil {
		return false, nil //nolint:nilerr // no scope, or one that is a string: no project
	}
	p := scope.Project
	if p.ID == who.ProjectID || p.ID == "" && p.Name == who.ProjectName && p.Domain.isDefault() {
		return true, nil
	}
	return false, refuse(http.StatusUnauthorized, requiresAuthentication)
}

// newToken returns a token in the form of Keystone's.
func newToken() string {
	var b [96]byte
	_, _ = rand.Read(b[:]) // never fails
	return "gAAAA" + base64.URLEncoding.EncodeToString(b[:])
}

func newAudit() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// forgetTokens drops tokens that have expired, once they are many.
func (c *Cloud) forgetTokens() {
	const many = 1000
	if len(c.tokens) < many {
		return
	}
	for id, one := range c.tokens {
		if one.Expires.Before(testcloud.Now()) {
			delete(c.tokens, id)
		}
	}
}

// admit finds out who calls. Keystone's calls are open: they check for themselves.
func (c *Cloud) admit(t *turn) error {
	if t.route.open {
		switch {
		case strings.HasPrefix(t.route.pattern, "/compute/v2.1"):
			t.version, t.spoken = leastVersion, leastVersion.String()
		case t.route.service == cinder:
			t.spoken = leastVolumeVersion
		}
		return nil
	}
	known := c.tokens[t.token()]
	if known == nil || !known.Expires.After(testcloud.Now()) {
		return refuse(http.StatusUnauthorized, "%s", t.route.service.unauthorized())
	}
	t.scope = known
	switch t.route.service {
	case nova:
		return t.speak(c.maxVersion())
	case cinder:
		return t.speakOfVolumes()
	}
	return nil
}

// unauthorized are the words for whom a service does not know.
func (s service) unauthorized() string {
	if s == glance {
		return "This server could not verify that you are authorized to access the document you requested. Either you supplied the wrong credentials " +
			"(e.g., bad password), or your browser does not understand how to supply the credentials required."
	}
	return requiresAuthentication
}

// subject returns the token that a call of Keystone is about.
func (c *Cloud) subject(t *turn) (*token, error) {
	id := t.request.Header.Get("X-Subject-Token")
	if one := c.tokens[id]; one != nil && one.Expires.After(testcloud.Now()) {
		return one, nil
	}
	return nil, refuse(http.StatusNotFound, "Could not find token: %s.", id)
}

// showToken implements GET and HEAD /v3/auth/tokens.
func showToken(c *Cloud, t *turn) (reply, error) {
	one, err := c.subject(t)
	if err != nil {
		return reply{}, err
	}
	answer := reply{status: http.StatusOK, body: c.tokenView(t, one)}
	answer.set("X-Subject-Token", one.ID)
	return answer, nil
}

// revokeToken implements DELETE /v3/auth/tokens.
func revokeToken(c *Cloud, t *turn) (reply, error) {
	one, err := c.subject(t)
	if err != nil {
		return reply{}, err
	}
	delete(c.tokens, one.ID)
	t.Done = true
	c.save(func(e *entry) { e.Revoked = append(e.Revoked, one.ID) })
	return with(http.StatusNoContent, nil)
}
