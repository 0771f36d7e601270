package apicases_test

import (
	"net/http"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim"
)

func serverCases() []apiCase {
	building := openstacksim.Options{BootLatency: forEver}
	deleting := openstacksim.Options{DeleteLatency: forEver}
	return []apiCase{
		{name: "server: made on a port, with marks", do: makeServer},
		{name: "server: made in a network", do: makeServerInNetwork},
		{name: "server: while it builds", do: showBuilding, simulator: building},
		{name: "server: deleted while it builds", do: deleteBuilding},
		{name: "server: while it is deleted", do: showDeleting, simulator: deleting},
		{name: "server: deleted, and what is still told of it", do: showDeleted},
		{name: "server: unknown", do: unknownServer},
		{name: "server: of another project", do: serverOfOthers},
		{name: "server: by versions of the API", do: serverByVersion},
		{name: "server: versions that there are not", do: unknownVersions},
		{name: "server: metadata, tags, name", do: changeServer},
		{name: "server: its port is deleted", do: deletePortOfServer},
		{name: "server: its port is in use", do: portInUse},
		{name: "server: interfaces and volumes", do: attachments},
	}
}

// marked are the marks of a driver of machines.
func marked(r *run) object {
	return object{
		"metadata": object{"millwright-cluster": "c1", "millwright-machine": "uid-1"}, "description": "machine uid-1 of cluster c1",
		"tags": list{"cluster=" + r.unique("c"), "machine=uid-1"}, "user_data": "I2Nsb3VkLWNvbmZpZw==", "config_drive": true,
	}
}

func makeServer(r *run) {
	port := r.port("port", object{"name": "ns/a.b/uid-1", "description": "cluster c1", "mac_address": r.mac("mac a")}, quiet())
	body := r.vm("a.b", marked(r))
	body["server"].(object)["networks"] = list{object{"port": port}}
	id := r.boot("server", body)
	r.settle(id, "ACTIVE")
	r.call(http.MethodGet, compute, "/servers/"+id, nil)
	r.call(http.MethodGet, compute, "/servers/detail"+query("tags", "cluster="+r.unique("c")), nil)
	r.call(http.MethodGet, network, "/ports/"+port, nil)
}

func makeServerInNetwork(r *run) {
	body := r.vm("vm", object{"networks": list{object{"uuid": r.home()}}, "availability_zone": "nova", "config_drive": nil})
	id := r.boot("server", body)
	r.settle(id, "ACTIVE")
	a := r.call(http.MethodGet, network, "/ports"+query("device_id", id), nil, only(
		"ports.name", "ports.device_id", "ports.device_owner", "ports.status", "ports.description", "ports.mac_address", "ports.security_groups"))
	port, _ := pick(a.body, "ports.id").(list)[0].(string)
	r.name("port", port)
	r.call(http.MethodGet, compute, "/servers/"+id, nil, only("server.addresses", "server.config_drive", "server.security_groups", "server.description"))
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.gone(id)
	r.note("Nova deletes the ports that it has made")
	r.call(http.MethodGet, network, "/ports/"+port, nil)
}

func showBuilding(r *run) {
	id := r.boot("server", r.vm("vm", marked(r)), quiet())
	r.call(http.MethodGet, compute, "/servers/"+id, nil, only("server.status", "server.OS-EXT-STS:vm_state", "server.OS-EXT-STS:power_state",
		"server.progress", "server.metadata", "server.tags", "server.description", "server.addresses", "server.config_drive", "server.key_name",
		"server.OS-SRV-USG:launched_at", "server.fault"))
}

func deleteBuilding(r *run) {
	port := r.port("port", nil, quiet())
	id := r.boot("server", r.vm("vm", object{"networks": list{object{"port": port}}}), quiet())
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.gone(id)
	r.call(http.MethodGet, network, "/ports/"+port, nil, only("port.status", "port.device_id", "port.device_owner"))
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
}

func showDeleting(r *run) {
	id := r.running("server", object{"networks": list{object{"uuid": r.home()}}})
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.call(http.MethodGet, compute, "/servers/"+id, nil, only("server.status", "server.OS-EXT-STS:vm_state", "server.OS-EXT-STS:task_state",
		"server.OS-EXT-STS:power_state", "server.OS-SRV-USG:terminated_at"))
	r.note("a second DELETE does no harm")
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
}

func showDeleted(r *run) {
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	port := r.port("port", object{"mac_address": r.mac("mac a")}, quiet())
	more := marked(r)
	more["networks"] = list{object{"port": port}}
	start := r.unique("a.b")
	name := start + "-vm"
	more["name"] = name
	id := r.running("a.b", more)
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.gone(id)
	r.call(http.MethodGet, compute, "/servers/"+id, nil)
	r.call(http.MethodDelete, compute, "/servers/"+id, nil)
	r.call(http.MethodGet, compute, "/servers/detail"+query("changes-since", since, "name", "^"+name+"$"), nil)
	shown := only("servers.name", "servers.status")
	for _, filter := range [][]string{
		{"name", "^(" + name + "|other)$"}, {"name", "^(" + name + ")$"}, {"name", name[2:]}, {"name", "^a\\.b-" + name[4:] + "$"}, {"name", "^" + start + "$"}, {"name", "^" + start},
		{"name", "other", "name", name}, {"name", name, "name", "other"}, {"name", name, "deleted", "true"}, {"name", name, "status", "DELETED"},
		{"name", name, "status", "ACTIVE"}, {"tags", "machine=uid-1", "name", name},
	} {
		r.call(http.MethodGet, compute, "/servers/detail"+query(append([]string{"changes-since", since}, filter...)...), nil, shown)
	}
	r.call(http.MethodGet, compute, "/servers/detail"+query("name", name), nil)
	r.call(http.MethodGet, compute, "/servers/detail"+query("deleted", "true", "name", name), nil)
	r.call(http.MethodGet, compute, "/servers/detail?status=DELETED", nil)
	r.call(http.MethodGet, compute, "/servers/detail?changes-since=nonsense", nil)
	r.call(http.MethodGet, compute, "/servers/detail?changes-since=2040-01-01T00:00:00Z", nil)
	r.note("its port stays, and is free")
	r.call(http.MethodGet, network, "/ports/"+port, nil)
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
}

