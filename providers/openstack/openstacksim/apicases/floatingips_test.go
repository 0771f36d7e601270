package apicases_test

import (
	"maps"
	"net/http"
)

func floatingIPCases() []apiCase {
	return []apiCase{
		{name: "floating IP: made for a port", do: makeFloatingIP},
		{name: "floating IP: the second for a port", do: secondFloatingIP},
		{name: "floating IP: its port is deleted", do: floatingIPWithoutPort},
		{name: "floating IP: of a server", do: floatingIPOfServer},
		{name: "floating IP: filters and pages", do: listFloatingIPs},
		{name: "floating IP: refused", do: refusedFloatingIPs},
	}
}

// floating makes a floating IP, which the case owns.
func (r *run) floating(name string, more object, options ...option) string {
	r.Helper()
	body := object{"floating_network_id": r.external()}
	maps.Copy(body, more)
	a := r.call(http.MethodPost, network, "/floatingips", object{"floatingip": body}, options...)
	id := a.names(name, "floatingip.id")
	r.owns(network, "/floatingips/"+id)
	return id
}

func makeFloatingIP(r *run) {
	port := r.port("port", nil, quiet())
	id := r.floating("floating IP", object{"port_id": port, "description": "cluster c1 machine uid-1"})
	r.await("status ACTIVE", func() bool {
		return r.call(http.MethodGet, network, "/floatingips/"+id, nil, quiet()).text("floatingip.status") == "ACTIVE"
	})
	r.call(http.MethodGet, network, "/floatingips/"+id, nil)
	r.call(http.MethodDelete, network, "/floatingips/"+id, nil)
	r.call(http.MethodDelete, network, "/floatingips/"+id, nil)
	r.call(http.MethodGet, network, "/floatingips/"+id, nil)
	r.note("one without a port")
	r.floating("free", nil)
}

func secondFloatingIP(r *run) {
	d := r.unique("second")
	port := r.port("port", nil, quiet())
	r.floating("first", object{"port_id": port, "description": d}, quiet())
	a := r.call(http.MethodPost, network, "/floatingips", object{"floatingip": object{
		"floating_network_id": r.external(), "port_id": port, "description": d,
	}})
	r.note("nothing is left of it: %d", a.status)
	r.call(http.MethodGet, network, "/floatingips"+query("description", d, "fields", "id"), nil)
}

func floatingIPWithoutPort(r *run) {
	port := r.port("port", nil, quiet())
	id := r.floating("floating IP", object{"port_id": port, "description": "d"}, quiet())
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
	r.await("status DOWN", func() bool {
		return r.call(http.MethodGet, network, "/floatingips/"+id, nil, quiet()).text("floatingip.status") == "DOWN"
	})
	r.call(http.MethodGet, network, "/floatingips/"+id, nil)
}

func floatingIPOfServer(r *run) {
	port := r.port("port", nil, quiet())
	server := r.running("server", object{"networks": list{object{"port": port}}})
	id := r.floating("floating IP", object{"port_id": port}, quiet())
	r.await("address of the server", func() bool {
		addresses, _ := pick(r.call(http.MethodGet, compute, "/servers/"+server, nil, quiet()).body, "server.addresses."+member+"-net").(list)
		return len(addresses) == 2
	})
	r.call(http.MethodGet, compute, "/servers/"+server, nil, only("server.addresses"))
	r.call(http.MethodGet, network, "/floatingips/"+id, nil, only("floatingip.port_details", "floatingip.status"))
	r.call(http.MethodDelete, compute, "/servers/"+server, nil)
	r.gone(server)
	r.note("it stays with the port, when the server is gone")
	r.call(http.MethodGet, network, "/floatingips/"+id, nil, only("floatingip.port_id", "floatingip.port_details"))
}

func listFloatingIPs(r *run) {
	start := r.unique("machine one")
	one, other := start+" of two", r.unique("machine other")
	port := r.port("port", nil, quiet())
	r.floating("a", object{"port_id": port, "description": one}, quiet())
	r.floating("b", object{"description": other}, quiet())
	for _, filter := range [][]string{
		{"description", one}, {"description", start},
		{"port_id", port}, {"description", other, "port_id", port}, {"description", one, "tags", "nothing"},
	} {
		r.call(http.MethodGet, network, "/floatingips"+query(append(filter, "fields", "id")...), nil)
	}
	both, _ := pick(r.call(http.MethodGet, network, "/floatingips"+query("description", one, "description", other), nil, quiet()).body, "floatingips").(list)
	r.note("of two descriptions, either will do: %d", len(both))
	r.call(http.MethodGet, network, "/floatingips?sort_key=description&sort_dir=asc", nil)
	r.call(http.MethodGet, network, "/floatingips"+query("description", other, "limit", "1", "fields", "id"), nil)
	r.call(http.MethodGet, network, "/floatingips?nonsense=1", nil)
}

func refusedFloatingIPs(r *run) {
	try := func(more object) {
		r.Helper()
		body := object{"floating_network_id": r.external()}
		maps.Copy(body, more)
		r.call(http.MethodPost, network, "/floatingips", object{"floatingip": body})
	}
	try(object{"floating_network_id": unknown})
	try(object{"floating_network_id": "nonsense"})
	try(object{"floating_network_id": r.home()})
	try(object{"port_id": unknown})
	try(object{"port_id": "nonsense"})
	try(object{"nonsense": 1})
	r.call(http.MethodPost, network, "/floatingips", object{"floatingip": object{}})
	r.note("a port whose subnet has no way out")
	lonely, _ := r.lonelyNetwork()
	try(object{"port_id": r.port("port", object{"network_id": lonely}, quiet())})
}
