package apicases_test

import (
	"net/http"
	"strings"
)

func portCases() []apiCase {
	return []apiCase{
		{name: "port: made with a name, a description and a MAC address", do: makePort},
		{name: "port: a MAC address for the second time", do: macTwice},
		{name: "port: with properties", do: portProperties},
		{name: "port: filters", do: listPorts},
		{name: "port: pages", do: pagesOfPorts},
		{name: "port: tags", do: portTags},
		{name: "port: changed and deleted", do: changePort},
		{name: "port: of another project", do: portOfOthers},
		{name: "port: of a router", do: portOfRouter},
	}
}

func makePort(r *run) {
	r.home()
	r.lan()
	id := r.port("port", object{"name": "ns/a.b/uid-1", "description": "cluster c1", "mac_address": r.mac("mac a")})
	r.call(http.MethodGet, network, "/ports/"+id, nil)
	r.note("names and descriptions have 255 characters")
	r.port("long", object{"name": strings.Repeat("n", 255), "description": strings.Repeat("d", 255)}, only("port.*"))
	for _, more := range []object{{"name": strings.Repeat("n", 256)}, {"description": strings.Repeat("d", 256)}} {
		r.call(http.MethodPost, network, "/ports", r.portBody(more))
	}
	r.note("names need not be unique")
	r.port("second", object{"name": "ns/a.b/uid-1"}, only("port.name"))
}

func macTwice(r *run) {
	r.port("port", object{"mac_address": r.mac("mac a")}, only("port.mac_address"))
	r.call(http.MethodPost, network, "/ports", r.portBody(object{"mac_address": r.mac("mac a")}))
	upper := r.name("MAC A", strings.ToUpper(r.mac("mac a")))
	r.call(http.MethodPost, network, "/ports", r.portBody(object{"mac_address": upper}))
	r.note("in another network, it is another one")
	shared := r.find(network, "networks", "shared")
	a := r.call(http.MethodPost, network, "/ports", object{"port": object{"network_id": shared, "mac_address": r.mac("mac a")}}, as(admin), only("port.mac_address"))
	r.owned(a, "/ports/", "port.id")
	r.note("that of a port that is gone can be taken again")
	r.call(http.MethodDelete, network, "/ports/"+r.names.value("port"), nil)
	r.port("again", object{"mac_address": r.mac("mac a")}, only("port.mac_address"))
}

// owned has what an administrator made deleted in the end.
func (r *run) owned(a answer, path, id string) {
	r.Helper()
	made := path + a.text(id)
	if !r.disposable {
		r.Cleanup(func() { r.call(http.MethodDelete, network, made, nil, as(admin), quiet()) })
	}
}

func portProperties(r *run) {
	r.home()
	lan := r.lan()
	show := only("port.port_security_enabled", "port.security_groups", "port.allowed_address_pairs", "port.binding:vnic_type", "port.fixed_ips")
	r.port("1", object{"port_security_enabled": false}, show)
	r.port("2", object{"security_groups": list{}}, show)
	r.port("3", object{"allowed_address_pairs": list{object{"ip_address": "10.9.0.0/24"}}}, show)
	r.port("4", object{"allowed_address_pairs": list{object{"ip_address": "10.9.0.1", "mac_address": "fa:16:3e:00:00:01"}}}, show)
	r.port("5", object{"binding:vnic_type": "direct"}, show)
	r.port("6", object{"fixed_ips": list{object{"subnet_id": lan}}}, show)
	r.port("7", object{"fixed_ips": list{}}, show)
	r.note("tags in the body are ignored")
	r.port("8", object{"tags": list{"a"}}, only("port.tags"))
	r.note("an address of the user's choice, and the same again")
	address := "10.1.200.7"
	r.port("9", object{"fixed_ips": list{object{"ip_address": address}}}, show)
	r.call(http.MethodPost, network, "/ports", r.portBody(object{"fixed_ips": list{object{"ip_address": address}}}))
	r.call(http.MethodPost, network, "/ports", r.portBody(object{"fixed_ips": list{object{"subnet_id": lan, "ip_address": address}}}))
}

