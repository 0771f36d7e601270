package apicases_test

import "net/http"

func refusedPortCases() []apiCase {
	return []apiCase{
		{name: "refused port: things that there are not", do: portOfUnknown},
		{name: "refused port: things that cannot be", do: malformedPorts},
		{name: "refused port: in a network that another project shares", do: sharedNetwork},
	}
}

func (r *run) tryPort(more object) {
	r.Helper()
	r.call(http.MethodPost, network, "/ports", r.portBody(more))
}

func portOfUnknown(r *run) {
	r.home()
	r.tryPort(object{"network_id": unknown})
	r.tryPort(object{"fixed_ips": list{object{"subnet_id": unknown}}})
	r.tryPort(object{"security_groups": list{unknown}})
}

func malformedPorts(r *run) {
	r.home()
	r.lan()
	r.tryPort(object{"network_id": "nonsense"})
	r.tryPort(object{"fixed_ips": list{object{"subnet_id": "nonsense"}}})
	r.tryPort(object{"fixed_ips": list{object{"ip_address": "192.0.2.1"}}})
	r.tryPort(object{"fixed_ips": list{object{"ip_address": "nonsense"}}})
	r.tryPort(object{"security_groups": list{"nonsense"}})
	r.tryPort(object{"mac_address": "nonsense"})
	r.tryPort(object{"binding:vnic_type": "nonsense"})
	r.tryPort(object{"nonsense": 1})
	r.tryPort(object{"port_security_enabled": "nonsense"})
	groups, _ := pick(r.call(http.MethodGet, network, "/security-groups?name=default", nil, quiet()).body, "security_groups.id").(list)
	r.tryPort(object{"port_security_enabled": false, "security_groups": groups})
	r.tryPort(object{"port_security_enabled": false, "allowed_address_pairs": list{object{"ip_address": "10.9.0.1"}}})
	r.call(http.MethodPost, network, "/ports", object{"nonsense": 1})
	r.call(http.MethodPost, network, "/ports", object{"port": object{"name": "nowhere"}})
	r.note("what only administrators may say")
	r.tryPort(object{"binding:profile": object{"a": "b"}})
	r.tryPort(object{"binding:host_id": "compute1"})
}

func sharedNetwork(r *run) {
	shared, subnet := r.find(network, "networks", "shared"), r.find(network, "subnets", "shared-v4")
	in := func(more object) object {
		more["network_id"] = shared
		return more
	}
	r.port("port", in(object{"description": "d"}), only("port.network_id", "port.description", "port.port_security_enabled"))
	r.port("in its subnet", in(object{"fixed_ips": list{object{"subnet_id": subnet}}}), only("port.fixed_ips"))
	r.tryPort(in(object{"mac_address": r.mac("mac a")}))
	r.tryPort(in(object{"fixed_ips": list{object{"ip_address": "10.64.0.77"}}}))
	r.tryPort(in(object{"fixed_ips": list{object{"subnet_id": subnet, "ip_address": "10.64.0.77"}}}))
	r.tryPort(in(object{"port_security_enabled": false}))
	r.tryPort(in(object{"allowed_address_pairs": list{object{"ip_address": "10.9.0.1"}}}))
	r.note("an external network is none for ports")
	r.tryPort(object{"network_id": r.external()})
	r.note("a network that is not shared")
	others, _ := pick(r.call(http.MethodGet, network, "/networks?name="+stranger+"-net", nil, as(stranger), quiet()).body, "networks.id").(list)
	r.tryPort(object{"network_id": r.name("network of others", others[0].(string))})
}
