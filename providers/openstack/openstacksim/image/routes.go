package image

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// Routes are the calls that Glance serves.
func (glance *Glance) Routes() []api.Route {
	do := api.Bind(glance)
	return api.RoutesOf(api.Glance, []api.Route{
		{Method: "GET", Pattern: "/image/{$}", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: "/image", Operation: "ListVersions", Do: do(listVersions), Open: true},
		{Method: "GET", Pattern: "/image/versions", Operation: "ListVersions", Do: do(showVersions), Open: true},
		{Method: "GET", Pattern: "/image/v2/images", Operation: "ListImages", Do: do(listImages), Driver: true},
		{Method: "GET", Pattern: "/image/v2/images/{id}", Operation: "GetImage", Do: do(showImage), Driver: true},
	})
}
