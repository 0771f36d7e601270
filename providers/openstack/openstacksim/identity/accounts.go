package identity

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// The one domain that there is.
const (
	domainID   = "default"
	domainName = "Default"
)

// Account is a user of Keystone, with the one project that it may use.
type Account struct {
	ID, Name    string
	ProjectID   string
	ProjectName string
	Admin       bool
}

// AddProject adds a project with the user of the same name, and an application credential of that
// name. An empty id follows from the name. An admin sees what all projects have.
func (keystone *Keystone) AddProject(name, id string, admin bool) {
	if id == "" {
		id = state.HexID("project", name)
	}
	userID := state.HexID("user", name)
	keystone.Users[userID] = &Account{ID: userID, Name: name, ProjectID: id, ProjectName: name, Admin: admin}
	one := &credential{ID: state.HexID("application credential", name), Name: name, Secret: keystone.options.Password, UserID: userID}
	keystone.credentials[one.ID] = one
}

// ProjectID returns the id of a project that the world names; the name itself where there is none.
func (keystone *Keystone) ProjectID(name string) string {
	for _, u := range keystone.Users {
		if u.ProjectName == name {
			return u.ProjectID
		}
	}
	return name
}

// ProjectName returns the name of a project; empty where there is none.
func (keystone *Keystone) ProjectName(id string) string {
	for _, u := range keystone.Users {
		if u.ProjectID == id {
			return u.ProjectName
		}
	}
	return ""
}

// UserOf returns the id of the user of a project; empty where there is none.
func (keystone *Keystone) UserOf(project string) string {
	for _, u := range keystone.Users {
		if u.ProjectID == project {
			return u.ID
		}
	}
	return ""
}

// reference names a thing of Keystone: by its id, or by its name and domain.
type reference struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Domain *reference `json:"domain"`
}

func (n *reference) isDefault() bool {
	return n != nil && (n.ID == domainID || n.ID == "" && n.Name == domainName)
}

func findUser(keystone *Keystone, wanted reference) *Account {
	if wanted.ID != "" {
		return keystone.Users[wanted.ID]
	}
	if !wanted.Domain.isDefault() {
		return nil
	}
	for _, u := range keystone.Users {
		if u.Name == wanted.Name {
			return u
		}
	}
	return nil
}

// roles are what the user is in its project.
func (a *Account) roles() []api.Object {
	names := []string{"member", "reader"}
	if a.Admin {
		names = append([]string{"admin"}, names...)
	}
	var roles []api.Object
	for _, name := range names {
		roles = append(roles, api.Object{"id": state.HexID("role", name), "name": name})
	}
	return roles
}

// listProjects implements GET /v3/auth/projects.
func listProjects(keystone *Keystone, call *api.Call) (api.Reply, error) {
	u := keystone.Users[call.Caller.UserID]
	return api.OK(api.Object{
		"projects": []api.Object{{
			"id": u.ProjectID, "name": u.ProjectName, "domain_id": domainID, "parent_id": domainID, "enabled": true, "is_domain": false, "description": "",
			"tags": []string{}, "options": api.Object{}, "links": api.Object{"self": call.Base() + "/v3/projects/" + u.ProjectID},
		}},
		"links": api.Object{"self": call.Base() + "/v3/auth/projects", "previous": nil, "next": nil},
	})
}
