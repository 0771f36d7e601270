package network

import (
	"net"
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
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

// createPort implements POST /v2.0/ports.
func createPort(neutron *Neutron, call *api.Call) (api.Reply, error) {
	a, err := readAttributes(call, "port", portAttributes)
	if err != nil {
		return api.Reply{}, err
	}
	id, err := a.id("network_id")
	if err != nil {
		return api.Reply{}, err
	}
	if !a.has("network_id") {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Failed to parse request. Required attribute 'network_id' not specified")
	}
	if _, err := net.ParseMAC(a.text("mac_address")); a.has("mac_address") && err != nil {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest",
			"Invalid input for mac_address. Reason: '%s' is not a valid MAC address.", a.text("mac_address"))
	}
	n, err := networks.find(neutron, call, id)
	if err != nil {
		return api.Reply{}, err
	}
	p := &Port{Record: neutron.store.NewRecord(a.project(call), a.text("name")), Network: n.ID, Secure: true, Groups: nil, Revised: 1}
	p.Description, p.DeviceID, p.DeviceOwner = a.text("description"), a.text("device_id"), a.text("device_owner")
	if err := checkPolicy(neutron, call, a, n); err != nil {
		return api.Reply{}, err
	}
	if neutron.ExceedsPorts(p.Project, 1) {
		return api.Reply{}, overQuota("port")
	}
	if err := describePort(neutron, call, a, p, "create_port"); err != nil {
		return api.Reply{}, err
	}
	if err := identify(neutron, a, p); err != nil {
		return api.Reply{}, err
	}
	p.Owner = state.OwnerOfText(p.Name, p.Description)
	neutron.AddPort(p)
	call.Changed(p.ID)
	return api.WithStatus(http.StatusCreated, api.Object{"port": portView(neutron, call, p)})
}

// checkPolicy says what the caller may not choose, because the network is another project's or
// because he is no administrator.
func checkPolicy(neutron *Neutron, call *api.Call, a attributes, n *Network) error {
	if n.External && !n.Shared && !call.Sees(n.Project) {
		return refuseAs(http.StatusForbidden, "HTTPForbidden", "Tenant %s not allowed to create port on this network", call.Project())
	}
	for _, name := range []string{"binding:profile", "binding:host_id"} {
		if a.has(name) && string(a[name]) != "{}" && !call.Admin() {
			return forbidden("(rule:create_port and rule:create_port:" + name + ")")
		}
	}
	if call.Sees(n.Project) || neutron.options.LaxPortPolicy {
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
	var wishes []AddressRequest
	if err := a.read("fixed_ips", &wishes); err != nil {
		return err
	}
	at := slices.IndexFunc(wishes, func(w AddressRequest) bool { return w.Address != "" })
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
func describePort(neutron *Neutron, call *api.Call, a attributes, p *Port, rule string) error {
	if a.has("binding:profile") && !call.Admin() && string(a["binding:profile"]) != "{}" {
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
	if err := secure(neutron, call, a, p); err != nil {
		return err
	}
	return pair(a, p)
}

// secure gives the port its security groups: those that are asked for, or the project's default
// one.
func secure(neutron *Neutron, call *api.Call, a attributes, p *Port) error {
	var groups []string
	if err := a.read("security_groups", &groups); err != nil {
		return err
	}
	if !p.Secure && len(groups) > 0 {
		return refuseAs(http.StatusBadRequest, "PortSecurityAndIPRequiredForSecurityGroups",
			"Port security must be enabled and port must have an IP address in order to use security groups.")
	}
	for _, id := range groups {
		if !state.IsUUID(id) {
			return notUUID("security_groups", id)
		}
		if _, err := securityGroups.find(neutron, call, id); err != nil {
			return err
		}
	}
	switch {
	case a.has("security_groups"):
		p.Groups = groups
	case !p.Secure:
		p.Groups = nil
	case p.Groups == nil && p.MAC == "":
		p.Groups = []string{neutron.DefaultGroup(p.Project).ID}
	}
	return nil
}

// pair reads the addresses that may be used besides the port's own.
func pair(a attributes, p *Port) error {
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