func listPorts(r *run) {
	start := r.unique("cluster one")
	one, other := start+" of two", r.unique("cluster other")
	upper := r.name("MAC A", strings.ToUpper(r.mac("mac a")))
	r.port("a", object{"name": r.unique("a"), "description": one, "mac_address": r.mac("mac a")}, quiet())
	r.port("b", object{"name": r.unique("x/y.z"), "description": one}, quiet())
	r.port("c", object{"name": r.unique("a"), "description": other}, quiet())
	show := only("ports.id")
	for _, filter := range [][]string{
		{"description", one}, {"description", one, "description", other}, {"description", start}, {"description", one, "name", r.unique("a"), "name", r.unique("x/y.z")},
		{"name", r.unique("x/y.z")}, {"name", r.unique("a")}, {"description", one, "name", "nobody"}, {"mac_address", r.mac("mac a")},
		{"mac_address", upper}, {"description", one, "device_id", ""}, {"description", one, "tags", "nothing"}, {"id", r.names.value("a"), "id", r.names.value("b")},
	} {
		r.call(http.MethodGet, network, "/ports"+query(append(filter, "sort_key", "name", "sort_dir", "desc", "sort_key", "mac_address", "sort_dir", "asc")...), nil, show)
	}
	r.call(http.MethodGet, network, "/ports"+query("description", one, "name", r.unique("a"), "fields", "id", "fields", "name", "fields", "fixed_ips"), nil)
	r.call(http.MethodGet, network, "/ports?nonsense=1", nil)
	r.call(http.MethodGet, network, "/ports?fields=nonsense&limit=1"+"&"+query("description", one)[1:], nil, only("ports"))
}

func pagesOfPorts(r *run) {
	d := r.unique("paged")
	for _, name := range []string{"a", "b", "c"} {
		r.port(name, object{"name": r.unique(name), "description": d}, quiet())
	}
	sorted := func(more ...string) string {
		return "/ports" + query(append([]string{"description", d, "fields", "id", "sort_key", "name", "sort_dir", "asc"}, more...)...)
	}
	r.call(http.MethodGet, network, sorted("limit", "2"), nil)
	r.call(http.MethodGet, network, sorted("limit", "2", "marker", r.names.value("b")), nil)
	r.call(http.MethodGet, network, sorted("limit", "2", "marker", r.names.value("c")), nil)
	r.call(http.MethodGet, network, sorted("limit", "3"), nil)
	r.call(http.MethodGet, network, sorted("limit", "4"), nil)
	r.call(http.MethodGet, network, sorted("limit", "0"), nil)
	r.call(http.MethodGet, network, sorted(), nil)
	r.call(http.MethodGet, network, "/ports?limit=-1", nil)
	r.call(http.MethodGet, network, "/ports?limit=1&marker="+unknown, nil)
	r.note("a page that begins after a port that was deleted meanwhile")
	r.call(http.MethodDelete, network, "/ports/"+r.names.value("b"), nil)
	r.call(http.MethodGet, network, sorted("limit", "2", "marker", r.names.value("b")), nil)
}

func portTags(r *run) {
	id := r.port("port", nil, quiet())
	tag := r.unique("t")
	r.call(http.MethodPut, network, "/ports/"+id+"/tags", object{"tags": list{tag, "b"}})
	r.call(http.MethodGet, network, "/ports"+query("tags", tag, "fields", "id", "fields", "tags"), nil)
	r.call(http.MethodPut, network, "/ports/"+unknown+"/tags", object{"tags": list{"a"}})
}

func changePort(r *run) {
	id := r.port("port", object{"name": "before"}, quiet())
	r.call(http.MethodPut, network, "/ports/"+id, object{"port": object{"name": "after", "description": "d"}}, only("port.*", "port.name", "port.description"))
	r.call(http.MethodDelete, network, "/ports/"+id, nil)
	r.call(http.MethodDelete, network, "/ports/"+id, nil)
	r.call(http.MethodGet, network, "/ports/"+id, nil)
	r.call(http.MethodPut, network, "/ports/"+id, object{"port": object{"name": "again"}})
	r.call(http.MethodGet, network, "/ports/nonsense", nil)
	r.call(http.MethodGet, network, "/nonsense", nil)
}

func portOfOthers(r *run) {
	id := r.port("port", object{"name": r.unique("port")}, quiet())
	r.call(http.MethodGet, network, "/ports/"+id, nil, as(stranger))
	r.call(http.MethodDelete, network, "/ports/"+id, nil, as(stranger))
	r.call(http.MethodGet, network, "/ports"+query("name", r.unique("port")), nil, as(stranger))
}

func portOfRouter(r *run) {
	_, subnet := r.lonelyNetwork()
	a := r.call(http.MethodPost, network, "/routers", object{"router": object{"name": r.unique("router")}}, only("router.*", "router.external_gateway_info"))
	path := "/routers/" + a.names("router", "router.id")
	r.owns(network, path)
	a = r.call(http.MethodPut, network, path+"/add_router_interface", object{"subnet_id": subnet})
	port := a.names("port", "port_id")
	r.call(http.MethodGet, network, "/ports/"+port, nil, only("port.device_id", "port.device_owner", "port.security_groups", "port.fixed_ips"))
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
	r.call(http.MethodPut, network, path+"/remove_router_interface", object{"subnet_id": subnet})
	r.call(http.MethodDelete, network, path, nil)
}
