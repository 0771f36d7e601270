package openstacksim

import (
	"maps"
	"net/http"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// floatingIP is a floating IP of Neutron.
type floatingIP struct {
	record
	Network string `json:"network"`
	Subnet  string `json:"subnet"`
	Address string `json:"address"`
	Port    string `json:"port,omitempty"`
	FixedIP string `json:"fixedIP,omitempty"`
	Router  string `json:"router,omitempty"`
	Active  bool   `json:"active,omitempty"`
	Revised int    `json:"revised,omitempty"`
	Owner   owner  `json:"owner,omitzero"`
}

func (f *floatingIP) keys() []key {
	return []key{{byDescription, f.Description}, {byPort, f.Port}, {"floating_ip_address", f.Address}, {"floating_network_id", f.Network}}
}

var floatingIPs = collection[*floatingIP]{
	one: "floatingip", many: "floatingips", inventory: func(c *Cloud) *inventory[*floatingIP] { return c.floatingIPs },
	filters:  []string{"floating_network_id", "floating_ip_address", "port_id", "router_id", "fixed_ip_address"},
	indexed:  []string{byDescription, byPort, "floating_ip_address", "floating_network_id"},
	sortable: []string{"floating_ip_address", "floating_network_id", "router_id", "fixed_ip_address"},
	visible:  func(t *turn, f *floatingIP) bool { return t.sees(f.Project) },
	view:     (*Cloud).floatingIPView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "FloatingIPNotFound", "Floating IP %s could not be found", id)
	},
}

func (c *Cloud) floatingIPView(_ *turn, f *floatingIP) object {
	view := neutronView(&f.record, f.Revised)
	delete(view, "name")
	status := "DOWN"
	if f.Port != "" && f.Active {
		status = "ACTIVE"
	}
	maps.Copy(view, object{
		"floating_ip_address": f.Address, "floating_network_id": f.Network, "router_id": textOrNil(f.Router), "port_id": textOrNil(f.Port),
		"fixed_ip_address": textOrNil(f.FixedIP), "status": status, "dns_domain": "", "dns_name": "", "port_details": nil,
	})
	if p := c.ports.byID[f.Port]; p != nil {
		view["port_details"] = object{
			"name": p.Name, "network_id": p.Network, "mac_address": p.MAC, "admin_state_up": !p.Down, "status": p.status(), "device_id": p.DeviceID,
			"device_owner": p.DeviceOwner,
		}
	}
	return view
}

var floatingIPAttributes = []string{
	"floating_network_id", "port_id", "fixed_ip_address", "floating_ip_address", "subnet_id", "description", "tenant_id", "project_id", "dns_name",
	"dns_domain",
}

