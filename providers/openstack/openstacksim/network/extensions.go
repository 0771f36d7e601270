package network

import (
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// extensions are the aliases of those that this Neutron has.
var extensions = []string{
	"agent", "allowed-address-pairs", "availability_zone", "binding", "default-subnetpools", "external-net", "extra_dhcp_opt",
	"filter-validation", "fip-port-details", "ip-substring-filtering", "network_availability_zone", "net-mtu", "pagination", "port-mac-address-override",
	"port-security", "project-id", "provider", "quota_details", "quotas", "router", "security-group", "sorting", "standard-attr-description",
	"standard-attr-revisions", "standard-attr-tag", "standard-attr-timestamp", "subnet_allocation", "trunk", "trunk-details",
}

func extensionView(alias string) api.Object {
	return api.Object{"alias": alias, "name": alias, "description": alias, "updated": "2016-01-01T10:00:00-00:00", "links": []api.Object{}}
}

// listExtensions implements GET /v2.0/extensions.
func listExtensions(*Neutron, *api.Call) (api.Reply, error) {
	views := []api.Object{}
	for _, alias := range extensions {
		views = append(views, extensionView(alias))
	}
	return api.OK(api.Object{"extensions": views})
}

// getExtension implements GET /v2.0/extensions/{id}.
func getExtension(_ *Neutron, call *api.Call) (api.Reply, error) {
	for _, alias := range extensions {
		if alias == call.Path("id") {
			return api.OK(api.Object{"extension": extensionView(alias)})
		}
	}
	return api.Reply{}, &api.Refusal{
		Status: http.StatusNotFound, Outside: true, Message: "The resource could not be found.", Detail: "Extension with alias " + call.Path("id") + " does not exist",
	}
}

// listNetworkZones implements GET /v2.0/availability_zones.
func listNetworkZones(*Neutron, *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"availability_zones": []api.Object{}})
}
