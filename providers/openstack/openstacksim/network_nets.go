package openstacksim

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
)

// network is a network of Neutron.
type network struct {
	record
	External bool `json:"external,omitempty"`
	Shared   bool `json:"shared,omitempty"`
	Revised  int  `json:"revised,omitempty"`
}

func (n *network) keys() []key { return []key{{byName, n.Name}} }

func (n *network) seenBy(t *turn) bool { return t.sees(n.Project) || n.Shared || n.External }

// subnet is a subnet of IPv4.
type subnet struct {
	record
	Network string       `json:"network"`
	Prefix  netip.Prefix `json:"prefix"`
	Gateway string       `json:"gateway,omitempty"`
	// taken are the addresses in use; next is the one at which to look for a free one.
	taken map[string]bool
	next  netip.Addr
}

func newSubnet(r record, network string, prefix netip.Prefix) *subnet {
	prefix = prefix.Masked()
	return &subnet{record: r, Network: network, Prefix: prefix, Gateway: prefix.Addr().Next().String()}
}

func (s *subnet) keys() []key { return []key{{byName, s.Name}, {byNetwork, s.Network}} }

// first is the first address that ports can have, after the gateway's and the one for DHCP.
func (s *subnet) first() netip.Addr { return s.Prefix.Addr().Next().Next().Next() }

// last is the last address that ports can have, before the broadcast's.
func (s *subnet) last() netip.Addr {
	b := s.Prefix.Addr().As4()
	hosts := uint32(1)<<(32-s.Prefix.Bits()) - 1
	at := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]) | hosts
	return netip.AddrFrom4([4]byte{byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)}).Prev()
}

// take takes an address that is free; false when there is none.
func (s *subnet) take() (string, bool) {
	first, last := s.first(), s.last()
	if !s.next.IsValid() || s.next.Compare(first) < 0 || s.next.Compare(last) > 0 {
		s.next = first
	}
	for at, around := s.next, false; !around || at != s.next; {
		if !s.taken[at.String()] {
			s.mark(at.String())
			s.next = at.Next()
			return at.String(), true
		}
		if at = at.Next(); at.Compare(last) > 0 {
			at, around = first, true
		}
		if around && at.Compare(s.next) >= 0 {
			break
		}
	}
	return "", false
}

func (s *subnet) mark(address string) {
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	s.taken[address] = true
}

// free gives an address back.
func (c *Cloud) free(ip fixedIP) {
	if s := c.subnets.byID[ip.Subnet]; s != nil {
		delete(s.taken, ip.Address)
	}
}

var networks = collection[*network]{
	one: "network", many: "networks", inventory: func(c *Cloud) *inventory[*network] { return c.networks },
	filters: []string{"admin_state_up", "shared", "router:external", "mtu", "is_default", "port_security_enabled"},
	indexed: []string{byName},
	visible: func(t *turn, n *network) bool { return n.seenBy(t) },
	view:    (*Cloud).networkView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", id)
	},
}

var subnets = collection[*subnet]{
	one: "subnet", many: "subnets", inventory: func(c *Cloud) *inventory[*subnet] { return c.subnets },
	filters:  []string{"network_id", "cidr", "gateway_ip", "ip_version", "enable_dhcp", "shared"},
	indexed:  []string{byName, byNetwork},
	sortable: []string{"ip_version", "network_id", "subnetpool_id", "cidr", "gateway_ip", "enable_dhcp"},
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "SubnetNotFound", "Subnet %s could not be found.", id)
	},
}

func (c *Cloud) networkView(t *turn, n *network) object {
	ids := []string{}
	for _, s := range c.subnets.with(byNetwork, n.ID) {
		ids = append(ids, s.ID)
	}
	view := neutronView(&n.record, n.Revised)
	maps.Copy(view, object{
		"admin_state_up": true, "mtu": 1442, "status": "ACTIVE", "subnets": ids, "shared": n.Shared, "port_security_enabled": true,
		"router:external": n.External, "availability_zone_hints": []string{}, "availability_zones": []string{},
		"ipv4_address_scope": nil, "ipv6_address_scope": nil,
	})
	if n.External {
		view["mtu"], view["is_default"] = 1500, false
	}
	if t.admin() {
		view["provider:network_type"], view["provider:physical_network"], view["provider:segmentation_id"] = "geneve", nil, n.Seq
	}
	return view
}

// neutronView is what everything of Neutron shows.
func neutronView(r *record, revision int) object {
	return object{
		"id": r.ID, "name": r.Name, "tenant_id": r.Project, "project_id": r.Project, "description": r.Description, "tags": []string{},
		"created_at": r.Created.Format(novaTime), "updated_at": r.Updated.Format(novaTime), "revision_number": revision,
	}
}

func (c *Cloud) subnetView(_ *turn, s *subnet) object {
	view := neutronView(&s.record, 0)
	maps.Copy(view, object{
		"network_id": s.Network, "ip_version": 4, "subnetpool_id": nil, "enable_dhcp": true, "ipv6_ra_mode": nil, "ipv6_address_mode": nil,
		"gateway_ip": textOrNil(s.Gateway), "cidr": s.Prefix.String(), "host_routes": []object{}, "dns_nameservers": []string{},
		"allocation_pools": []object{{"start": s.Prefix.Addr().Next().Next().String(), "end": s.last().String()}}, "service_types": []string{},
	})
	return view
}

