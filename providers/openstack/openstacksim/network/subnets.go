package network

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Subnet is a subnet of IPv4.
type Subnet struct {
	state.Record
	Network string       `json:"network"`
	Prefix  netip.Prefix `json:"prefix"`
	Gateway string       `json:"gateway,omitempty"`
	// taken are the addresses in use; next is the one at which to look for a free one.
	taken map[string]bool
	next  netip.Addr
}

// NewSubnet returns a subnet of a network, with the first address as its gateway.
func NewSubnet(r state.Record, network string, prefix netip.Prefix) *Subnet {
	prefix = prefix.Masked()
	return &Subnet{Record: r, Network: network, Prefix: prefix, Gateway: prefix.Addr().Next().String()}
}

// Keys implements state.Resource.
func (s *Subnet) Keys() []state.Key {
	return []state.Key{{state.ByName, s.Name}, {ByNetwork, s.Network}}
}

// first is the first address that ports can have, after the gateway's and the one for DHCP.
func (s *Subnet) first() netip.Addr { return s.Prefix.Addr().Next().Next().Next() }

// last is the last address that ports can have, before the broadcast's.
func (s *Subnet) last() netip.Addr {
	b := s.Prefix.Addr().As4()
	hosts := uint32(1)<<(32-s.Prefix.Bits()) - 1
	at := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]) | hosts
	return netip.AddrFrom4([4]byte{byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)}).Prev()
}

// take takes an address that is free; false when there is none.
func (s *Subnet) take() (string, bool) {
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

func (s *Subnet) mark(address string) {
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	s.taken[address] = true
}

// Release gives an address back.
func (neutron *Neutron) Release(ip FixedIP) {
	if s := neutron.Subnets.ByID[ip.Subnet]; s != nil {
		delete(s.taken, ip.Address)
	}
}

var subnets = collection[*Subnet]{
	one: "subnet", many: "subnets", inventory: func(neutron *Neutron) *state.Inventory[*Subnet] { return neutron.Subnets },
	filters:  []string{"network_id", "cidr", "gateway_ip", "ip_version", "enable_dhcp", "shared"},
	indexed:  []string{state.ByName, ByNetwork},
	sortable: []string{"ip_version", "network_id", "subnetpool_id", "cidr", "gateway_ip", "enable_dhcp"},
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "SubnetNotFound", "Subnet %s could not be found.", id)
	},
}

func subnetView(neutron *Neutron, _ *api.Call, s *Subnet) api.Object {
	view := neutronView(&s.Record, 0)
	maps.Copy(view, api.Object{
		"network_id": s.Network, "ip_version": 4, "subnetpool_id": nil, "enable_dhcp": true, "ipv6_ra_mode": nil, "ipv6_address_mode": nil,
		"gateway_ip": api.TextOrNil(s.Gateway), "cidr": s.Prefix.String(), "host_routes": []api.Object{}, "dns_nameservers": []string{},
		"allocation_pools": []api.Object{{"start": s.Prefix.Addr().Next().Next().String(), "end": s.last().String()}}, "service_types": []string{},
	})
	return view
}

// createSubnet implements POST /v2.0/subnets.
func createSubnet(neutron *Neutron, call *api.Call) (api.Reply, error) {
	known := []string{
		"name", "description", "network_id", "cidr", "ip_version", "gateway_ip", "enable_dhcp", "dns_nameservers", "allocation_pools", "host_routes",
		"tenant_id", "project_id", "subnetpool_id", "prefixlen", "service_types", "segment_id", "ipv6_ra_mode", "ipv6_address_mode",
	}
	a, err := readAttributes(call, "subnet", known)
	if err != nil {
		return api.Reply{}, err
	}
	id, err := a.id("network_id")
	if err != nil {
		return api.Reply{}, err
	}
	n, err := networks.find(neutron, call, id)
	if err != nil {
		return api.Reply{}, err
	}
	prefix, err := netip.ParsePrefix(a.text("cidr"))
	if err != nil || !prefix.Addr().Is4() {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", a.text("cidr"))
	}
	for _, other := range neutron.Subnets.With(ByNetwork, n.ID) {
		if other.Prefix.Overlaps(prefix) {
			return api.Reply{}, refuseAs(http.StatusBadRequest, "InvalidInput", "Invalid input for operation: Requested subnet with cidr: %s for network: %s "+
				"overlaps with another subnet.", prefix, n.ID)
		}
	}
	s := NewSubnet(neutron.store.NewRecord(a.project(call), a.text("name")), n.ID, prefix)
	s.Description = a.text("description")
	if raw, given := a["gateway_ip"]; given {
		s.Gateway = ""
		if string(raw) != "null" {
			s.Gateway = a.text("gateway_ip")
		}
	}
	neutron.Subnets.Put(s)
	call.Changed(s.ID)
	return api.WithStatus(http.StatusCreated, api.Object{"subnet": subnetView(neutron, call, s)})
}

// deleteSubnet implements DELETE /v2.0/subnets/{id}.
func deleteSubnet(neutron *Neutron, call *api.Call) (api.Reply, error) {
	s, err := findSubnet(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	used := slices.ContainsFunc(neutron.Ports.With(ByNetwork, s.Network), func(p *Port) bool {
		return slices.ContainsFunc(p.FixedIPs, func(ip FixedIP) bool { return ip.Subnet == s.ID })
	})
	if used {
		return api.Reply{}, refuseAs(http.StatusConflict, "SubnetInUse", "Unable to complete operation on subnet %s: One or more ports have an IP allocation "+
			"from this subnet.", s.ID)
	}
	neutron.Subnets.Remove(s.ID)
	call.Changed(s.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}

// findSubnet finds a subnet of a network that the caller sees.
func findSubnet(neutron *Neutron, call *api.Call, id string) (*Subnet, error) {
	s := neutron.Subnets.ByID[id]
	if s == nil || !seesSubnet(neutron, call, s) {
		return nil, subnets.missing(id)
	}
	return s, nil
}

// seesSubnet says whether the caller sees a subnet: his own, or one of a network that is shared.
// Those of external networks are for administrators.
func seesSubnet(neutron *Neutron, call *api.Call, s *Subnet) bool {
	n := neutron.Networks.ByID[s.Network]
	return call.Sees(s.Project) || n != nil && n.Shared
}

// listSubnets implements GET /v2.0/subnets.
func listSubnets(neutron *Neutron, call *api.Call) (api.Reply, error) {
	return subnetsOf(neutron).list(neutron, call)
}

// getSubnet implements GET /v2.0/subnets/{id}.
func getSubnet(neutron *Neutron, call *api.Call) (api.Reply, error) {
	return subnetsOf(neutron).get(neutron, call)
}

// replaceSubnetTags implements PUT /v2.0/subnets/{id}/tags.
func replaceSubnetTags(neutron *Neutron, call *api.Call) (api.Reply, error) {
	return subnetsOf(neutron).replaceTags(neutron, call)
}

func subnetsOf(neutron *Neutron) collection[*Subnet] {
	k := subnets
	k.visible = func(call *api.Call, s *Subnet) bool { return seesSubnet(neutron, call, s) }
	k.view = subnetView
	return k
}
