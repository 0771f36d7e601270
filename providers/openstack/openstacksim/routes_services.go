package openstacksim

func neutronRoutes() []route {
	const at = "/networking/v2.0/"
	routes := []route{
		{method: "GET", pattern: "/networking/{$}", operation: "ListVersions", do: listNeutronVersions, open: true},
		{method: "GET", pattern: "/networking", operation: "ListVersions", do: listNeutronVersions, open: true},
		{method: "GET", pattern: at + "{$}", operation: "ListVersions", do: listNeutronResources},
		{method: "GET", pattern: at + "availability_zones", operation: "ListNetworkZones", do: listNetworkZones},
		{method: "GET", pattern: at + "extensions", operation: "ListExtensions", do: listExtensions},
		{method: "GET", pattern: at + "extensions/{id}", operation: "GetExtension", do: getExtension},
		{method: "GET", pattern: at + "networks", operation: "ListNetworks", do: networks.list, driver: true},
		{method: "GET", pattern: at + "networks/{id}", operation: "GetNetwork", do: networks.get, driver: true},
		{method: "POST", pattern: at + "networks", operation: "CreateNetwork", do: createNetwork, creates: true, resource: "network"},
		{method: "DELETE", pattern: at + "networks/{id}", operation: "DeleteNetwork", do: deleteNetwork, resource: "network"},
		{method: "GET", pattern: at + "subnets", operation: "ListSubnets", do: listSubnets, driver: true},
		{method: "GET", pattern: at + "subnets/{id}", operation: "GetSubnet", do: getSubnet, driver: true},
		{method: "POST", pattern: at + "subnets", operation: "CreateSubnet", do: createSubnet, creates: true, resource: "subnet"},
		{method: "DELETE", pattern: at + "subnets/{id}", operation: "DeleteSubnet", do: deleteSubnet, resource: "subnet"},
		{method: "GET", pattern: at + "ports", operation: "ListPorts", do: listPorts, driver: true},
		{method: "GET", pattern: at + "ports/{id}", operation: "GetPort", do: getPort, driver: true},
		{method: "POST", pattern: at + "ports", operation: opCreatePort, do: createPort, creates: true, resource: "port", driver: true},
		{method: "PUT", pattern: at + "ports/{id}", operation: "UpdatePort", do: updatePort, resource: "port"},
		{method: "PUT", pattern: at + "ports/{id}/tags", operation: "ReplacePortTags", do: replacePortTags, resource: "port"},
		{method: "DELETE", pattern: at + "ports/{id}", operation: opDeletePort, do: deletePort, resource: "port", driver: true},
		{method: "GET", pattern: at + "quotas/{project}", operation: "GetNetworkQuota", do: showNetworkQuota},
		{method: "GET", pattern: at + "quotas/{project}/details.json", operation: "GetNetworkQuota", do: showNetworkUse},
		{method: "PUT", pattern: at + "quotas/{project}", operation: "UpdateNetworkQuota", do: updateNetworkQuota, resource: "quota"},
	}
	routes = append(routes, floatingRoutes(at)...)
	for n := range routes {
		routes[n].service = neutron
	}
	return routes
}

func floatingRoutes(at string) []route {
	return []route{
		{method: "GET", pattern: at + "floatingips", operation: "ListFloatingIPs", do: floatingIPs.list, driver: true},
		{method: "GET", pattern: at + "floatingips/{id}", operation: "GetFloatingIP", do: floatingIPs.get},
		{method: "POST", pattern: at + "floatingips", operation: "CreateFloatingIP", do: createFloatingIP, creates: true, resource: "floatingip", driver: true},
		{method: "PUT", pattern: at + "floatingips/{id}", operation: "UpdateFloatingIP", do: updateFloatingIP, resource: "floatingip"},
		{method: "DELETE", pattern: at + "floatingips/{id}", operation: "DeleteFloatingIP", do: deleteFloatingIP, resource: "floatingip", driver: true},
		{method: "GET", pattern: at + "security-groups", operation: "ListSecurityGroups", do: listSecurityGroups, driver: true},
		{method: "GET", pattern: at + "security-groups/{id}", operation: "GetSecurityGroup", do: securityGroups.get},
		{method: "POST", pattern: at + "security-groups", operation: "CreateSecurityGroup", do: createSecurityGroup, creates: true, resource: "security_group"},
		{method: "DELETE", pattern: at + "security-groups/{id}", operation: "DeleteSecurityGroup", do: deleteSecurityGroup, resource: "security_group"},
		{method: "GET", pattern: at + "trunks", operation: "ListTrunks", do: trunks.list},
		{method: "GET", pattern: at + "trunks/{id}", operation: "GetTrunk", do: trunks.get},
		{method: "POST", pattern: at + "trunks", operation: "CreateTrunk", do: createTrunk, creates: true, resource: "trunk", driver: true},
		{method: "DELETE", pattern: at + "trunks/{id}", operation: "DeleteTrunk", do: deleteTrunk, resource: "trunk", driver: true},
		{method: "GET", pattern: at + "routers", operation: "ListRouters", do: routers.list},
		{method: "GET", pattern: at + "routers/{id}", operation: "GetRouter", do: routers.get},
		{method: "POST", pattern: at + "routers", operation: "CreateRouter", do: createRouter, creates: true, resource: "router"},
		{method: "PUT", pattern: at + "routers/{id}", operation: "UpdateRouter", do: updateRouter, resource: "router"},
		{method: "PUT", pattern: at + "routers/{id}/add_router_interface", operation: opAddInterface, do: changeInterface, resource: "router"},
		{method: "PUT", pattern: at + "routers/{id}/remove_router_interface", operation: "RemoveRouterInterface", do: changeInterface, resource: "router"},
		{method: "DELETE", pattern: at + "routers/{id}", operation: "DeleteRouter", do: deleteRouter, resource: "router"},
	}
}

