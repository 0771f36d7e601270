package identity

import (
	"encoding/json"
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// credential is an application credential: it opens its user's project.
type credential struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Secret      string `json:"secret"`
	UserID      string `json:"userID"`
}

func credentialView(keystone *Keystone, call *api.Call, one *credential) api.Object {
	who := keystone.Users[one.UserID]
	roles := []api.Object{}
	for _, role := range who.roles() {
		role["domain_id"], role["description"], role["options"] = nil, nil, api.Object{"immutable": true}
		roles = append(roles, role)
	}
	return api.Object{
		"id": one.ID, "name": one.Name, "description": api.TextOrNil(one.Description), "project_id": who.ProjectID, "user_id": who.ID, "roles": roles,
		"expires_at": nil, "system": nil, "unrestricted": nil, "links": api.Object{"self": call.Base() + "/v3/application_credentials/" + one.ID},
	}
}

// findCredential returns the application credential of a request, which is named by its id, or by
// its name and its user.
func findCredential(keystone *Keystone, r *loginRequest) (*credential, error) {
	wanted := r.Auth.Identity.Credential
	if wanted.ID != "" {
		if one := keystone.credentials[wanted.ID]; one != nil {
			return one, nil
		}
		return nil, api.Refuse(http.StatusNotFound, "Could not find Application Credential: %s.", wanted.ID)
	}
	if wanted.User == nil {
		return nil, expecting("user", "application_credential")
	}
	who := findUser(keystone, *wanted.User)
	for _, one := range keystone.credentials {
		if who != nil && one.UserID == who.ID && one.Name == wanted.Name {
			return one, nil
		}
	}
	return nil, api.Refuse(http.StatusUnauthorized, api.RequiresAuthentication)
}

// self returns the user of a path, who can only be the caller.
func self(keystone *Keystone, call *api.Call) (*Account, error) {
	if call.Path("user") != call.Caller.UserID {
		return nil, api.Refuse(http.StatusForbidden, "You are not authorized to perform the requested action.")
	}
	return keystone.Users[call.Caller.UserID], nil
}

// createCredential implements POST /v3/users/{user}/application_credentials.
func createCredential(keystone *Keystone, call *api.Call) (api.Reply, error) {
	who, err := self(keystone, call)
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Credential struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Secret      string `json:"secret"`
		} `json:"application_credential"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil || body.Credential.Name == "" {
		return api.Reply{}, expecting("name", "application_credential")
	}
	one := &credential{
		ID: state.WithoutDashes(state.NewID()), Name: body.Credential.Name, Description: body.Credential.Description, Secret: body.Credential.Secret, UserID: who.ID,
	}
	if one.Secret == "" {
		one.Secret = newToken()
	}
	for _, other := range keystone.credentials {
		if other.UserID == who.ID && other.Name == one.Name {
			return api.Reply{}, api.Refuse(http.StatusConflict, "Conflict occurred attempting to store application_credential - Duplicate entry.")
		}
	}
	keystone.credentials[one.ID] = one
	keystone.store.Journal.Save(func(e *state.Entry) { e.Credentials = append(e.Credentials, written(one)) })
	call.Done = true
	view := credentialView(keystone, call, one)
	view["secret"] = one.Secret
	return api.WithStatus(http.StatusCreated, api.Object{"application_credential": view})
}

// listCredentials implements GET /v3/users/{user}/application_credentials.
func listCredentials(keystone *Keystone, call *api.Call) (api.Reply, error) {
	who, err := self(keystone, call)
	if err != nil {
		return api.Reply{}, err
	}
	views := []api.Object{}
	for _, one := range keystone.credentials {
		if one.UserID == who.ID {
			views = append(views, credentialView(keystone, call, one))
		}
	}
	return api.OK(api.Object{"application_credentials": views, "links": api.Object{"self": call.Base() + call.Request.URL.Path, "previous": nil, "next": nil}})
}

// deleteCredential implements DELETE /v3/users/{user}/application_credentials/{credential}. Tokens
// that it has given are good no more.
func deleteCredential(keystone *Keystone, call *api.Call) (api.Reply, error) {
	who, err := self(keystone, call)
	if err != nil {
		return api.Reply{}, err
	}
	one := keystone.credentials[call.Path("credential")]
	if one == nil || one.UserID != who.ID {
		return api.Reply{}, api.Refuse(http.StatusNotFound, "Could not find Application Credential: %s.", call.Path("credential"))
	}
	delete(keystone.credentials, one.ID)
	keystone.store.Journal.Save(func(e *state.Entry) { e.Revoked = append(e.Revoked, one.ID) })
	for id, given := range keystone.Tokens {
		if given.Credential == one.ID {
			delete(keystone.Tokens, id)
			keystone.store.Journal.Save(func(e *state.Entry) { e.Revoked = append(e.Revoked, id) })
		}
	}
	call.Done = true
	return api.WithStatus(http.StatusNoContent, nil)
}
