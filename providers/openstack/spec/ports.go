package spec

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// ports returns the ports as ports says, else one for each network, else one; and what is wrong
// with them.
func (f *fields) ports(found *findings) []Port {
	all := f.portsWithoutPods(found)
	var pods []AddressPair
	for i, cidr := range given(f.PodNetworkCIDRs) {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			found.add(element("podNetworkCIDRs", i), "must be a CIDR, such as 10.244.0.0/16")
		}
		pods = append(pods, AddressPair{IPAddress: cidr})
	}
	for i := range all {
		// Without port security every address is allowed.
		if all[i].ID == "" && !all[i].DisablePortSecurity {
			all[i].AllowedAddressPairs = append(all[i].AllowedAddressPairs, pods...)
		}
	}
	return all
}

// portsWithoutPods are the ports as they are without podNetworkCIDRs.
func (f *fields) portsWithoutPods(found *findings) []Port {
	disabled := f.DisablePortSecurity.isTrue("disablePortSecurity", found)
	if len(f.Ports) == 0 {
		return f.plainPorts(disabled, found)
	}
	if len(given(f.Networks)) > 0 {
		found.add("networks", "cannot be used beside ports: give each network a port of its own there, and leave this out")
	}
	var all []Port
	for i, port := range f.Ports {
		at := element("ports", i)
		port.checkReferences(at, found)
		inherits := port.nowhere()
		if inherits {
			port.Network, port.Subnet = f.Network, f.Subnet
		}
		p := port.read(at, disabled, found)
		p.At, p.NetworkField, p.SubnetField = at+".", at+".network", at+".subnet"
		if inherits && f.Network != "" {
			p.NetworkField = "network"
		}
		if inherits && f.Subnet != "" {
			p.SubnetField = "subnet"
		}
		if p.ID != "" && slices.ContainsFunc(all, func(other Port) bool { return other.ID == p.ID }) {
			found.add(at+".id", "is the id of another before it: a port can be attached only once")
		}
		all = append(all, p)
	}
	if len(all) > MaxPorts {
		found.add("ports", "must be at most %d", MaxPorts)
	}
	return all
}

// plainPorts are those that networks, network and subnet ask for. As in Kubermatic's driver,
// network comes first where both are given. The subnet belongs to network, or to the only one of
// networks.
func (f *fields) plainPorts(disabled bool, found *findings) []Port {
	networks := given([]Reference{f.Network})
	names := []string{"network"}[:len(networks)]
	for i, network := range f.Networks {
		if network != "" && !slices.Contains(networks, network) {
			networks, names = append(networks, network), append(names, element("networks", i))
		}
	}
	if len(networks) == 0 {
		networks, names = []Reference{""}, []string{"network"}
	}
	if len(networks) > 1 && f.Subnet != "" && f.Network == "" {
		found.add("subnet", "does not say in which of the networks: name that one as network, or use ports")
	}
	if len(networks) > MaxPorts {
		found.add("networks", "must be at most %d, together with network", MaxPorts)
	}
	all := make([]Port, 0, len(networks))
	for i, network := range networks {
		p := Port{Network: network, DisablePortSecurity: disabled, NetworkField: names[i], SubnetField: "subnet"}
		if i == 0 {
			p.Subnet = f.Subnet
		}
		if disabled {
			p.SecurityGroups = []Reference{}
		}
		all = append(all, p)
	}
	return all
}

// nowhere says whether the port names nothing by which its network can be found.
func (f *portFields) nowhere() bool {
	return f.ID == "" && f.Network == "" && f.Subnet == "" &&
		!slices.ContainsFunc(f.FixedIPs, func(ip fixedIPFields) bool { return ip.Subnet != "" })
}

// checkReferences notes what is wrong with the port's references.
func (f *portFields) checkReferences(at string, found *findings) {
	f.Network.check(at+".network", found)
	f.Subnet.check(at+".subnet", found)
	checkReferences(at+".securityGroups", f.SecurityGroups, found)
	for i, ip := range f.FixedIPs {
		ip.Subnet.check(element(at+".fixedIPs", i)+".subnet", found)
	}
}

// read returns the port; disabled is what its port security is where it does not say.
func (f *portFields) read(at string, disabled bool, found *findings) Port {
	if f.ID != "" {
		f.checkForeign(at, found)
		return Port{ID: f.ID}
	}
	p := Port{
		Network: f.Network, Subnet: f.Subnet, VNICType: f.VNICType, Trunk: f.Trunk.isTrue(at+".trunk", found),
		FixedIPs: f.fixedIPs(at, found), AllowedAddressPairs: f.addressPairs(at, found), Profile: f.profile(at, found),
	}
	if p.FixedIPs != nil {
		p.Subnet = ""
	}
	p.HostID, p.PropagateUplinkStatus = f.HostID, f.PropagateUplink.read(at+".propagateUplinkStatus", found)
	p.Tags, p.ValueSpecs = f.tags(at, found), f.valueSpecs(at, found)
	p.DisablePortSecurity = disabled
	if own := f.DisablePortSecurity.read(at+".disablePortSecurity", found); own != nil {
		p.DisablePortSecurity = *own
	}
	if f.SecurityGroups != nil {
		p.SecurityGroups = append([]Reference{}, given(f.SecurityGroups)...)
	}
	if p.DisablePortSecurity {
		if len(p.SecurityGroups) > 0 {
			found.add(at+".securityGroups", "cannot be used, since port security is disabled: leave them out, or set disablePortSecurity to false for this port")
		}
		if len(p.AllowedAddressPairs) > 0 {
			found.add(at+".allowedAddressPairs", "cannot be used, since port security is disabled, by which every address is allowed: leave them out")
		}
		p.SecurityGroups = []Reference{}
	}
	if !slices.Contains(vnicTypes(), p.VNICType) {
		found.add(at+".vnicType", "must be one of %s", strings.Join(vnicTypes()[1:], ", "))
	}
	return p
}

