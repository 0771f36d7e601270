package identity

import (
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// catalog is what Keystone tells of the services' endpoints.
func catalog(keystone *Keystone, base, project string) []api.Object {
	paths := []struct{ kind, name, path string }{
		{"identity", "keystone", "/v3"}, {"compute", "nova", "/compute/v2.1"}, {"network", "neutron", "/networking"},
		{"image", "glance", "/image"}, {"volumev3", "cinderv3", "/volume/v3/" + project}, {"block-storage", "cinder", "/volume/v3/" + project},
	}
	var catalog []api.Object
	for _, p := range paths {
		if keystone.options.WithoutCinder && strings.HasPrefix(p.path, "/volume") {
			continue
		}
		var endpoints []api.Object
		for _, region := range keystone.options.Regions {
			for _, side := range []string{"public", "internal", "admin"} {
				endpoints = append(endpoints, api.Object{
					"id": state.HexID("endpoint", p.kind+region+side), "interface": side, "region": region, "region_id": region, "url": base + p.path,
				})
			}
		}
		catalog = append(catalog, api.Object{"id": state.HexID("service", p.kind), "type": p.kind, "name": p.name, "endpoints": endpoints})
	}
	return catalog
}

// showCatalog implements GET /v3/auth/catalog.
func showCatalog(keystone *Keystone, call *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"catalog": catalog(keystone, call.Base(), call.Project()), "links": api.Object{"self": call.Base() + "/v3/auth/catalog"}})
}
