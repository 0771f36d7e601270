package identity

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// keystoneTime is how Keystone writes times.
const keystoneTime = "2006-01-02T15:04:05.000000Z"

// Token is one that Keystone has given.
type Token struct {
	ID      string    `json:"id"`
	UserID  string    `json:"userID"`
	Methods []string  `json:"methods"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	// Scoped says that it is for the account's project.
	Scoped bool `json:"scoped,omitempty"`
	// Credential is the application credential that the token was given for; empty for a user.
	Credential string   `json:"credential,omitempty"`
	Audit      string   `json:"audit"`
	User       *Account `json:"-"`
}

func tokenView(keystone *Keystone, call *api.Call, one *Token) api.Object {
	domain := api.Object{"id": domainID, "name": domainName}
	view := api.Object{
		"methods": one.Methods, "audit_ids": []string{one.Audit},
		"expires_at": one.Expires.Format(keystoneTime), "issued_at": one.Issued.Format(keystoneTime),
		"user": api.Object{"id": one.User.ID, "name": one.User.Name, "domain": domain, "password_expires_at": nil},
	}
	if one.Scoped {
		view["project"] = api.Object{"id": one.User.ProjectID, "name": one.User.ProjectName, "domain": domain}
		view["is_domain"] = false
		view["roles"] = one.User.roles()
		view["catalog"] = catalog(keystone, call.Base(), one.User.ProjectID)
	}
	return api.Object{"token": view}
}

// Admit finds out who makes a call, by the token that it shows. Whom it does not know is refused in
// the words of the service that is called.
func (keystone *Keystone) Admit(call *api.Call) error {
	known := keystone.Tokens[call.Token()]
	if known == nil || !known.Expires.After(testcloud.Now()) {
		return call.Route.Service.Unauthorized()
	}
	call.Caller = api.Caller{UserID: known.UserID}
	if known.Scoped {
		call.Caller.ProjectID, call.Caller.Admin = known.User.ProjectID, known.User.Admin
	}
	return nil
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
func forgetTokens(keystone *Keystone) {
	const many = 1000
	if len(keystone.Tokens) < many {
		return
	}
	for id, one := range keystone.Tokens {
		if one.Expires.Before(testcloud.Now()) {
			delete(keystone.Tokens, id)
		}
	}
}

// subject returns the token that a call of Keystone is about.
func subject(keystone *Keystone, call *api.Call) (*Token, error) {
	id := call.Request.Header.Get("X-Subject-Token")
	if one := keystone.Tokens[id]; one != nil && one.Expires.After(testcloud.Now()) {
		return one, nil
	}
	return nil, api.Refuse(http.StatusNotFound, "Could not find token: %s.", id)
}

// showToken implements GET and HEAD /v3/auth/tokens.
func showToken(keystone *Keystone, call *api.Call) (api.Reply, error) {
	one, err := subject(keystone, call)
	if err != nil {
		return api.Reply{}, err
	}
	answer := api.Reply{Status: http.StatusOK, Body: tokenView(keystone, call, one)}
	answer.Set("X-Subject-Token", one.ID)
	return answer, nil
}

// revokeToken implements DELETE /v3/auth/tokens.
func revokeToken(keystone *Keystone, call *api.Call) (api.Reply, error) {
	one, err := subject(keystone, call)
	if err != nil {
		return api.Reply{}, err
	}
	delete(keystone.Tokens, one.ID)
	call.Done = true
	keystone.store.Journal.Save(func(e *state.Entry) { e.Revoked = append(e.Revoked, one.ID) })
	return api.WithStatus(http.StatusNoContent, nil)
}
