package network

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Router is a router of Neutron, between subnets and an external network.
type Router struct {
	state.Record
	External string    `json:"external,omitempty"`
	Gateway  []FixedIP `json:"gateway,omitempty"`
	Subnets  []string  `json:"subnets,omitempty"`
	Revised  int       `json:"revised,omitempty"`
}

// Keys implements state.Resource.
func (r *Router) Keys() []state.Key { return []state.Key{{state.ByName, r.Name}} }

var routers = collection[*Router]{
	one: "router", many: "routers", inventory: func(neutron *Neutron) *state.Inventory[*Router] { return neutron.Routers },
	filters: []string{"admin_state_up"},
	indexed: []string{state.ByName},
	visible: func(call *api.Call, r *Router) bool { return call.Sees(r.Project) },
	view:    routerView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "RouterNotFound", "Router %s could not be found", id)
	},
}

func routerView(neutron *Neutron, _ *api.Call, r *Router) api.Object {
	view := neutronView(&r.Record, r.Revised)
	view["admin_state_up"], view["status"], view["routes"], view["external_gateway_info"] = true, "ACTIVE", []api.Object{}, nil
	view["availability_zone_hints"], view["availability_zones"] = []string{}, []string{}
	if r.External != "" {
		ips := []api.Object{}
		for _, ip := range r.Gateway {
			ips = append(ips, api.Object{"subnet_id": ip.Subnet, "ip_address": ip.Address})
		}
		view["external_gateway_info"] = api.Object{"network_id": r.External, "enable_snat": true, "external_fixed_ips": ips}
	}
	return view
}

// routerBetween returns the router between a subnet and an external network; false when there is
// none.
func routerBetween(neutron *Neutron, subnet, external string) (string, bool) {
	for _, r := range neutron.Routers.Ordered {
		if r.External == external && slices.Contains(r.Subnets, subnet) {
			return r.ID, true
		}
	}
	return "", false
}

// setGateway has a router lead to the external network that is asked for, or to none.
func setGateway(neutron *Neutron, call *api.Call, r *Router, a attributes) error {
	var gateway struct {
		Network string `json:"network_id"`
	}
	if err := a.read("external_gateway_info", &gateway); err != nil {
		return err
	}
	for _, ip := range r.Gateway {
		neutron.Release(ip)
	}
	r.External, r.Gateway = "", nil
	if gateway.Network == "" {
		return nil
	}
	n, err := networks.find(neutron, call, gateway.Network)
	if err != nil {
		return err
	}
	if !n.External {
		return refuseAs(http.StatusBadRequest, "BadRequest", "Bad router request: Network %s is not an external network.", n.ID)
	}
	ip, err := external(neutron, n)
	if err != nil {
		return err
	}
	r.External, r.Gateway = n.ID, []FixedIP{ip}
	return nil
}

var routerAttributes = []string{
	"name", "description", "admin_state_up", "external_gateway_info", "tenant_id", "project_id", "availability_zone_hints", "routes", "ha", "distributed",
}

// createRouter implements POST /v2.0/routers.
func createRouter(neutron *Neutron, call *api.Call) (api.Reply, error) {
	a, err := readAttributes(call, "router", routerAttributes)
	if err != nil {
		return api.Reply{}, err
	}
	r := &Router{Record: neutron.store.NewRecord(a.project(call), a.text("name")), Revised: 1}
	r.Description = a.text("description")
	if err := setGateway(neutron, call, r, a); err != nil {
		return api.Reply{}, err
	}
	neutron.Routers.Put(r)
	call.Changed(r.ID)
	return api.WithStatus(http.StatusCreated, api.Object{"router": routerView(neutron, call, r)})
}

// updateRouter implements PUT /v2.0/routers/{id}.
func updateRouter(neutron *Neutron, call *api.Call) (api.Reply, error) {
	r, err := routers.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	a, err := readAttributes(call, "router", routerAttributes)
	if err != nil {
		return api.Reply{}, err
	}
	if _, given := a["external_gateway_info"]; given {
		if err := setGateway(neutron, call, r, a); err != nil {
			return api.Reply{}, err
		}
	}
	if a.has("name") {
		r.Name = a.text("name")
	}
	r.Updated = testcloud.Now()
	r.Revised++
	neutron.Routers.Put(r)
	call.Changed(r.ID)
	return api.OK(api.Object{"router": routerView(neutron, call, r)})
}

