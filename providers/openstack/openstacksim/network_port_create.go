package openstacksim

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

var portAttributes = []string{
	"name", "description", "network_id", "mac_address", "fixed_ips", "security_groups", "admin_state_up", "port_security_enabled",
	"allowed_address_pairs", "binding:vnic_type", "binding:profile", "binding:host_id", "device_id", "device_owner", "tenant_id", "project_id", "tags",
	"extra_dhcp_opts", "dns_name", "dns_domain",
}

var vnicTypes = []string{
	"normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic", "vdpa", "accelerator-direct",
	"accelerator-direct-physical", "remote-managed",
}

// ipWish is a fixed IP that a port is asked for with: an address, a subnet, or both.
type ipWish struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
}

// createPort implements POST /v2.0/ports.
func createPort(c *Cloud, t *turn) (reply, error) {
	a, err := readAttributes(t, "port", portAttributes)
	if err != nil {
		return reply{}, err
	}
	id, err := a.id("network_id")
	if err != nil {
		return reply{}, err
	}
	if !a.has("network_id") {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Failed to parse request. Required attribute 'network_id' not specified")
	}
	if _, err := net.ParseMAC(a.text("mac_address")); a.has("mac_address") && err != nil {
		return reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest",
			"Invalid input for mac_address. Reason: '%s' is not a valid MAC address.", a.text("mac_address"))
	}
	n, err := networks.find(c, t, id)
	if err != nil {
		return reply{}, err
	}
	p := &port{record: c.newRecord(a.project(t), a.text("name")), Network: n.ID, Secure: true, Groups: nil, Revised: 1}
	p.Description, p.DeviceID, p.DeviceOwner = a.text("description"), a.text("device_id"), a.text("device_owner")
	if err := c.checkPolicy(t, a, n); err != nil {
		return reply{}, err
	}
	if c.exceeds(p.Project, kindPort, c.ports.used[p.Project], 1) {
		return reply{}, overQuota("port")
	}
	if err := c.describePort(t, a, p, "create_port"); err != nil {
		return reply{}, err
	}
	if err := c.identify(a, p); err != nil {
		return reply{}, err
	}
	p.Owner = ownerOfText(p.Name, p.Description)
	c.putPort(p)
	t.Changed(p.ID)
	return with(http.StatusCreated, object{"port": c.portView(t, p)})
}

// checkPolicy says what the caller may not choose, because the network is another project's or
// because he is no administrator.
func (c *Cloud) checkPolicy(t *turn, a attributes, n *network) error {
	if n.External && !n.Shared && !t.sees(n.Project) {
		return refuseAs(http.StatusForbidden, "HTTPForbidden", "Tenant %s not allowed to create port on this network", t.project())
	}
	for _, name := range []string{"binding:profile", "binding:host_id"} {
		if a.has(name) && string(a[name]) != "{}" && !t.admin() {
			return forbidden("(rule:create_port and rule:create_port:" + name + ")")
		}
	}
	if t.sees(n.Project) || c.options.LaxPortPolicy {
		return nil
	}
	for _, name := range []string{"mac_address", "port_security_enabled"} {
		if a.has(name) {
			return forbidden("(rule:create_port and rule:create_port:" + name + ")")
		}
	}
	if a.has("allowed_address_pairs") {
		return forbidden("(rule:create_port and (rule:create_port:allowed_address_pairs and (rule:create_port:allowed_address_pairs:ip_address)))")
	}
	return checkChosenAddress(a)
}

// checkChosenAddress refuses an address that somebody chooses who may not.
func checkChosenAddress(a attributes) error {
	var wishes []ipWish
	if err := a.read("fixed_ips", &wishes); err != nil {
		return err
	}
	at := slices.IndexFunc(wishes, func(w ipWish) bool { return w.Address != "" })
	if at < 0 {
		return nil
	}
	rule := "rule:create_port:fixed_ips:ip_address"
	if wishes[at].Subnet != "" {
		rule += " and rule:create_port:fixed_ips:subnet_id"
	}
	return forbidden("(rule:create_port and (rule:create_port:fixed_ips and (" + rule + ")))")
}

// describePort sets what both a creation and an update can.
func (c *Cloud) describePort(t *turn, a attributes, p *port, rule string) error {
	if a.has("binding:profile") && !t.admin() && string(a["binding:profile"]) != "{}" {
		return forbidden("(rule:" + rule + " and rule:" + rule + ":binding:profile)")
	}
	p.Down = !a.flag("admin_state_up", !p.Down)
	p.Secure = a.flag("port_security_enabled", p.Secure)
	if a.has("binding:profile") {
		p.Profile = a["binding:profile"]
	}
	if vnic := a.text("binding:vnic_type"); vnic != "" {
		if !slices.Contains(vnicTypes, vnic) {
			return refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for binding:vnic_type. Reason: %s is not in valid_values.", vnic)
		}
		p.VNIC = vnic
	}
	if err := c.secure(t, a, p); err != nil {
		return err
	}
	return pair(a, p)
}