// vnicTypes are those that Neutron knows, and none.
func vnicTypes() []string {
	return []string{"", "normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic", "remote-managed", "vdpa",
		"accelerator-direct", "accelerator-direct-physical"}
}

// checkForeign finds what is set for a port that exists already. A value that asks for nothing may
// be there.
func (f *portFields) checkForeign(at string, found *findings) {
	var quiet findings
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"network", f.Network != ""},
		{"subnet", f.Subnet != ""},
		{"fixedIPs", len(f.FixedIPs) > 0},
		{"securityGroups", len(given(f.SecurityGroups)) > 0},
		{"disablePortSecurity", f.DisablePortSecurity.wrong || f.DisablePortSecurity.isTrue("", &quiet)},
		{"allowedAddressPairs", len(f.AllowedAddressPairs) > 0},
		{"vnicType", f.VNICType != ""},
		{"profile", len(f.Profile) > 0},
		{"trunk", f.Trunk.wrong || f.Trunk.isTrue("", &quiet)},
		{"tags", len(given(f.Tags)) > 0},
		{"hostID", f.HostID != ""},
		{"propagateUplinkStatus", f.PropagateUplink.wrong || f.PropagateUplink.isTrue("", &quiet)},
		{"valueSpecs", len(f.ValueSpecs) > 0},
	} {
		if field.set {
			found.add(at+"."+field.name, "must not be set beside id: a port that exists already is used as it is")
		}
	}
}

func (f *portFields) fixedIPs(at string, found *findings) []FixedIP {
	var all []FixedIP
	for i, ip := range f.FixedIPs {
		at := element(at+".fixedIPs", i)
		if ip.Subnet == "" && ip.IPAddress == "" {
			found.add(at, "must name a subnet or an ipAddress, or both")
		}
		if ip.IPAddress != "" && !validAddress(ip.IPAddress) {
			found.add(at+".ipAddress", "must be an IP address")
		}
		all = append(all, FixedIP{Subnet: cmp.Or(ip.Subnet, f.Subnet), IPAddress: ip.IPAddress})
	}
	return all
}

func (f *portFields) addressPairs(at string, found *findings) []AddressPair {
	var all []AddressPair
	for i, pair := range f.AllowedAddressPairs {
		at := element(at+".allowedAddressPairs", i)
		if _, err := netip.ParsePrefix(pair.IPAddress); err != nil && !validAddress(pair.IPAddress) {
			found.add(at+".ipAddress", "must be an IP address or a CIDR, such as 10.0.0.0/24")
		}
		if pair.MACAddress != "" && !validMAC(pair.MACAddress) {
			found.add(at+".macAddress", "must be a MAC address of six bytes, such as 52:54:00:12:34:56")
		}
		all = append(all, AddressPair(pair))
	}
	return all
}

func (f *portFields) tags(at string, found *findings) []string {
	var all []string
	for i, tag := range f.Tags {
		switch {
		case tag == "" || slices.Contains(all, tag):
			continue
		case !validTag(tag):
			found.add(element(at+".tags", i), "must be at most %d characters long, without '/' and ','", maxTagLength)
		}
		all = append(all, tag)
	}
	return all
}

// valueSpecs reads Cluster API's list; a name is only there to tell its entries apart.
func (f *portFields) valueSpecs(at string, found *findings) map[string]string {
	var all map[string]string
	for i, spec := range f.ValueSpecs {
		at := element(at+".valueSpecs", i)
		_, has := all[spec.Key]
		switch {
		case spec.Key == "":
			found.add(at+".key", "must be set")
		case has:
			found.add(at+".key", "is the key of another before it: keys must differ")
		}
		if all == nil {
			all = map[string]string{}
		}
		all[spec.Key] = spec.Value
	}
	return all
}

// profile is the port's binding:profile. Cluster API's two words for what is in it become
// Neutron's; Neutron takes any key in silence, so that they would have no effect as they are.
func (f *portFields) profile(at string, found *findings) map[string]any {
	profile := map[string]any{}
	for key, value := range f.Profile {
		text, isText := value.(string)
		asked := value == true || isText && text == "true"
		if key != "ovsHWOffload" && key != "trustedVF" {
			profile[key] = value
			continue
		}
		if !asked && value != false && text != "false" && value != nil {
			found.add(below(at+".profile", key), "must be true or false")
		}
		if asked && key == "ovsHWOffload" {
			profile["capabilities"] = []any{"switchdev"}
		}
		if asked && key == "trustedVF" {
			profile["trusted"] = true
		}
	}
	if len(profile) == 0 {
		return nil
	}
	return profile
}

// validAddress says whether text is an IP address without a zone, which means something on one host
// only.
func validAddress(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Zone() == ""
}

func validMAC(text string) bool {
	mac, err := net.ParseMAC(text)
	const ethernet = 6
	return err == nil && len(mac) == ethernet
}