// changeInterface implements PUT /v2.0/routers/{id}/add_router_interface and
// remove_router_interface.
func changeInterface(neutron *Neutron, call *api.Call) (api.Reply, error) {
	r, err := routers.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	var body struct {
		Subnet string `json:"subnet_id"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil || body.Subnet == "" {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "BadRequest", "Bad router request: Either subnet_id or port_id must be specified.")
	}
	s, err := findSubnet(neutron, call, body.Subnet)
	if err != nil {
		return api.Reply{}, err
	}
	portID := state.NamedID("router port", r.ID+s.ID)
	r.Subnets = slices.DeleteFunc(slices.Clone(r.Subnets), func(id string) bool { return id == s.ID })
	if p := neutron.Ports.ByID[portID]; p != nil {
		neutron.DeletePort(p)
	}
	if call.Route.Operation == opAddInterface {
		p := &Port{Record: neutron.store.NewRecord(r.Project, ""), Network: s.Network, Revised: 1}
		p.ID = portID
		connect(neutron, r, s, p, s.Gateway)
	}
	neutron.Routers.Put(r)
	call.Changed(r.ID)
	return api.OK(api.Object{"id": r.ID, "tenant_id": r.Project, "port_id": portID, "network_id": s.Network, "subnet_id": s.ID, "subnet_ids": []string{s.ID}})
}

// routerInterface is the owner of routers' ports.
const routerInterface = "network:router_interface"

// connect gives a router a port in a subnet.
func connect(neutron *Neutron, r *Router, s *Subnet, p *Port, address string) {
	r.Subnets = append(r.Subnets, s.ID)
	p.Project, p.DeviceID, p.DeviceOwner, p.Active = r.Project, r.ID, routerInterface, true
	p.MAC, p.FixedIPs = neutron.FreeMAC(s.Network), []FixedIP{{Subnet: s.ID, Address: address}}
	neutron.AddPort(p)
}

// deleteRouter implements DELETE /v2.0/routers/{id}.
func deleteRouter(neutron *Neutron, call *api.Call) (api.Reply, error) {
	r, err := routers.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	if len(r.Subnets) > 0 {
		return api.Reply{}, refuseAs(http.StatusConflict, "RouterInUse", "Router %s still has ports", r.ID)
	}
	for _, ip := range r.Gateway {
		neutron.Release(ip)
	}
	neutron.Routers.Remove(r.ID)
	call.Changed(r.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}

// opAddInterface is the operation of which changeInterface has to know.
const opAddInterface = "AddRouterInterface"

// AddRouters gives each project a router to each external network, on all its subnets: the first as
// their gateway, the others at an address of their own. projectName is the name of a project by its
// id.
func (neutron *Neutron) AddRouters(projectName func(id string) string) {
	var outer []*Network
	for _, n := range neutron.Networks.Ordered {
		if n.External {
			outer = append(outer, n)
		}
	}
	for _, s := range neutron.Subnets.Ordered {
		if neutron.Networks.ByID[s.Network].External {
			continue
		}
		for number, outside := range outer {
			r := givenRouter(neutron, s.Project, projectName(s.Project)+"-"+outside.Name, outside)
			p := &Port{Record: neutron.store.GivenRecord("router port", "", "", r.ID+s.ID), Network: s.Network}
			address := s.Gateway
			if number > 0 {
				p.Name = "router-" + outside.Name
				address, _ = s.take() // a subnet without room is the world's own fault
			}
			connect(neutron, r, s, p, address)
		}
	}
}

func givenRouter(neutron *Neutron, project, name string, outside *Network) *Router {
	given := neutron.store.GivenRecord("router", "", name, project)
	if r := neutron.Routers.ByID[given.ID]; r != nil {
		return r
	}
	r := &Router{Record: given, External: outside.ID}
	if ip, err := external(neutron, outside); err == nil {
		r.Gateway = []FixedIP{ip}
	}
	neutron.Routers.Put(r)
	return r
}
