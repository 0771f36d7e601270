package volume

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// Routes are the calls that Cinder serves.
func (cinder *Cinder) Routes() []api.Route {
	const at = "/volume/v3/{project}/"
	do := api.Bind(cinder)
	return api.RoutesOf(api.Cinder, []api.Route{
		{Method: "GET", Pattern: "/volume/v3/{$}", Operation: "ListVersions", Do: do(showVersions), Open: true},
		{Method: "GET", Pattern: "/volume/{$}", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: at + "volumes", Operation: "ListVolumes", Do: do(listVolumes)},
		{Method: "GET", Pattern: at + "volumes/detail", Operation: "ListVolumes", Do: do(listVolumes), Driver: true},
		{Method: "POST", Pattern: at + "volumes", Operation: "CreateVolume", Do: do(createVolume), Creates: true, Driver: true},
		{Method: "GET", Pattern: at + "volumes/{id}", Operation: "GetVolume", Do: do(showVolume), Driver: true},
		{Method: "PUT", Pattern: at + "volumes/{id}", Operation: "UpdateVolume", Do: do(updateVolume)},
		{Method: "DELETE", Pattern: at + "volumes/{id}", Operation: "DeleteVolume", Do: do(deleteVolume), Driver: true},
		{Method: "GET", Pattern: at + "os-quota-sets/{target}", Operation: "GetVolumeQuota", Do: do(showVolumeQuota)},
		{Method: "PUT", Pattern: at + "os-quota-sets/{target}", Operation: "UpdateVolumeQuota", Do: do(updateVolumeQuota)},
		{Method: "GET", Pattern: at + "types", Operation: "ListVolumeTypes", Do: do(listVolumeTypes)},
		{Method: "GET", Pattern: at + "types/{id}", Operation: "ListVolumeTypes", Do: do(showVolumeType)},
	})
}