// createNetwork implements POST /v2.0/networks.
func createNetwork(c *Cloud, t *turn) (reply, error) {
	known := []string{
		"name", "description", "admin_state_up", "shared", "router:external", "mtu", "tenant_id", "project_id", "port_security_enabled",
		"provider:network_type", "provider:physical_network", "provider:segmentation_id", "availability_zone_hints", "dns_domain", "is_default",
	}
	a, err := readAttributes(t, "network", known)
	if err != nil {
		return reply{}, err
	}
	for _, name := range []string{"shared", "router:external"} {
		if a.flag(name, false) && !t.admin() {
			return reply{}, forbidden("(rule:create_network and rule:create_network:" + name + ")")
		}
	}
	n := &network{record: c.newRecord(a.project(t), a.text("name")), Shared: a.flag("shared", false), External: a.flag("router:external", false), Revised: 1}
	n.Description = a.text("description")
	c.networks.put(n)
	t.Changed(n.ID)
	view := c.networkView(t, n)
	view["is_default"] = false
	return with(http.StatusCreated, object{"network": view})
}

// deleteNetwork implements DELETE /v2.0/networks/{id}.
func deleteNetwork(c *Cloud, t *turn) (reply, error) {
	n, err := networks.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	if !t.sees(n.Project) {
		return reply{}, networks.missing(n.ID)
	}
	if c.ports.count(byNetwork, n.ID) > 0 {
		return reply{}, refuseAs(http.StatusConflict, "NetworkInUse",
			"Unable to complete operation on network %s. There are one or more ports still in use on the network.", n.ID)
	}
	for _, s := range c.subnets.with(byNetwork, n.ID) {
		c.subnets.remove(s.ID)
	}
	c.networks.remove(n.ID)
	t.Changed(n.ID)
	return with(http.StatusNoContent, nil)
}

// createSubnet implements POST /v2.0/subnets.
func createSubnet(c *Cloud, t *turn) (reply, error) {
	known := []string{
		"name", "description", "network_id", "cidr", "ip_version", "gateway_ip", "enable_dhcp", "dns_nameservers", "allocation_pools", "host_routes",
		"tenant_id", "project_id", "subnetpool_id", "prefixlen", "service_types", "segment_id", "ipv6_ra_mode", "ipv6_address_mode",
	}
	a, err := readAttributes(t, "subnet", known)
	if err != nil {
		return reply{}, err
	}
	id, err := a.id("network_id")
	if err != nil {
		return reply{}, err
	}
	n, err := networks.find(c, t, id)
	if err != nil {
		return reply{}, err
	}
	prefix, err := netip.ParsePrefix(a.text("cidr"))
	if err != nil || !prefix.Addr().Is4() {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", a.text("cidr"))
	}
	for _, other := range c.subnets.with(byNetwork, n.ID) {
		if other.Prefix.Overlaps(prefix) {
			return reply{}, refuseAs(http.StatusBadRequest, "InvalidInput", "Invalid input for operation: Requested subnet with cidr: %s for network: %s "+
				"overlaps with another subnet.", prefix, n.ID)
		}
	}
	s := newSubnet(c.newRecord(a.project(t), a.text("name")), n.ID, prefix)
	s.Description = a.text("description")
	if raw, given := a["gateway_ip"]; given {
		s.Gateway = ""
		if string(raw) != "null" {
			s.Gateway = a.text("gateway_ip")
		}
	}
	c.subnets.put(s)
	t.Changed(s.ID)
	return with(http.StatusCreated, object{"subnet": c.subnetView(t, s)})
}

// deleteSubnet implements DELETE /v2.0/subnets/{id}.
func deleteSubnet(c *Cloud, t *turn) (reply, error) {
	s, err := c.findSubnet(t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	used := slices.ContainsFunc(c.ports.with(byNetwork, s.Network), func(p *port) bool {
		return slices.ContainsFunc(p.FixedIPs, func(ip fixedIP) bool { return ip.Subnet == s.ID })
	})
	if used {
		return reply{}, refuseAs(http.StatusConflict, "SubnetInUse", "Unable to complete operation on subnet %s: One or more ports have an IP allocation "+
			"from this subnet.", s.ID)
	}
	c.subnets.remove(s.ID)
	t.Changed(s.ID)
	return with(http.StatusNoContent, nil)
}

// findSubnet finds a subnet of a network that the caller sees.
func (c *Cloud) findSubnet(t *turn, id string) (*subnet, error) {
	s := c.subnets.byID[id]
	if s == nil || !c.seesSubnet(t, s) {
		return nil, subnets.missing(id)
	}
	return s, nil
}

// seesSubnet says whether the caller sees a subnet: his own, or one of a network that is shared.
// Those of external networks are for administrators.
func (c *Cloud) seesSubnet(t *turn, s *subnet) bool {
	n := c.networks.byID[s.Network]
	return t.sees(s.Project) || n != nil && n.Shared
}

// listSubnets implements GET /v2.0/subnets.
func listSubnets(c *Cloud, t *turn) (reply, error) { return subnetsOf(c).list(c, t) }

// getSubnet implements GET /v2.0/subnets/{id}.
func getSubnet(c *Cloud, t *turn) (reply, error) { return subnetsOf(c).get(c, t) }

func subnetsOf(c *Cloud) collection[*subnet] {
	k := subnets
	k.visible = c.seesSubnet
	k.view = (*Cloud).subnetView
	return k
}

// exhausted is what Neutron says of a network that has no addresses any more.
func exhausted(network string) error {
	return refuseAs(http.StatusConflict, "IpAddressGenerationFailure", "%s", fmt.Sprintf("No more IP addresses available on network %s.", network))
}
