package network

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// listVersions implements GET / of Neutron.
func listVersions(_ *Neutron, call *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"versions": []api.Object{{
		"id": "v2.0", "status": "CURRENT", "links": []api.Object{{"rel": "self", "href": call.Base() + "/networking/v2.0/"}},
	}}})
}

// listResources implements GET /v2.0/.
func listResources(_ *Neutron, call *api.Call) (api.Reply, error) {
	resources := []api.Object{}
	for _, name := range []string{"network", "subnet", "subnetpool", "port"} {
		resources = append(resources, api.Object{
			"name": name, "collection": name + "s", "links": []api.Object{{"rel": "self", "href": call.Base() + "/networking/v2.0/" + name + "s"}},
		})
	}
	return api.OK(api.Object{"resources": resources})
}
