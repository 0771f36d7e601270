package network

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// AddressRequest is a fixed IP that a port is asked for with: an address, a subnet, or both.
type AddressRequest struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
}

// identify gives the port its addresses, which no other port of the network may have.
func identify(neutron *Neutron, a attributes, p *Port) error {
	if mac := a.text("mac_address"); mac != "" {
		if neutron.UsesMAC(p.Network, mac) {
			return refuseAs(http.StatusConflict, "MacAddressInUse",
				"Unable to complete operation for network %s. The mac address %s is in use.", p.Network, mac)
		}
		p.MAC = strings.ToLower(mac)
	}
	var wishes []AddressRequest
	if err := a.read("fixed_ips", &wishes); err != nil {
		return err
	}
	if wishes == nil || len(wishes) > 0 {
		if err := neutron.Assign(p, wishes); err != nil {
			return err
		}
	}
	if p.MAC == "" {
		p.MAC = neutron.FreeMAC(p.Network)
	}
	for n := range p.Pairs {
		if p.Pairs[n].MAC == "" {
			p.Pairs[n].MAC = p.MAC
		}
	}
	return nil
}

// Assign gives the port the IP addresses that are asked for, or one of any subnet. When it fails
// nothing is taken.
func (neutron *Neutron) Assign(p *Port, wishes []AddressRequest) error {
	if len(wishes) == 0 {
		wishes = []AddressRequest{{}}
		if neutron.Subnets.Count(ByNetwork, p.Network) == 0 {
			return nil
		}
	}
	for _, w := range wishes {
		ip, err := oneAddress(neutron, p, w)
		if err != nil {
			for _, taken := range p.FixedIPs {
				neutron.Release(taken)
			}
			p.FixedIPs = nil
			return err
		}
		p.FixedIPs = append(p.FixedIPs, ip)
	}
	return nil
}

func oneAddress(neutron *Neutron, p *Port, w AddressRequest) (FixedIP, error) {
	if w.Subnet != "" && !state.IsUUID(w.Subnet) {
		return FixedIP{}, notUUID("fixed_ips", w.Subnet)
	}
	candidates := neutron.Subnets.With(ByNetwork, p.Network)
	if w.Subnet != "" {
		s := neutron.Subnets.ByID[w.Subnet]
		if s == nil {
			return FixedIP{}, subnets.missing(w.Subnet)
		}
		if s.Network != p.Network {
			return FixedIP{}, refuseAs(http.StatusBadRequest, "InvalidInput", "Invalid input for operation: Failed to create port on network %s, because "+
				"fixed_ips included invalid subnet %s.", p.Network, s.ID)
		}
		candidates = []*Subnet{s}
	}
	if w.Address != "" {
		return chosenAddress(w, candidates)
	}
	for _, s := range candidates {
		if address, free := s.take(); free {
			return FixedIP{Subnet: s.ID, Address: address}, nil
		}
	}
	return FixedIP{}, exhausted(p.Network)
}

func chosenAddress(w AddressRequest, candidates []*Subnet) (FixedIP, error) {
	address, err := netip.ParseAddr(w.Address)
	if err != nil {
		return FixedIP{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for fixed_ips. Reason: '%s' is not a valid IP address.", w.Address)
	}
	for _, s := range candidates {
		if !s.Prefix.Contains(address) {
			continue
		}
		if s.taken[address.String()] {
			return FixedIP{}, refuseAs(http.StatusConflict, "IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", address, s.ID)
		}
		s.mark(address.String())
		return FixedIP{Subnet: s.ID, Address: address.String()}, nil
	}
	if w.Subnet != "" {
		return FixedIP{}, refuseAs(http.StatusBadRequest, "InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", address)
	}
	return FixedIP{}, refuseAs(http.StatusBadRequest, "InvalidIpForNetwork",
		"IP address %s is not a valid IP for any of the subnets on the specified network.", address)
}

// FreeMAC returns an address that no port of the network has.
func (neutron *Neutron) FreeMAC(network string) string {
	for {
		n := neutron.dice.Uint32()
		mac := fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", n>>16&255, n>>8&255, n&255)
		if !neutron.UsesMAC(network, mac) {
			return mac
		}
	}
}

// UsesMAC says whether a port of the network has the address.
func (neutron *Neutron) UsesMAC(network, mac string) bool {
	for _, p := range neutron.Ports.With(ByMAC, strings.ToLower(mac)) {
		if p.Network == network {
			return true
		}
	}
	return false
}