// createFloatingIP implements POST /v2.0/floatingips.
func createFloatingIP(c *Cloud, t *turn) (reply, error) {
	a, err := readAttributes(t, "floatingip", floatingIPAttributes)
	if err != nil {
		return reply{}, err
	}
	id, err := a.id("floating_network_id")
	if err != nil {
		return reply{}, err
	}
	if !a.has("floating_network_id") {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Failed to parse request. Required attribute 'floating_network_id' not specified")
	}
	if _, err := a.id("port_id"); err != nil {
		return reply{}, err
	}
	f := &floatingIP{record: c.newRecord(a.project(t), ""), Network: id}
	f.Description = a.text("description")
	f.Owner = ownerOfDescription(f.Description)
	if c.exceeds(f.Project, kindFloatingIP, c.floatingIPs.used[f.Project], 1) {
		return reply{}, overQuota("floatingip")
	}
	n, err := networks.find(c, t, id)
	if err != nil {
		return reply{}, err
	}
	if !n.External {
		return reply{}, refuseAs(http.StatusBadRequest, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", id)
	}
	taken, err := c.external(n)
	if err != nil {
		return reply{}, err
	}
	f.Subnet, f.Address = taken.Subnet, taken.Address
	if err := c.associate(t, f, a); err != nil {
		c.free(taken)
		return reply{}, err
	}
	c.floatingIPs.put(f)
	c.own(f.ID, f.Owner)
	t.Changed(f.ID)
	answer := object{"floatingip": c.floatingIPView(t, f)}
	if f.Port != "" {
		// It is up a moment later.
		f.Active = true
		f.Revised++
	}
	return with(http.StatusCreated, answer)
}

// external takes an address of an external network.
func (c *Cloud) external(n *network) (fixedIP, error) {
	for _, s := range c.subnets.with(byNetwork, n.ID) {
		if address, free := s.take(); free {
			return fixedIP{Subnet: s.ID, Address: address}, nil
		}
	}
	return fixedIP{}, exhausted(n.ID)
}

// associate points the floating IP to the port that is asked for; none is fine.
func (c *Cloud) associate(t *turn, f *floatingIP, a attributes) error {
	f.Port, f.FixedIP, f.Router = "", "", ""
	if !a.has("port_id") {
		return nil
	}
	p, err := ports.find(c, t, a.text("port_id"))
	if err != nil {
		return err
	}
	if len(p.FixedIPs) == 0 {
		return refuseAs(http.StatusBadRequest, "BadRequest",
			"Bad floatingip request: Cannot add floating IP to port %s that has no fixed IPv4 addresses.", p.ID)
	}
	ip := p.FixedIPs[0]
	if wanted := a.text("fixed_ip_address"); wanted != "" {
		for _, one := range p.FixedIPs {
			if one.Address == wanted {
				ip = one
			}
		}
	}
	router, reachable := c.routerBetween(ip.Subnet, f.Network)
	if !reachable {
		return refuseAs(http.StatusNotFound, "ExternalGatewayForFloatingIPNotFound", "External network %s is not reachable from subnet %s.  "+
			"Therefore, cannot associate Port %s with a Floating IP.", f.Network, ip.Subnet, p.ID)
	}
	for _, other := range c.floatingIPs.with(byPort, p.ID) {
		if other.ID != f.ID && other.FixedIP == ip.Address && other.Network == f.Network {
			return refuseAs(http.StatusConflict, "FloatingIPPortAlreadyAssociated", "Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as "+
				"that fixed IP already has a floating IP on external network %s.", f.Address, f.ID, p.ID, ip.Address, f.Network)
		}
	}
	f.Port, f.FixedIP, f.Router, f.Active = p.ID, ip.Address, router, f.Given || c.floatingIPs.byID[f.ID] != nil
	return nil
}

// dissociate has the floating IP point to nothing.
func (c *Cloud) dissociate(f *floatingIP) {
	f.Port, f.FixedIP, f.Router = "", "", ""
	f.Updated = testcloud.Now()
	f.Revised++
	c.floatingIPs.put(f)
}

// updateFloatingIP implements PUT /v2.0/floatingips/{id}.
func updateFloatingIP(c *Cloud, t *turn) (reply, error) {
	f, err := floatingIPs.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	a, err := readAttributes(t, "floatingip", floatingIPAttributes)
	if err != nil {
		return reply{}, err
	}
	if _, given := a["port_id"]; given {
		changed := *f
		if err := c.associate(t, &changed, a); err != nil {
			return reply{}, err
		}
		*f = changed
	}
	if a.has("description") {
		f.Description = a.text("description")
		f.Owner = ownerOfDescription(f.Description)
		c.own(f.ID, f.Owner)
	}
	f.Updated = testcloud.Now()
	f.Revised++
	c.floatingIPs.put(f)
	t.Changed(f.ID)
	return ok(object{"floatingip": c.floatingIPView(t, f)})
}

// deleteFloatingIP implements DELETE /v2.0/floatingips/{id}.
func deleteFloatingIP(c *Cloud, t *turn) (reply, error) {
	f, err := floatingIPs.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	c.free(fixedIP{Subnet: f.Subnet, Address: f.Address})
	c.floatingIPs.remove(f.ID)
	t.Changed(f.ID)
	return with(http.StatusNoContent, nil)
}
