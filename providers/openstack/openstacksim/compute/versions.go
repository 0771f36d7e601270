package compute

import (
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

func version(nova *Nova, call *api.Call) api.Object {
	return api.Object{
		"id": "v2.1", "status": "CURRENT", "version": nova.options.MaxVersion.String(), "min_version": api.LeastMicroversion.String(), "updated": "2013-07-23T11:33:21Z",
		"links": []api.Object{
			{"rel": "self", "href": call.Base() + "/compute/v2.1/"},
			{"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"},
		},
		"media-types": []api.Object{{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}},
	}
}

// listVersions implements GET / of Nova.
func listVersions(nova *Nova, call *api.Call) (api.Reply, error) {
	newer := version(nova, call)
	delete(newer, "media-types")
	newer["links"] = []api.Object{{"rel": "self", "href": call.Base() + "/compute/v2.1/"}}
	older := api.Object{
		"id": "v2.0", "status": "SUPPORTED", "version": "", "min_version": "", "updated": "2011-01-21T11:33:21Z",
		"links": []api.Object{{"rel": "self", "href": call.Base() + "/compute/v2/"}},
	}
	return api.OK(api.Object{"versions": []api.Object{older, newer}})
}

// showVersion implements GET /v2.1/.
func showVersion(nova *Nova, call *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"version": version(nova, call)})
}

// MostVersion is the highest microversion that Nova of the release Zed speaks.
const MostVersion api.Microversion = 93

// The microversions from which on something is different.
const (
	attachmentsSayMore  api.Microversion = 3
	userDataShown       api.Microversion = 3
	serverLocked        api.Microversion = 9
	serverDescription   api.Microversion = 19
	serverTags          api.Microversion = 26
	networksRequired    api.Microversion = 37
	statusChecked       api.Microversion = 38
	flavorEmbedded      api.Microversion = 47
	tagsAtCreation      api.Microversion = 52
	flavorDescription   api.Microversion = 55
	flavorExtraSpecs    api.Microversion = 61
	trustedCertificates api.Microversion = 63
	groupPolicy         api.Microversion = 64
	volumeTypeAtBoot    api.Microversion = 67
	serverGroupsShown   api.Microversion = 71
	lockedReason        api.Microversion = 73
	updateShowsAll      api.Microversion = 75
	hostnameShown       api.Microversion = 90
)
