package openstacksim

import (
	"encoding/json"
	"net/http"
)

// credential is an application credential: it opens its user's project.
type credential struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Secret      string `json:"secret"`
	UserID      string `json:"userID"`
}

func (c *Cloud) credentialView(t *turn, one *credential) object {
	who := c.users[one.UserID]
	roles := []object{}
	for _, role := range who.roles() {
		role["domain_id"], role["description"], role["options"] = nil, nil, object{"immutable": true}
		roles = append(roles, role)
	}
	return object{
		"id": one.ID, "name": one.Name, "description": textOrNil(one.Description), "project_id": who.ProjectID, "user_id": who.ID, "roles": roles,
		"expires_at": nil, "system": nil, "unrestricted": nil, "links": object{"self": t.base() + "/v3/application_credentials/" + one.ID},
	}
}

// self returns the user of a path, who can only be the caller.
func (t *turn) self() (*account, error) {
	if t.path("user") != t.scope.UserID {
		return nil, refuse(http.StatusForbidden, "You are not authorized to perform the requested action.")
	}
	return t.scope.user, nil
}

// createCredential implements POST /v3/users/{user}/application_credentials.
func createCredential(c *Cloud, t *turn) (reply, error) {
	who, err := t.self()
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Credential struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Secret      string `json:"secret"`
		} `json:"application_credential"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil || body.Credential.Name == "" {
		return reply{}, expecting("name", "application_credential")
	}
	one := &credential{
		ID: withoutDashes(newID()), Name: body.Credential.Name, Description: body.Credential.Description, Secret: body.Credential.Secret, UserID: who.ID,
	}
	if one.Secret == "" {
		one.Secret = newToken()
	}
	for _, other := range c.credentials {
		if other.UserID == who.ID && other.Name == one.Name {
			return reply{}, refuse(http.StatusConflict, "Conflict occurred attempting to store application_credential - Duplicate entry.")
		}
	}
	c.credentials[one.ID] = one
	c.save(func(e *entry) { e.Credentials = append(e.Credentials, one) })
	t.Done = true
	view := c.credentialView(t, one)
	view["secret"] = one.Secret
	return with(http.StatusCreated, object{"application_credential": view})
}

// listCredentials implements GET /v3/users/{user}/application_credentials.
func listCredentials(c *Cloud, t *turn) (reply, error) {
	who, err := t.self()
	if err != nil {
		return reply{}, err
	}
	views := []object{}
	for _, one := range c.credentials {
		if one.UserID == who.ID {
			views = append(views, c.credentialView(t, one))
		}
	}
	return ok(object{"application_credentials": views, "links": object{"self": t.base() + t.request.URL.Path, "previous": nil, "next": nil}})
}

// deleteCredential implements DELETE /v3/users/{user}/application_credentials/{credential}. Tokens
// that it has given are good no more.
func deleteCredential(c *Cloud, t *turn) (reply, error) {
	who, err := t.self()
	if err != nil {
		return reply{}, err
	}
	one := c.credentials[t.path("credential")]
	if one == nil || one.UserID != who.ID {
		return reply{}, refuse(http.StatusNotFound, "Could not find Application Credential: %s.", t.path("credential"))
	}
	delete(c.credentials, one.ID)
	c.save(func(e *entry) { e.Revoked = append(e.Revoked, one.ID) })
	for id, given := range c.tokens {
		if given.Credential == one.ID {
			delete(c.tokens, id)
			c.save(func(e *entry) { e.Revoked = append(e.Revoked, id) })
		}
	}
	t.Done = true
	return with(http.StatusNoContent, nil)
}

// listProjects implements GET /v3/auth/projects.
func listProjects(_ *Cloud, t *turn) (reply, error) {
	u := t.scope.user
	return ok(object{
		"projects": []object{{
			"id": u.ProjectID, "name": u.ProjectName, "domain_id": domainID, "parent_id": domainID, "enabled": true, "is_domain": false, "description": "",
			"tags": []string{}, "options": object{}, "links": object{"self": t.base() + "/v3/projects/" + u.ProjectID},
		}},
		"links": object{"self": t.base() + "/v3/auth/projects", "previous": nil, "next": nil},
	})
}
