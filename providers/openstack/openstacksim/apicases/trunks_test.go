package apicases_test

import "net/http"

func trunkCases() []apiCase {
	return []apiCase{
		{name: "trunk: made, used, deleted", do: trunk},
		{name: "trunk: refused", do: refusedTrunks},
	}
}

func (r *run) trunk(port string, options ...option) string {
	r.Helper()
	a := r.call(http.MethodPost, network, "/trunks", object{"trunk": object{"port_id": port, "name": "trunk", "description": r.unique("trunk")}}, options...)
	id := a.names("trunk", "trunk.id")
	r.owns(network, "/trunks/"+id)
	return id
}

func trunk(r *run) {
	port := r.port("port", nil, quiet())
	id := r.trunk(port, only("trunk.*", "trunk.port_id", "trunk.name", "trunk.sub_ports", "trunk.admin_state_up"))
	r.call(http.MethodGet, network, "/ports/"+port, nil, only("port.trunk_details"))
	r.call(http.MethodGet, network, "/trunks"+query("description", r.unique("trunk"), "fields", "id"), nil)
	r.call(http.MethodGet, network, "/trunks"+query("port_id", port, "fields", "id", "fields", "port_id"), nil)
	r.call(http.MethodGet, network, "/trunks/"+id, nil, only("trunk.*"))
	server := r.running("server", object{"networks": list{object{"port": port}}})
	r.call(http.MethodDelete, compute, "/servers/"+server, nil)
	r.gone(server)
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
	r.call(http.MethodDelete, network, "/trunks/"+id, nil)
	r.call(http.MethodDelete, network, "/trunks/"+id, nil)
	r.call(http.MethodGet, network, "/trunks/"+id, nil)
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
}

func refusedTrunks(r *run) {
	port := r.port("port", nil, quiet())
	r.trunk(port, quiet())
	try := func(trunk object) {
		r.Helper()
		a := r.call(http.MethodPost, network, "/trunks", object{"trunk": trunk})
		if a.status == http.StatusCreated {
			r.owns(network, "/trunks/"+a.text("trunk.id"))
		}
	}
	try(object{"port_id": port})
	try(object{"port_id": unknown})
	try(object{"port_id": "nonsense"})
	try(object{})
	r.note("the port of a server")
	used := r.port("used", nil, quiet())
	r.running("server", object{"networks": list{object{"port": used}}})
	try(object{"port_id": used})
}
