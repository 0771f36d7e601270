package network

import (
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Trunk is a trunk of Neutron: a port that carries others.
type Trunk struct {
	state.Record
	Port     string      `json:"port"`
	SubPorts []SubPort   `json:"subPorts,omitempty"`
	Revised  int         `json:"revised,omitempty"`
	Owner    state.Owner `json:"owner,omitzero"`
}

// SubPort is a port that a trunk carries.
type SubPort struct {
	Port string `json:"port_id"`
	Kind string `json:"segmentation_type"`
	ID   int    `json:"segmentation_id"`
}

// Keys implements state.Resource.
func (k *Trunk) Keys() []state.Key {
	return []state.Key{{state.ByName, k.Name}, {ByDescription, k.Description}, {ByPort, k.Port}}
}

var trunks = collection[*Trunk]{
	one: "trunk", many: "trunks", inventory: func(neutron *Neutron) *state.Inventory[*Trunk] { return neutron.Trunks },
	filters:  []string{"port_id", "admin_state_up"},
	indexed:  []string{state.ByName, ByDescription, ByPort},
	sortable: []string{"port_id"},
	visible:  func(call *api.Call, k *Trunk) bool { return call.Sees(k.Project) },
	view:     trunkView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "TrunkNotFound", "Trunk %s could not be found.", id)
	},
}

func trunkView(neutron *Neutron, _ *api.Call, k *Trunk) api.Object {
	view := neutronView(&k.Record, k.Revised)
	view["port_id"], view["sub_ports"], view["admin_state_up"], view["status"] = k.Port, subPortsView(k), true, "ACTIVE"
	return view
}

func subPortsView(k *Trunk) []api.Object {
	views := []api.Object{}
	for _, s := range k.SubPorts {
		views = append(views, api.Object{"port_id": s.Port, "segmentation_type": s.Kind, "segmentation_id": s.ID})
	}
	return views
}

// trunkDetails are what a port says of its trunk.
func trunkDetails(neutron *Neutron, k *Trunk) api.Object {
	views := subPortsView(k)
	for _, view := range views {
		if p := neutron.Ports.ByID[view["port_id"].(string)]; p != nil { //nolint:forcetypeassert // made above
			view["mac_address"] = p.MAC
		}
	}
	return api.Object{"trunk_id": k.ID, "sub_ports": views}
}

// createTrunk implements POST /v2.0/trunks.
func createTrunk(neutron *Neutron, call *api.Call) (api.Reply, error) {
	a, err := readAttributes(call, "trunk", []string{"name", "description", "port_id", "sub_ports", "admin_state_up", "tenant_id", "project_id"})
	if err != nil {
		return api.Reply{}, err
	}
	if !a.has("port_id") {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Failed to parse request. Required attribute 'port_id' not specified")
	}
	id, err := a.id("port_id")
	if err != nil {
		return api.Reply{}, err
	}
	p, err := ports.find(neutron, call, id)
	if err != nil {
		return api.Reply{}, err
	}
	if neutron.Trunks.Count(ByPort, p.ID) > 0 {
		return api.Reply{}, refuseAs(http.StatusConflict, "ParentPortInUse", "Port %s is currently in use and is not eligible for use as a parent port.", p.ID)
	}
	k := &Trunk{Record: neutron.store.NewRecord(a.project(call), a.text("name")), Port: p.ID, Revised: 1}
	k.Description = a.text("description")
	if err := a.read("sub_ports", &k.SubPorts); err != nil {
		return api.Reply{}, err
	}
	if k.Owner = state.OwnerOfText(k.Name, k.Description); k.Owner == (state.Owner{}) {
		k.Owner = p.Owner
	}
	neutron.Trunks.Put(k)
	neutron.store.Owners.Set(k.ID, k.Owner)
	call.Changed(k.ID)
	return api.WithStatus(http.StatusCreated, api.Object{"trunk": trunkView(neutron, call, k)})
}

// deleteTrunk implements DELETE /v2.0/trunks/{id}.
func deleteTrunk(neutron *Neutron, call *api.Call) (api.Reply, error) {
	k, err := trunks.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	neutron.Trunks.Remove(k.ID)
	call.Changed(k.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}
