package openstacksim

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// router is a router of Neutron, between subnets and an external network.
type router struct {
	record
	External string    `json:"external,omitempty"`
	Gateway  []fixedIP `json:"gateway,omitempty"`
	Subnets  []string  `json:"subnets,omitempty"`
	Revised  int       `json:"revised,omitempty"`
}

func (r *router) keys() []key { return []key{{byName, r.Name}} }

var routers = collection[*router]{
	one: "router", many: "routers", inventory: func(c *Cloud) *inventory[*router] { return c.routers },
	filters: []string{"admin_state_up"},
	indexed: []string{byName},
	visible: func(t *turn, r *router) bool { return t.sees(r.Project) },
	view:    (*Cloud).routerView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "RouterNotFound", "Router %s could not be found", id)
	},
}

func (c *Cloud) routerView(_ *turn, r *router) object {
	view := neutronView(&r.record, r.Revised)
	view["admin_state_up"], view["status"], view["routes"], view["external_gateway_info"] = true, "ACTIVE", []object{}, nil
	view["availability_zone_hints"], view["availability_zones"] = []string{}, []string{}
	if r.External != "" {
		ips := []object{}
		for _, ip := range r.Gateway {
			ips = append(ips, object{"subnet_id": ip.Subnet, "ip_address": ip.Address})
		}
		view["external_gateway_info"] = object{"network_id": r.External, "enable_snat": true, "external_fixed_ips": ips}
	}
	return view
}

// routerBetween returns the router between a subnet and an external network; false when there is
// none.
func (c *Cloud) routerBetween(subnet, external string) (string, bool) {
	for _, r := range c.routers.ordered {
		if r.External == external && slices.Contains(r.Subnets, subnet) {
			return r.ID, true
		}
	}
	return "", false
}

// setGateway has a router lead to the external network that is asked for, or to none.
func (c *Cloud) setGateway(t *turn, r *router, a attributes) error {
	var gateway struct {
		Network string `json:"network_id"`
	}
	if err := a.read("external_gateway_info", &gateway); err != nil {
		return err
	}
	for _, ip := range r.Gateway {
		c.free(ip)
	}
	r.External, r.Gateway = "", nil
	if gateway.Network == "" {
		return nil
	}
	n, err := networks.find(c, t, gateway.Network)
	if err != nil {
		return err
	}
	if !n.External {
		return refuseAs(http.StatusBadRequest, "BadRequest", "Bad router request: Network %s is not an external network.", n.ID)
	}
	ip, err := c.external(n)
	if err != nil {
		return err
	}
	r.External, r.Gateway = n.ID, []fixedIP{ip}
	return nil
}

var routerAttributes = []string{
	"name", "description", "admin_state_up", "external_gateway_info", "tenant_id", "project_id", "availability_zone_hints", "routes", "ha", "distributed",
}

// createRouter implements POST /v2.0/routers.
func createRouter(c *Cloud, t *turn) (reply, error) {
	a, err := readAttributes(t, "router", routerAttributes)
	if err != nil {
		return reply{}, err
	}
	r := &router{record: c.newRecord(a.project(t), a.text("name")), Revised: 1}
	r.Description = a.text("description")
	if err := c.setGateway(t, r, a); err != nil {
		return reply{}, err
	}
	c.routers.put(r)
	t.Changed(r.ID)
	return with(http.StatusCreated, object{"router": c.routerView(t, r)})
}

// updateRouter implements PUT /v2.0/routers/{id}.
func updateRouter(c *Cloud, t *turn) (reply, error) {
	r, err := routers.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	a, err := readAttributes(t, "router", routerAttributes)
	if err != nil {
		return reply{}, err
	}
	if _, given := a["external_gateway_info"]; given {
		if err := c.setGateway(t, r, a); err != nil {
			return reply{}, err
		}
	}
	if a.has("name") {
		r.Name = a.text("name")
	}
	r.Updated = testcloud.Now()
	r.Revised++
	c.routers.put(r)
	t.Changed(r.ID)
	return ok(object{"router": c.routerView(t, r)})
}

// changeInterface implements PUT /v2.0/routers/{id}/add_router_interface and
// remove_router_interface.
func changeInterface(c *Cloud, t *turn) (reply, error) {
	r, err := routers.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	var body struct {
		Subnet string `json:"subnet_id"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil || body.Subnet == "" {
		return reply{}, refuseAs(http.StatusBadRequest, "BadRequest", "Bad router request: Either subnet_id or port_id must be specified.")
	}
	s, err := c.findSubnet(t, body.Subnet)
	if err != nil {
		return reply{}, err
	}
	portID := namedID("router port", r.ID+s.ID)
	r.Subnets = slices.DeleteFunc(slices.Clone(r.Subnets), func(id string) bool { return id == s.ID })
	if p := c.ports.byID[portID]; p != nil {
		c.dropPort(p)
	}
	if t.route.operation == opAddInterface {
		p := &port{record: c.newRecord(r.Project, ""), Network: s.Network, Revised: 1}
		p.ID = portID
		c.connect(r, s, p, s.Gateway)
	}
	c.routers.put(r)
	t.Changed(r.ID)
	return ok(object{"id": r.ID, "tenant_id": r.Project, "port_id": portID, "network_id": s.Network, "subnet_id": s.ID, "subnet_ids": []string{s.ID}})
}

// routerInterface is the owner of routers' ports.
const routerInterface = "network:router_interface"

// connect gives a router a port in a subnet.
func (c *Cloud) connect(r *router, s *subnet, p *port, address string) {
	r.Subnets = append(r.Subnets, s.ID)
	p.Project, p.DeviceID, p.DeviceOwner, p.Active = r.Project, r.ID, routerInterface, true
	p.MAC, p.FixedIPs = c.freeMAC(s.Network), []fixedIP{{Subnet: s.ID, Address: address}}
	c.putPort(p)
}

// deleteRouter implements DELETE /v2.0/routers/{id}.
func deleteRouter(c *Cloud, t *turn) (reply, error) {
	r, err := routers.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	if len(r.Subnets) > 0 {
		return reply{}, refuseAs(http.StatusConflict, "RouterInUse", "Router %s still has ports", r.ID)
	}
	for _, ip := range r.Gateway {
		c.free(ip)
	}
	c.routers.remove(r.ID)
	t.Changed(r.ID)
	return with(http.StatusNoContent, nil)
}

// opAddInterface is the operation of which changeInterface has to know.
const opAddInterface = "AddRouterInterface"