// secure gives the port its security groups: those that are asked for, or the project's default
// one.
func (c *Cloud) secure(t *turn, a attributes, p *port) error {
	var groups []string
	if err := a.read("security_groups", &groups); err != nil {
		return err
	}
	if !p.Secure && len(groups) > 0 {
		return refuseAs(http.StatusBadRequest, "PortSecurityAndIPRequiredForSecurityGroups",
			"Port security must be enabled and port must have an IP address in order to use security groups.")
	}
	for _, id := range groups {
		if !isUUID(id) {
			return notUUID("security_groups", id)
		}
		if _, err := securityGroups.find(c, t, id); err != nil {
			return err
		}
	}
	switch {
	case a.has("security_groups"):
		p.Groups = groups
	case !p.Secure:
		p.Groups = nil
	case p.Groups == nil && p.MAC == "":
		p.Groups = []string{c.defaultGroup(p.Project).ID}
	}
	return nil
}

// pair reads the addresses that may be used besides the port's own.
func pair(a attributes, p *port) error {
	if !a.has("allowed_address_pairs") {
		return nil
	}
	p.Pairs = nil
	if err := a.read("allowed_address_pairs", &p.Pairs); err != nil {
		return err
	}
	if !p.Secure && len(p.Pairs) > 0 {
		return refuseAs(http.StatusConflict, "AddressPairAndPortSecurityRequired", "Port Security must be enabled in order to have allowed address pairs on a port.")
	}
	return nil
}

// identify gives the port its addresses, which no other port of the network may have.
func (c *Cloud) identify(a attributes, p *port) error {
	if mac := a.text("mac_address"); mac != "" {
		if c.usesMAC(p.Network, mac) {
			return refuseAs(http.StatusConflict, "MacAddressInUse",
				"Unable to complete operation for network %s. The mac address %s is in use.", p.Network, mac)
		}
		p.MAC = strings.ToLower(mac)
	}
	var wishes []ipWish
	if err := a.read("fixed_ips", &wishes); err != nil {
		return err
	}
	if wishes == nil || len(wishes) > 0 {
		if err := c.address(p, wishes); err != nil {
			return err
		}
	}
	if p.MAC == "" {
		p.MAC = c.freeMAC(p.Network)
	}
	for n := range p.Pairs {
		if p.Pairs[n].MAC == "" {
			p.Pairs[n].MAC = p.MAC
		}
	}
	return nil
}

// address gives the port the IP addresses that are wished, or one of any subnet. When it fails
// nothing is taken.
func (c *Cloud) address(p *port, wishes []ipWish) error {
	if len(wishes) == 0 {
		wishes = []ipWish{{}}
		if c.subnets.count(byNetwork, p.Network) == 0 {
			return nil
		}
	}
	for _, w := range wishes {
		ip, err := c.oneAddress(p, w)
		if err != nil {
			for _, taken := range p.FixedIPs {
				c.free(taken)
			}
			p.FixedIPs = nil
			return err
		}
		p.FixedIPs = append(p.FixedIPs, ip)
	}
	return nil
}

func (c *Cloud) oneAddress(p *port, w ipWish) (fixedIP, error) {
	if w.Subnet != "" && !isUUID(w.Subnet) {
		return fixedIP{}, notUUID("fixed_ips", w.Subnet)
	}
	candidates := c.subnets.with(byNetwork, p.Network)
	if w.Subnet != "" {
		s := c.subnets.byID[w.Subnet]
		if s == nil {
			return fixedIP{}, subnets.missing(w.Subnet)
		}
		if s.Network != p.Network {
			return fixedIP{}, refuseAs(http.StatusBadRequest, "InvalidInput", "Invalid input for operation: Failed to create port on network %s, because "+
				"fixed_ips included invalid subnet %s.", p.Network, s.ID)
		}
		candidates = []*subnet{s}
	}
	if w.Address != "" {
		return chosenAddress(w, candidates)
	}
	for _, s := range candidates {
		if address, free := s.take(); free {
			return fixedIP{Subnet: s.ID, Address: address}, nil
		}
	}
	return fixedIP{}, exhausted(p.Network)
}

func chosenAddress(w ipWish, candidates []*subnet) (fixedIP, error) {
	address, err := netip.ParseAddr(w.Address)
	if err != nil {
		return fixedIP{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for fixed_ips. Reason: '%s' is not a valid IP address.", w.Address)
	}
	for _, s := range candidates {
		if !s.Prefix.Contains(address) {
			continue
		}
		if s.taken[address.String()] {
			return fixedIP{}, refuseAs(http.StatusConflict, "IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", address, s.ID)
		}
		s.mark(address.String())
		return fixedIP{Subnet: s.ID, Address: address.String()}, nil
	}
	if w.Subnet != "" {
		return fixedIP{}, refuseAs(http.StatusBadRequest, "InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", address)
	}
	return fixedIP{}, refuseAs(http.StatusBadRequest, "InvalidIpForNetwork",
		"IP address %s is not a valid IP for any of the subnets on the specified network.", address)
}
