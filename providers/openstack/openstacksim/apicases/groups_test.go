package apicases_test

import (
	"net/http"
	"slices"
)

func groupCases() []apiCase {
	return []apiCase{
		{name: "server group: made, found, deleted", do: serverGroup},
		{name: "server group: before 2.64", do: oldServerGroup},
		{name: "server group: its servers", do: membersOfGroup},
		{name: "server group: without room", do: groupWithoutRoom},
	}
}

func (r *run) group(policy string, options ...option) string {
	r.Helper()
	a := r.call(http.MethodPost, compute, "/os-server-groups", object{"server_group": object{"name": r.unique("group"), "policy": policy}}, options...)
	id := a.names("group", "server_group.id")
	r.owns(compute, "/os-server-groups/"+id)
	return id
}

func serverGroup(r *run) {
	id := r.group("soft-anti-affinity")
	r.call(http.MethodGet, compute, "/os-server-groups/"+id, nil)
	listed := r.call(http.MethodGet, compute, "/os-server-groups?name=nobody", nil, quiet())
	ids, _ := pick(listed.body, "server_groups.id").(list)
	r.note("a list cannot be asked for a name: %t", slices.Contains(ids, any(id)))
	r.call(http.MethodPost, compute, "/os-server-groups", object{"server_group": object{"name": "g", "policies": list{"affinity"}}})
	r.call(http.MethodPost, compute, "/os-server-groups", object{"server_group": object{"name": "g", "policy": "nonsense"}})
	r.call(http.MethodGet, compute, "/os-server-groups/"+unknown, nil)
	r.call(http.MethodGet, compute, "/os-server-groups/nonsense", nil)
	r.call(http.MethodGet, compute, "/os-server-groups/"+id, nil, as(stranger))
	r.call(http.MethodDelete, compute, "/os-server-groups/"+id, nil)
	r.call(http.MethodDelete, compute, "/os-server-groups/"+id, nil)
}

func oldServerGroup(r *run) {
	a := r.call(http.MethodPost, compute, "/os-server-groups", object{"server_group": object{"name": r.unique("group"), "policies": list{"anti-affinity"}}}, version("2.52"))
	r.owns(compute, "/os-server-groups/"+a.names("group", "server_group.id"))
	r.call(http.MethodGet, compute, "/os-server-groups/"+a.text("server_group.id"), nil)
}

func (r *run) inGroup(name, group string, more object) string {
	r.Helper()
	body := r.vm(name, more)
	body["os:scheduler_hints"] = object{"group": group}
	return r.boot(name, body, quiet())
}

func membersOfGroup(r *run) {
	group := r.group("soft-anti-affinity", quiet())
	server := r.inGroup("server", group, nil)
	r.settle(server, "ACTIVE")
	r.call(http.MethodGet, compute, "/os-server-groups/"+group, nil, only("server_group.members"))
	r.call(http.MethodGet, compute, "/servers/"+server, nil, version("2.71"), only("server.server_groups"))
	r.call(http.MethodDelete, compute, "/servers/"+server, nil)
	r.gone(server)
	r.call(http.MethodGet, compute, "/os-server-groups/"+group, nil, only("server_group.members"))
}

// groupWithoutRoom asks for more servers than there are hosts in the zone.
func groupWithoutRoom(r *run) {
	group := r.group("anti-affinity", quiet())
	r.settle(r.inGroup("first", group, object{"availability_zone": "nova"}), "ACTIVE")
	second := r.inGroup("second", group, object{"availability_zone": "nova"})
	r.settle(second, "ERROR")
	r.call(http.MethodGet, compute, "/servers/"+second, nil, only("server.status", "server.fault"))
}
