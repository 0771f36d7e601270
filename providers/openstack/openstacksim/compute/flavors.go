package compute

import (
	"encoding/json"
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Flavor is a size of servers; RAM is in MiB, Disk and Ephemeral, for the server's other disks on
// the host, are in GiB.
type Flavor struct {
	state.Record
	VCPUs, RAM, Disk, Ephemeral int
	Specs                       map[string]string
}

// Keys implements state.Resource: flavors are found by id alone.
func (f *Flavor) Keys() []state.Key { return nil }

func (f *Flavor) view(call *api.Call) api.Object {
	view := api.Object{
		"id": f.ID, "name": f.Name, "ram": f.RAM, "disk": f.Disk, "vcpus": f.VCPUs, "swap": "", "OS-FLV-EXT-DATA:ephemeral": f.Ephemeral,
		"OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true, "rxtx_factor": json.RawMessage("1.0"), "links": novaLinks(call, "flavors", f.ID),
	}
	if call.Version >= flavorDescription {
		view["description"] = nil
	}
	if call.Version >= flavorExtraSpecs {
		view["extra_specs"] = f.Specs
	}
	if call.Version >= 75 {
		view["swap"] = 0
	}
	return view
}

// novaLinks are the two links that Nova gives with everything.
func novaLinks(call *api.Call, collection, id string) []api.Object {
	return []api.Object{
		{"rel": "self", "href": call.Base() + "/compute/v2.1/" + collection + "/" + id},
		{"rel": "bookmark", "href": call.Base() + "/compute/" + collection + "/" + id},
	}
}

// listFlavors implements GET /flavors.
func listFlavors(nova *Nova, call *api.Call) (api.Reply, error) {
	return flavorPage(nova, call, func(f *Flavor) api.Object {
		view := api.Object{"id": f.ID, "name": f.Name, "links": novaLinks(call, "flavors", f.ID)}
		if call.Version >= flavorDescription {
			view["description"] = nil
		}
		return view
	})
}

// listFlavorsInDetail implements GET /flavors/detail.
func listFlavorsInDetail(nova *Nova, call *api.Call) (api.Reply, error) {
	return flavorPage(nova, call, func(f *Flavor) api.Object { return f.view(call) })
}

func flavorPage(nova *Nova, call *api.Call, view func(*Flavor) api.Object) (api.Reply, error) {
	p, err := api.ReadPage(call)
	if err != nil {
		return api.Reply{}, err
	}
	all := nova.Flavors.Ordered
	if p.Marker != "" {
		marker := nova.Flavors.ByID[p.Marker]
		if marker == nil {
			return api.Reply{}, api.Refuse(http.StatusBadRequest, "marker [%s] not found", p.Marker)
		}
		all = nova.Flavors.After(marker.Seq)
	}
	views := []api.Object{}
	for _, f := range all[:min(p.Limit, len(all))] {
		views = append(views, view(f))
	}
	body := api.Object{"flavors": views}
	p.Link(call, body, "flavors", views)
	return api.OK(body)
}

func findFlavor(nova *Nova, id string) (*Flavor, error) {
	f := nova.Flavors.ByID[id]
	if f == nil {
		return nil, api.Refuse(http.StatusNotFound, "Flavor %s could not be found.", id)
	}
	return f, nil
}

// showFlavor implements GET /flavors/{id}.
func showFlavor(nova *Nova, call *api.Call) (api.Reply, error) {
	f, err := findFlavor(nova, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{"flavor": f.view(call)})
}

// listExtraSpecs implements GET /flavors/{id}/os-extra_specs.
func listExtraSpecs(nova *Nova, call *api.Call) (api.Reply, error) {
	f, err := findFlavor(nova, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{"extra_specs": f.Specs})
}
