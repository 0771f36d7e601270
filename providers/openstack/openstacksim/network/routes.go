package network

import (
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// Routes are the calls that Neutron serves.
func (neutron *Neutron) Routes() []api.Route {
	const at = "/networking/v2.0/"
	do := api.Bind(neutron)
	return api.RoutesOf(api.Neutron, slices.Concat([]api.Route{
		{Method: "GET", Pattern: "/networking/{$}", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: "/networking", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: at + "{$}", Operation: "ListVersions", Do: do(listResources)},
		{Method: "GET", Pattern: at + "availability_zones", Operation: "ListNetworkZones", Do: do(listNetworkZones)},
		{Method: "GET", Pattern: at + "extensions", Operation: "ListExtensions", Do: do(listExtensions)},
		{Method: "GET", Pattern: at + "extensions/{id}", Operation: "GetExtension", Do: do(getExtension)},
		{Method: "GET", Pattern: at + "networks", Operation: "ListNetworks", Do: do(networks.list), Driver: true},
		{Method: "GET", Pattern: at + "networks/{id}", Operation: "GetNetwork", Do: do(networks.get), Driver: true},
		{Method: "POST", Pattern: at + "networks", Operation: "CreateNetwork", Do: do(createNetwork), Creates: true, Resource: "network"},
		{Method: "DELETE", Pattern: at + "networks/{id}", Operation: "DeleteNetwork", Do: do(deleteNetwork), Resource: "network"},
		{Method: "PUT", Pattern: at + "networks/{id}/tags", Operation: "ReplaceNetworkTags", Do: do(networks.replaceTags), Resource: "network"},
		{Method: "GET", Pattern: at + "subnets", Operation: "ListSubnets", Do: do(listSubnets), Driver: true},
		{Method: "GET", Pattern: at + "subnets/{id}", Operation: "GetSubnet", Do: do(getSubnet), Driver: true},
		{Method: "POST", Pattern: at + "subnets", Operation: "CreateSubnet", Do: do(createSubnet), Creates: true, Resource: "subnet"},
		{Method: "DELETE", Pattern: at + "subnets/{id}", Operation: "DeleteSubnet", Do: do(deleteSubnet), Resource: "subnet"},
		{Method: "PUT", Pattern: at + "subnets/{id}/tags", Operation: "ReplaceSubnetTags", Do: do(replaceSubnetTags), Resource: "subnet"},
		{Method: "GET", Pattern: at + "ports", Operation: "ListPorts", Do: do(listPorts), Driver: true},
		{Method: "GET", Pattern: at + "ports/{id}", Operation: "GetPort", Do: do(getPort), Driver: true},
		{Method: "POST", Pattern: at + "ports", Operation: api.CreatePort, Do: do(createPort), Creates: true, Resource: "port", Driver: true},
		{Method: "PUT", Pattern: at + "ports/{id}", Operation: "UpdatePort", Do: do(updatePort), Resource: "port"},
		{Method: "PUT", Pattern: at + "ports/{id}/tags", Operation: "ReplacePortTags", Do: do(ports.replaceTags), Resource: "port"},
		{Method: "DELETE", Pattern: at + "ports/{id}", Operation: api.DeletePort, Do: do(deletePort), Resource: "port", Driver: true},
		{Method: "GET", Pattern: at + "quotas/{project}", Operation: "GetNetworkQuota", Do: do(showNetworkQuota)},
		{Method: "GET", Pattern: at + "quotas/{project}/details.json", Operation: "GetNetworkQuota", Do: do(showNetworkUse)},
		{Method: "PUT", Pattern: at + "quotas/{project}", Operation: "UpdateNetworkQuota", Do: do(updateNetworkQuota), Resource: "quota"},
	}, floatingIPRoutes(neutron, at), routerRoutes(neutron, at)))
}

func floatingIPRoutes(neutron *Neutron, at string) []api.Route {
	do := api.Bind(neutron)
	return []api.Route{
		{Method: "GET", Pattern: at + "floatingips", Operation: "ListFloatingIPs", Do: do(floatingIPs.list), Driver: true},
		{Method: "GET", Pattern: at + "floatingips/{id}", Operation: "GetFloatingIP", Do: do(floatingIPs.get)},
		{Method: "POST", Pattern: at + "floatingips", Operation: "CreateFloatingIP", Do: do(createFloatingIP), Creates: true, Resource: "floatingip", Driver: true},
		{Method: "PUT", Pattern: at + "floatingips/{id}", Operation: "UpdateFloatingIP", Do: do(updateFloatingIP), Resource: "floatingip"},
		{Method: "DELETE", Pattern: at + "floatingips/{id}", Operation: "DeleteFloatingIP", Do: do(deleteFloatingIP), Resource: "floatingip", Driver: true},
		{Method: "GET", Pattern: at + "security-groups", Operation: "ListSecurityGroups", Do: do(listSecurityGroups), Driver: true},
		{Method: "GET", Pattern: at + "security-groups/{id}", Operation: "GetSecurityGroup", Do: do(securityGroups.get)},
		{Method: "POST", Pattern: at + "security-groups", Operation: "CreateSecurityGroup", Do: do(createSecurityGroup), Creates: true, Resource: "security_group"},
		{Method: "DELETE", Pattern: at + "security-groups/{id}", Operation: "DeleteSecurityGroup", Do: do(deleteSecurityGroup), Resource: "security_group"},
		{Method: "PUT", Pattern: at + "security-groups/{id}/tags", Operation: "ReplaceSecurityGroupTags", Do: do(securityGroups.replaceTags), Resource: "security_group"},
		{Method: "GET", Pattern: at + "trunks", Operation: "ListTrunks", Do: do(trunks.list)},
		{Method: "GET", Pattern: at + "trunks/{id}", Operation: "GetTrunk", Do: do(trunks.get)},
		{Method: "POST", Pattern: at + "trunks", Operation: "CreateTrunk", Do: do(createTrunk), Creates: true, Resource: "trunk", Driver: true},
		{Method: "DELETE", Pattern: at + "trunks/{id}", Operation: "DeleteTrunk", Do: do(deleteTrunk), Resource: "trunk", Driver: true},
	}
}

func routerRoutes(neutron *Neutron, at string) []api.Route {
	do := api.Bind(neutron)
	return []api.Route{
		{Method: "GET", Pattern: at + "routers", Operation: "ListRouters", Do: do(routers.list)},
		{Method: "GET", Pattern: at + "routers/{id}", Operation: "GetRouter", Do: do(routers.get)},
		{Method: "POST", Pattern: at + "routers", Operation: "CreateRouter", Do: do(createRouter), Creates: true, Resource: "router"},
		{Method: "PUT", Pattern: at + "routers/{id}", Operation: "UpdateRouter", Do: do(updateRouter), Resource: "router"},
		{Method: "PUT", Pattern: at + "routers/{id}/add_router_interface", Operation: opAddInterface, Do: do(changeInterface), Resource: "router"},
		{Method: "PUT", Pattern: at + "routers/{id}/remove_router_interface", Operation: "RemoveRouterInterface", Do: do(changeInterface), Resource: "router"},
		{Method: "DELETE", Pattern: at + "routers/{id}", Operation: "DeleteRouter", Do: do(deleteRouter), Resource: "router"},
	}
}
