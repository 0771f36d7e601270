package identity

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// Routes are the calls that Keystone serves.
func (keystone *Keystone) Routes() []api.Route {
	do := api.Bind(keystone)
	return api.RoutesOf(api.Keystone, []api.Route{
		{Method: "GET", Pattern: "/{$}", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: "/v3", Operation: "ListVersions", Do: do(showVersion), Open: true},
		{Method: "GET", Pattern: "/v3/{$}", Operation: "ListVersions", Do: do(showVersion), Open: true},
		{Method: "POST", Pattern: "/v3/auth/tokens", Operation: "Authenticate", Do: do(login), Open: true, Driver: true},
		{Method: "GET", Pattern: "/v3/auth/tokens", Operation: "ShowToken", Do: do(showToken)},
		{Method: "DELETE", Pattern: "/v3/auth/tokens", Operation: "RevokeToken", Do: do(revokeToken)},
		{Method: "GET", Pattern: "/v3/auth/projects", Operation: "ListProjects", Do: do(listProjects)},
		{Method: "GET", Pattern: "/v3/users/{user}/application_credentials", Operation: "ListCredentials", Do: do(listCredentials)},
		{Method: "POST", Pattern: "/v3/users/{user}/application_credentials", Operation: "CreateCredential", Do: do(createCredential)},
		{Method: "DELETE", Pattern: "/v3/users/{user}/application_credentials/{credential}", Operation: "DeleteCredential", Do: do(deleteCredential)},
		{Method: "GET", Pattern: "/v3/auth/catalog", Operation: "ShowCatalog", Do: do(showCatalog)},
	})
}
