package identity

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

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
func login(keystone *Keystone, call *api.Call) (api.Reply, error) {
	var r loginRequest
	if err := json.Unmarshal(call.Body, &r); err != nil || r.Auth == nil {
		return api.Reply{}, expecting("auth", "request body")
	}
	if len(r.Auth.Identity.Methods) == 0 {
		return api.Reply{}, expecting("identity", "auth")
	}
	given, err := authenticate(keystone, &r)
	if err != nil {
		return api.Reply{}, err
	}
	given.ID, given.Issued, given.Expires, given.Audit = newToken(), testcloud.Now(), testcloud.Now().Add(keystone.options.TokenLifetime), newAudit()
	if given.Scoped, err = scoped(given.User, &r); err != nil {
		return api.Reply{}, err
	}
	keystone.Tokens[given.ID] = given
	forgetTokens(keystone)
	answer := api.Reply{Status: http.StatusCreated, Body: tokenView(keystone, call, given)}
	answer.Set("X-Subject-Token", given.ID)
	answer.Set("Vary", "X-Auth-Token")
	keystone.store.Journal.Save(func(e *state.Entry) { e.Tokens = append(e.Tokens, written(given)) })
	return answer, nil
}

func expecting(attribute, target string) error {
	return api.Refuse(http.StatusBadRequest, "Expecting to find %s in %s. The server could not comply with the request since it is either malformed or "+
		"otherwise incorrect. The client is assumed to be in error.", attribute, target)
}

// authenticate returns a token for whom the request proves to be.
func authenticate(keystone *Keystone, r *loginRequest) (*Token, error) {
	methods := r.Auth.Identity.Methods
	switch {
	case slices.Contains(methods, "password") && r.Auth.Identity.Password != nil:
		user := r.Auth.Identity.Password.User
		if user.ID == "" && user.Domain == nil {
			return nil, expecting("domain", "user")
		}
		if who := findUser(keystone, user.reference); who != nil && user.Password == keystone.options.Password {
			return &Token{UserID: who.ID, User: who, Methods: methods}, nil
		}
	case slices.Contains(methods, "token") && r.Auth.Identity.Token != nil:
		known := keystone.Tokens[r.Auth.Identity.Token.ID]
		if known == nil || !known.Expires.After(testcloud.Now()) {
			return nil, api.Refuse(http.StatusNotFound, "Could not recognize Fernet token")
		}
		both := slices.Compact(append(slices.Clone(known.Methods), "token"))
		return &Token{UserID: known.UserID, User: known.User, Credential: known.Credential, Methods: both}, nil
	case slices.Contains(methods, "application_credential") && r.Auth.Identity.Credential != nil:
		one, err := findCredential(keystone, r)
		if err != nil {
			return nil, err
		}
		if one.Secret == r.Auth.Identity.Credential.Secret {
			return &Token{UserID: one.UserID, User: keystone.Users[one.UserID], Credential: one.ID, Methods: methods}, nil
		}
	}
	return nil, api.Refuse(http.StatusUnauthorized, api.RequiresAuthentication)
}

// scoped says whether the login is for the account's project. One for another project is refused.
// An application credential is always for its project.
func scoped(who *Account, r *loginRequest) (bool, error) {
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
	return false, api.Refuse(http.StatusUnauthorized, api.RequiresAuthentication)
}
