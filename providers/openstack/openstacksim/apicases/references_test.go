package apicases_test

import "net/http"

func referenceCases() []apiCase {
	return []apiCase{
		{name: "references: networks, subnets and groups by tags and description", do: taggedThings},
		{name: "references: a floating IP is claimed by its revision", do: claimFloatingIP},
	}
}

// taggedThings gives a network, its subnet and a security group tags, and looks for each.
func taggedThings(r *run) {
	description := r.unique("of workers")
	both, one := r.unique("both"), r.unique("one")
	a := r.call(http.MethodPost, network, "/networks", object{"network": object{"name": r.unique("tagged"), "description": description}}, quiet())
	id := a.names("network", "network.id")
	r.owns(network, "/networks/"+id)
	a = r.call(http.MethodPost, network, "/subnets", object{"subnet": object{
		"network_id": id, "ip_version": 4, "cidr": "10.78.0.0/24", "description": description,
	}}, quiet())
	things := []struct{ path, id string }{{"networks", id}, {"subnets", a.names("subnet", "subnet.id")}}
	a = r.call(http.MethodPost, network, "/security-groups", object{"security_group": object{"name": r.unique("tagged"), "description": description}}, quiet())
	group := a.names("group", "security_group.id")
	r.owns(network, "/security-groups/"+group)
	things = append(things, struct{ path, id string }{"security-groups", group})
	for _, thing := range things {
		r.call(http.MethodPut, network, "/"+thing.path+"/"+thing.id+"/tags", object{"tags": list{both, one}})
		for _, filter := range [][]string{
			{"description", description}, {"description", description, "tags", both}, {"tags", both + "," + one}, {"tags", one + ",nothing"}, {"description", "workers"},
		} {
			r.call(http.MethodGet, network, "/"+thing.path+query(append(filter, "fields", "id")...), nil)
		}
	}
	r.call(http.MethodPut, network, "/networks/"+unknown+"/tags", object{"tags": list{}})
}

// claimFloatingIP has two ask for a free floating IP at the same revision.
func claimFloatingIP(r *run) {
	id := r.floating("floating IP", nil, quiet())
	first, second := r.port("first", nil, quiet()), r.port("second", nil, quiet())
	revision := r.call(http.MethodGet, network, "/floatingips/"+id, nil, quiet()).number("floatingip.revision_number")
	r.name("revision", revision)
	claim := func(port string) {
		r.call(http.MethodPut, network, "/floatingips/"+id, object{"floatingip": object{"port_id": port}}, ifMatch("revision_number="+revision), only("floatingip.port_id", "NeutronError.type"))
	}
	claim(first)
	r.await("status ACTIVE", func() bool {
		return r.call(http.MethodGet, network, "/floatingips/"+id, nil, quiet()).text("floatingip.status") == "ACTIVE"
	})
	claim(second)
	r.call(http.MethodGet, network, "/floatingips/"+id, nil, only("floatingip.port_id"))
}
