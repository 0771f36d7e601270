package volume

import (
	"net/http"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// LeastVersion is the version of Cinder's API for those who ask for none. What it has here is
// the same in all.
const LeastVersion = "3.0"

// ReadVersion reads which version of Cinder's API a call speaks; one of another service is
// refused.
func ReadVersion(call *api.Call) error {
	call.Spoken = LeastVersion
	given := call.Request.Header.Get(api.VersionHeader)
	if given == "" {
		return nil
	}
	version, ok := strings.CutPrefix(given, "volume ")
	if !ok {
		call.Spoken = ""
		return malformed()
	}
	call.Spoken = version
	return nil
}

// listVersions implements GET / of Cinder.
func listVersions(cinder *Cinder, call *api.Call) (api.Reply, error) {
	answer, err := showVersions(cinder, call)
	answer.Status = http.StatusMultipleChoices
	return answer, err
}

// showVersions implements GET /v3/ of Cinder.
func showVersions(_ *Cinder, call *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"versions": []api.Object{{
		"id": "v3.0", "status": "CURRENT", "version": "3.70", "min_version": "3.0", "updated": "2022-08-31T00:00:00Z",
		"links": []api.Object{
			{"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"}, {"rel": "self", "href": call.Base() + "/volume/v3/"},
		},
		"media-types": []api.Object{{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}},
	}}})
}