func novaRoutes() []route {
	const at, server = "/compute/v2.1/", "/compute/v2.1/servers/{id}"
	routes := []route{
		{method: "GET", pattern: "/compute/{$}", operation: "ListVersions", do: listNovaVersions, open: true},
		{method: "GET", pattern: "/compute", operation: "ListVersions", do: listNovaVersions, open: true},
		{method: "GET", pattern: "/compute/v2.1", operation: "ListVersions", do: showNovaVersion, open: true},
		{method: "GET", pattern: "/compute/v2.1/{$}", operation: "ListVersions", do: showNovaVersion, open: true},
		{method: "GET", pattern: at + "flavors", operation: "ListFlavors", do: listFlavors, driver: true},
		{method: "GET", pattern: at + "flavors/detail", operation: "ListFlavors", do: listFlavorsInDetail, driver: true},
		{method: "GET", pattern: at + "flavors/{id}", operation: "GetFlavor", do: showFlavor, driver: true},
		{method: "GET", pattern: at + "flavors/{id}/os-extra_specs", operation: "ListExtraSpecs", do: listExtraSpecs},
		{method: "GET", pattern: at + "os-availability-zone", operation: "ListAvailabilityZones", do: listZones},
		{method: "GET", pattern: at + "os-keypairs", operation: "ListKeypairs", do: listKeypairs},
		{method: "GET", pattern: at + "limits", operation: "GetLimits", do: showLimits},
		{method: "GET", pattern: at + "os-quota-sets/{project}", operation: "GetComputeQuota", do: showComputeQuota},
		{method: "GET", pattern: at + "os-quota-sets/{project}/detail", operation: "GetComputeQuota", do: showComputeUse},
		{method: "PUT", pattern: at + "os-quota-sets/{project}", operation: "UpdateComputeQuota", do: updateComputeQuota},
		{method: "GET", pattern: at + "servers", operation: "ListServers", do: listServers, driver: true},
		{method: "GET", pattern: at + "servers/detail", operation: "ListServers", do: listServers, driver: true},
		{method: "POST", pattern: at + "servers", operation: opCreateServer, do: createServer, creates: true, driver: true},
		{method: "GET", pattern: server, operation: "GetServer", do: showServer, driver: true},
		{method: "PUT", pattern: server, operation: "UpdateServer", do: updateServer},
		{method: "DELETE", pattern: server, operation: opDeleteServer, do: deleteServer, driver: true},
		{method: "POST", pattern: server + "/action", operation: opActOnServer, do: actOnServer},
		{method: "GET", pattern: server + "/metadata", operation: "GetServerMetadata", do: showMetadata},
		{method: "PUT", pattern: server + "/metadata", operation: "UpdateServerMetadata", do: replaceMetadata},
		{method: "POST", pattern: server + "/metadata", operation: "UpdateServerMetadata", do: replaceMetadata},
		{method: "DELETE", pattern: server + "/metadata/{key}", operation: "UpdateServerMetadata", do: deleteMetadata},
		{method: "GET", pattern: server + "/tags", operation: "GetServerTags", do: showTags},
		{method: "PUT", pattern: server + "/tags", operation: "UpdateServerTags", do: replaceTags},
		{method: "PUT", pattern: server + "/tags/{tag}", operation: "UpdateServerTags", do: addTag},
		{method: "DELETE", pattern: server + "/tags/{tag}", operation: "UpdateServerTags", do: deleteTag},
	}
	routes = append(routes, groupRoutes(at, server)...)
	for n := range routes {
		routes[n].service = nova
	}
	return routes
}

func groupRoutes(at, server string) []route {
	return []route{
		{method: "GET", pattern: at + "os-server-groups", operation: "ListServerGroups", do: listServerGroups},
		{method: "POST", pattern: at + "os-server-groups", operation: "CreateServerGroup", do: createServerGroup, creates: true},
		{method: "GET", pattern: at + "os-server-groups/{id}", operation: "GetServerGroup", do: showServerGroup},
		{method: "DELETE", pattern: at + "os-server-groups/{id}", operation: "DeleteServerGroup", do: deleteServerGroup},
		{method: "GET", pattern: server + "/os-volume_attachments", operation: "ListVolumeAttachments", do: listAttachments},
		{method: "POST", pattern: server + "/os-volume_attachments", operation: "AttachVolume", do: attachVolume},
		{method: "GET", pattern: server + "/os-volume_attachments/{volume}", operation: "GetVolumeAttachment", do: showAttachment},
		{method: "DELETE", pattern: server + "/os-volume_attachments/{volume}", operation: "DetachVolume", do: detachVolume},
		{method: "GET", pattern: server + "/os-interface", operation: "ListInterfaces", do: listInterfaces},
	}
}
