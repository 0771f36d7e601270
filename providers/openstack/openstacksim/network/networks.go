package network

import (
	"maps"
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Network is a network of Neutron.
type Network struct {
	state.Record
	External bool `json:"external,omitempty"`
	Shared   bool `json:"shared,omitempty"`
	Revised  int  `json:"revised,omitempty"`
}

// Keys implements state.Resource.
func (n *Network) Keys() []state.Key { return []state.Key{{state.ByName, n.Name}} }

// SeenBy says whether the caller sees the network.
func (n *Network) SeenBy(call *api.Call) bool { return call.Sees(n.Project) || n.Shared || n.External }

var networks = collection[*Network]{
	one: "network", many: "networks", inventory: func(neutron *Neutron) *state.Inventory[*Network] { return neutron.Networks },
	filters: []string{"admin_state_up", "shared", "router:external", "mtu", "is_default", "port_security_enabled"},
	indexed: []string{state.ByName},
	visible: func(call *api.Call, n *Network) bool { return n.SeenBy(call) },
	view:    networkView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", id)
	},
}

// FirstNetwork is the id of a network of a project; empty where it has none.
func (neutron *Neutron) FirstNetwork(project string) string {
	for _, n := range neutron.Networks.Ordered {
		if n.Project == project && !n.External {
			return n.ID
		}
	}
	return ""
}

func networkView(neutron *Neutron, call *api.Call, n *Network) api.Object {
	ids := []string{}
	for _, s := range neutron.Subnets.With(ByNetwork, n.ID) {
		ids = append(ids, s.ID)
	}
	view := neutronView(&n.Record, n.Revised)
	maps.Copy(view, api.Object{
		"admin_state_up": true, "mtu": 1442, "status": "ACTIVE", "subnets": ids, "shared": n.Shared, "port_security_enabled": true,
		"router:external": n.External, "availability_zone_hints": []string{}, "availability_zones": []string{},
		"ipv4_address_scope": nil, "ipv6_address_scope": nil,
	})
	if n.External {
		view["mtu"], view["is_default"] = 1500, false
	}
	if call.Admin() {
		view["provider:network_type"], view["provider:physical_network"], view["provider:segmentation_id"] = "geneve", nil, n.Seq
	}
	return view
}

// createNetwork implements POST /v2.0/networks.
func createNetwork(neutron *Neutron, call *api.Call) (api.Reply, error) {
	known := []string{
		"name", "description", "admin_state_up", "shared", "router:external", "mtu", "tenant_id", "project_id", "port_security_enabled",
		"provider:network_type", "provider:physical_network", "provider:segmentation_id", "availability_zone_hints", "dns_domain", "is_default",
	}
	a, err := readAttributes(call, "network", known)
	if err != nil {
		return api.Reply{}, err
	}
	for _, name := range []string{"shared", "router:external"} {
		if a.flag(name, false) && !call.Admin() {
			return api.Reply{}, forbidden("(rule:create_network and rule:create_network:" + name + ")")
		}
	}
	n := &Network{Record: neutron.store.NewRecord(a.project(call), a.text("name")), Shared: a.flag("shared", false), External: a.flag("router:external", false), Revised: 1}
	n.Description = a.text("description")
	neutron.Networks.Put(n)
	call.Changed(n.ID)
	view := networkView(neutron, call, n)
	view["is_default"] = false
	return api.WithStatus(http.StatusCreated, api.Object{"network": view})
}

// deleteNetwork implements DELETE /v2.0/networks/{id}.
func deleteNetwork(neutron *Neutron, call *api.Call) (api.Reply, error) {
	n, err := networks.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	if !call.Sees(n.Project) {
		return api.Reply{}, networks.missing(n.ID)
	}
	if neutron.Ports.Count(ByNetwork, n.ID) > 0 {
		return api.Reply{}, refuseAs(http.StatusConflict, "NetworkInUse",
			"Unable to complete operation on network %s. There are one or more ports still in use on the network.", n.ID)
	}
	for _, s := range neutron.Subnets.With(ByNetwork, n.ID) {
		neutron.Subnets.Remove(s.ID)
	}
	neutron.Networks.Remove(n.ID)
	call.Changed(n.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}
