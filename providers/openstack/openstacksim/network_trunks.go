package openstacksim

import (
	"net/http"
)

// trunk is a trunk of Neutron: a port that carries others.
type trunk struct {
	record
	Port     string    `json:"port"`
	SubPorts []subPort `json:"subPorts,omitempty"`
	Revised  int       `json:"revised,omitempty"`
	Owner    owner     `json:"owner,omitzero"`
}

type subPort struct {
	Port string `json:"port_id"`
	Kind string `json:"segmentation_type"`
	ID   int    `json:"segmentation_id"`
}

func (k *trunk) keys() []key {
	return []key{{byName, k.Name}, {byDescription, k.Description}, {byPort, k.Port}}
}

var trunks = collection[*trunk]{
	one: "trunk", many: "trunks", inventory: func(c *Cloud) *inventory[*trunk] { return c.trunks },
	filters:  []string{"port_id", "admin_state_up"},
	indexed:  []string{byName, byDescription, byPort},
	sortable: []string{"port_id"},
	visible:  func(t *turn, k *trunk) bool { return t.sees(k.Project) },
	view:     (*Cloud).trunkView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "TrunkNotFound", "Trunk %s could not be found.", id)
	},
}

func (c *Cloud) trunkView(_ *turn, k *trunk) object {
	view := neutronView(&k.record, k.Revised)
	view["port_id"], view["sub_ports"], view["admin_state_up"], view["status"] = k.Port, subPortsView(k), true, "ACTIVE"
	return view
}

func subPortsView(k *trunk) []object {
	views := []object{}
	for _, s := range k.SubPorts {
		views = append(views, object{"port_id": s.Port, "segmentation_type": s.Kind, "segmentation_id": s.ID})
	}
	return views
}

// trunkDetails are what a port says of its trunk.
func (c *Cloud) trunkDetails(k *trunk) object {
	views := subPortsView(k)
	for _, view := range views {
		if p := c.ports.byID[view["port_id"].(string)]; p != nil { //nolint:forcetypeassert // made above
			view["mac_address"] = p.MAC
		}
	}
	return object{"trunk_id": k.ID, "sub_ports": views}
}

// createTrunk implements POST /v2.0/trunks.
func createTrunk(c *Cloud, t *turn) (reply, error) {
	a, err := readAttributes(t, "trunk", []string{"name", "description", "port_id", "sub_ports", "admin_state_up", "tenant_id", "project_id"})
	if err != nil {
		return reply{}, err
	}
	if !a.has("port_id") {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Failed to parse request. Required attribute 'port_id' not specified")
	}
	id, err := a.id("port_id")
	if err != nil {
		return reply{}, err
	}
	p, err := ports.find(c, t, id)
	if err != nil {
		return reply{}, err
	}
	if c.trunks.count(byPort, p.ID) > 0 {
		return reply{}, refuseAs(http.StatusConflict, "ParentPortInUse", "Port %s is currently in use and is not eligible for use as a parent port.", p.ID)
	}
	k := &trunk{record: c.newRecord(a.project(t), a.text("name")), Port: p.ID, Revised: 1}
	k.Description = a.text("description")
	if err := a.read("sub_ports", &k.SubPorts); err != nil {
		return reply{}, err
	}
	if k.Owner = ownerOfText(k.Name, k.Description); k.Owner == (owner{}) {
		k.Owner = p.Owner
	}
	c.trunks.put(k)
	c.own(k.ID, k.Owner)
	t.Changed(k.ID)
	return with(http.StatusCreated, object{"trunk": c.trunkView(t, k)})
}

// deleteTrunk implements DELETE /v2.0/trunks/{id}.
func deleteTrunk(c *Cloud, t *turn) (reply, error) {
	k, err := trunks.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	c.trunks.remove(k.ID)
	t.Changed(k.ID)
	return with(http.StatusNoContent, nil)
}
