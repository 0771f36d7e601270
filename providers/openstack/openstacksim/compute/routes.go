package compute

import (
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// Routes are the calls that Nova serves.
func (nova *Nova) Routes() []api.Route {
	const at = "/compute/v2.1/"
	do := api.Bind(nova)
	return api.RoutesOf(api.Nova, slices.Concat([]api.Route{
		{Method: "GET", Pattern: "/compute/{$}", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: "/compute", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: "/compute/v2.1", Operation: "ListVersions", Do: do(showVersion), Open: true},
		{Method: "GET", Pattern: "/compute/v2.1/{$}", Operation: "ListVersions", Do: do(showVersion), Open: true},
		{Method: "GET", Pattern: at + "flavors", Operation: "ListFlavors", Do: do(listFlavors), Driver: true},
		{Method: "GET", Pattern: at + "flavors/detail", Operation: "ListFlavors", Do: do(listFlavorsInDetail), Driver: true},
		{Method: "GET", Pattern: at + "flavors/{id}", Operation: "GetFlavor", Do: do(showFlavor), Driver: true},
		{Method: "GET", Pattern: at + "flavors/{id}/os-extra_specs", Operation: "ListExtraSpecs", Do: do(listExtraSpecs)},
		{Method: "GET", Pattern: at + "os-availability-zone", Operation: "ListAvailabilityZones", Do: do(listZones)},
		{Method: "GET", Pattern: at + "os-keypairs", Operation: "ListKeypairs", Do: do(listKeypairs)},
		{Method: "GET", Pattern: at + "limits", Operation: "GetLimits", Do: do(showLimits)},
		{Method: "GET", Pattern: at + "os-quota-sets/{project}", Operation: "GetComputeQuota", Do: do(showComputeQuota)},
		{Method: "GET", Pattern: at + "os-quota-sets/{project}/detail", Operation: "GetComputeQuota", Do: do(showComputeUse)},
		{Method: "PUT", Pattern: at + "os-quota-sets/{project}", Operation: "UpdateComputeQuota", Do: do(updateComputeQuota)},
		{Method: "GET", Pattern: at + "servers", Operation: "ListServers", Do: do(listServers), Driver: true},
		{Method: "GET", Pattern: at + "servers/detail", Operation: "ListServers", Do: do(listServers), Driver: true},
		{Method: "POST", Pattern: at + "servers", Operation: api.CreateServer, Do: do(createServer), Creates: true, Boots: true, Driver: true},
		{Method: "GET", Pattern: at + "os-server-groups", Operation: "ListServerGroups", Do: do(listServerGroups)},
		{Method: "POST", Pattern: at + "os-server-groups", Operation: "CreateServerGroup", Do: do(createServerGroup), Creates: true},
		{Method: "GET", Pattern: at + "os-server-groups/{id}", Operation: "GetServerGroup", Do: do(showServerGroup)},
		{Method: "DELETE", Pattern: at + "os-server-groups/{id}", Operation: "DeleteServerGroup", Do: do(deleteServerGroup)},
	}, serverRoutes(nova, at+"servers/{id}")))
}

// serverRoutes are the calls that are about one server.
func serverRoutes(nova *Nova, server string) []api.Route {
	do := api.Bind(nova)
	return []api.Route{
		{Method: "GET", Pattern: server, Operation: "GetServer", Do: do(showServer), Driver: true},
		{Method: "PUT", Pattern: server, Operation: "UpdateServer", Do: do(updateServer)},
		{Method: "DELETE", Pattern: server, Operation: api.DeleteServer, Do: do(deleteServer), Driver: true},
		{Method: "POST", Pattern: server + "/action", Operation: "ActOnServer", Do: do(actOnServer), Action: readAction, Actions: actionNames()},
		{Method: "GET", Pattern: server + "/metadata", Operation: "GetServerMetadata", Do: do(showMetadata)},
		{Method: "PUT", Pattern: server + "/metadata", Operation: "UpdateServerMetadata", Do: do(replaceMetadata)},
		{Method: "POST", Pattern: server + "/metadata", Operation: "UpdateServerMetadata", Do: do(replaceMetadata)},
		{Method: "DELETE", Pattern: server + "/metadata/{key}", Operation: "UpdateServerMetadata", Do: do(deleteMetadata)},
		{Method: "GET", Pattern: server + "/tags", Operation: "GetServerTags", Do: do(showTags)},
		{Method: "PUT", Pattern: server + "/tags", Operation: "UpdateServerTags", Do: do(replaceTags)},
		{Method: "PUT", Pattern: server + "/tags/{tag}", Operation: "UpdateServerTags", Do: do(addTag)},
		{Method: "DELETE", Pattern: server + "/tags/{tag}", Operation: "UpdateServerTags", Do: do(deleteTag)},
		{Method: "GET", Pattern: server + "/os-volume_attachments", Operation: "ListVolumeAttachments", Do: do(listAttachments)},
		{Method: "POST", Pattern: server + "/os-volume_attachments", Operation: "AttachVolume", Do: do(attachVolume)},
		{Method: "GET", Pattern: server + "/os-volume_attachments/{volume}", Operation: "GetVolumeAttachment", Do: do(showAttachment)},
		{Method: "DELETE", Pattern: server + "/os-volume_attachments/{volume}", Operation: "DetachVolume", Do: do(detachVolume)},
		{Method: "GET", Pattern: server + "/os-interface", Operation: "ListInterfaces", Do: do(listInterfaces)},
	}
}