func unknownServer(r *run) {
	r.call(http.MethodGet, compute, "/servers/"+unknown, nil)
	r.call(http.MethodGet, compute, "/servers/nonsense", nil)
	r.call(http.MethodDelete, compute, "/servers/"+unknown, nil)
	r.call(http.MethodPost, compute, "/servers/"+unknown+"/action", object{"os-stop": nil})
	r.call(http.MethodGet, compute, "/nonsense", nil)
}

func serverOfOthers(r *run) {
	id := r.running("server", nil)
	r.call(http.MethodGet, compute, "/servers/"+id, nil, as(stranger))
	r.call(http.MethodDelete, compute, "/servers/"+id, nil, as(stranger))
	r.call(http.MethodGet, compute, "/servers"+query("name", r.unique("server")), nil, as(stranger))
	r.call(http.MethodGet, compute, "/servers?all_tenants=1", nil)
}

func serverByVersion(r *run) {
	id := r.running("server", nil)
	for _, v := range []string{"none", "2.1", "2.52", "2.67", "2.71", "2.90"} {
		r.call(http.MethodGet, compute, "/servers/"+id, nil, version(v), only("server.*", "server.flavor.*"))
	}
	r.note("tags at birth from 2.52 on")
	r.call(http.MethodPost, compute, "/servers", r.vm("vm", object{"tags": list{"a"}}), version("2.51"))
	r.boot("vm", r.vm("vm", object{"tags": list{"a"}}), version("2.52"))
	r.note("networks have to be given from 2.37 on")
	r.call(http.MethodPost, compute, "/servers", r.vm("vm", object{"networks": nil}))
}

func unknownVersions(r *run) {
	for _, v := range []string{"2.999", "3.0", "nonsense"} {
		r.call(http.MethodGet, compute, "/servers", nil, version(v))
	}
}

func changeServer(r *run) {
	id := r.running("server", object{"metadata": object{"a": "b"}})
	path := "/servers/" + id
	r.call(http.MethodPost, compute, path+"/metadata", object{"metadata": object{"c": "d"}})
	r.call(http.MethodGet, compute, path+"/metadata", nil)
	r.call(http.MethodDelete, compute, path+"/metadata/a", nil)
	r.call(http.MethodDelete, compute, path+"/metadata/a", nil)
	r.call(http.MethodGet, compute, path+"/tags", nil)
	r.call(http.MethodPut, compute, path+"/tags", object{"tags": list{"x", "y"}})
	r.call(http.MethodPut, compute, path+"/tags/z", nil)
	r.call(http.MethodPut, compute, path+"/tags/z", nil)
	r.call(http.MethodDelete, compute, path+"/tags/z", nil)
	r.call(http.MethodDelete, compute, path+"/tags/z", nil)
	r.call(http.MethodPut, compute, path, object{"server": object{"name": "renamed", "description": "described"}},
		only("server.*", "server.name", "server.description", "server.tags", "server.metadata"))
}

func deletePortOfServer(r *run) {
	port := r.port("port", nil, quiet())
	id := r.running("server", object{"networks": list{object{"port": port}}})
	r.call(http.MethodDelete, network, "/ports/"+port, nil)
	r.await("server without an address", func() bool {
		addresses, _ := pick(r.call(http.MethodGet, compute, "/servers/"+id, nil, quiet()).body, "server.addresses").(object)
		return len(addresses) == 0
	})
	r.call(http.MethodGet, compute, "/servers/"+id, nil, only("server.status", "server.addresses", "server.fault"))
}

func portInUse(r *run) {
	port := r.port("port", nil, quiet())
	r.running("server", object{"networks": list{object{"port": port}}})
	r.call(http.MethodPost, compute, "/servers", r.vm("second", object{"networks": list{object{"port": port}}}))
	r.note("a device that is none of Nova's")
	kept := r.port("kept", nil, quiet())
	r.call(http.MethodPut, network, "/ports/"+kept, object{"port": object{"device_id": "somebody", "device_owner": "compute:somebody"}},
		only("port.device_id", "port.device_owner"))
	r.call(http.MethodPost, compute, "/servers", r.vm("third", object{"networks": list{object{"port": kept}}}))
}

func attachments(r *run) {
	port := r.port("port", nil, quiet())
	id := r.running("server", object{"networks": list{object{"port": port}}})
	r.home()
	r.lan()
	r.call(http.MethodGet, compute, "/servers/"+id+"/os-interface", nil)
	r.call(http.MethodGet, compute, "/servers/"+id+"/os-volume_attachments", nil)
}
