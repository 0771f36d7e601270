package identity

import (
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

func version(call *api.Call) api.Object {
	return api.Object{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []api.Object{{"rel": "self", "href": call.Base() + "/v3/"}},
		"media-types": []api.Object{{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}
}

// listVersions implements GET /.
func listVersions(_ *Keystone, call *api.Call) (api.Reply, error) {
	answer := api.Reply{Status: http.StatusMultipleChoices, Body: api.Object{"versions": api.Object{"values": []api.Object{version(call)}}}}
	answer.Set("Location", call.Base()+"/v3/")
	return answer, nil
}

// showVersion implements GET /v3.
func showVersion(_ *Keystone, call *api.Call) (api.Reply, error) {
	return api.OK(api.Object{"version": version(call)})
}
