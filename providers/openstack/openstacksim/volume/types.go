package volume

import (
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// Type is a type of volumes.
type Type struct{ ID, Name string }

func (vt Type) view() api.Object {
	return api.Object{
		"id": vt.ID, "name": vt.Name, "is_public": true, "description": nil, "extra_specs": api.Object{},
		"os-volume-type-access:is_public": true,
	}
}

// listVolumeTypes implements GET /v3/{project}/types.
func listVolumeTypes(cinder *Cinder, _ *api.Call) (api.Reply, error) {
	views := []api.Object{}
	for _, vt := range slices.Backward(cinder.Types) {
		views = append(views, vt.view())
	}
	return api.OK(api.Object{"volume_types": views})
}

// showVolumeType implements GET /v3/{project}/types/{id}.
func showVolumeType(cinder *Cinder, call *api.Call) (api.Reply, error) {
	for n, vt := range cinder.Types {
		if vt.ID == call.Path("id") || n == 0 && call.Path("id") == "default" {
			return api.OK(api.Object{"volume_type": vt.view()})
		}
	}
	return api.Reply{}, api.Refuse(http.StatusNotFound, "Volume type %s could not be found.", call.Path("id"))
}

// TypeNamed returns the name of a type by its name or id; the first is the default.
func (cinder *Cinder) TypeNamed(nameOrID string) (string, bool) {
	if nameOrID == "" && len(cinder.Types) > 0 {
		return cinder.Types[0].Name, true
	}
	for _, vt := range cinder.Types {
		if vt.ID == nameOrID || vt.Name == nameOrID {
			return vt.Name, true
		}
	}
	return "", false
}
