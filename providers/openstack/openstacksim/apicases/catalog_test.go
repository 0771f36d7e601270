package apicases_test

import "net/http"

// catalogCases are about what a driver looks up before it makes anything.
func catalogCases() []apiCase {
	return []apiCase{
		{name: "catalog: flavors", do: flavors},
		{name: "catalog: flavors before their extra specs", do: oldFlavors},
		{name: "catalog: images", do: images},
		{name: "catalog: networks and subnets", do: networks},
		{name: "catalog: security groups", do: securityGroups},
		{name: "catalog: zones and key pairs", do: zones},
		{name: "catalog: extensions of the network", do: extensions},
	}
}

func flavors(r *run) {
	r.call(http.MethodGet, compute, "/flavors/"+r.flavor("m1.small"), nil)
	r.call(http.MethodGet, compute, "/flavors/m1.small", nil)
	r.call(http.MethodGet, compute, "/flavors/"+unknown, nil)
	r.call(http.MethodGet, compute, "/flavors/detail?limit=1", nil, only("*", "flavors_links.rel"))
	r.call(http.MethodGet, compute, "/flavors?limit=0", nil)
}

func oldFlavors(r *run) {
	id := r.flavor("m1.small")
	r.call(http.MethodGet, compute, "/flavors/"+id, nil, version("2.52"))
	r.call(http.MethodGet, compute, "/flavors/"+id, nil, version("2.55"), only("flavor.*"))
}

func images(r *run) {
	r.image()
	ofImages := only("*", "images.name", "images.id", "images.status", "images.visibility", "images.min_disk", "images.min_ram", "first", "schema")
	r.call(http.MethodGet, image, "/images?name=tiny-raw", nil, ofImages)
	r.call(http.MethodGet, image, "/images"+query("name", "Ubuntu Noble 24.04 (2024-08-01)"), nil,
		only("images.name", "images.min_disk", "images.min_ram", "images.os_distro", "images.hw_disk_bus"))
	r.call(http.MethodGet, image, "/images?name=in:nothing,tiny-raw", nil, only("images.name"))
	r.call(http.MethodGet, image, "/images?name=nothing", nil)
	r.call(http.MethodGet, image, "/images?limit=1", nil, only("*"))
	r.call(http.MethodGet, image, "/images/"+r.image(), nil, only("*", "id", "name", "status", "disk_format", "container_format", "self", "file", "schema"))
	r.call(http.MethodGet, image, "/images/"+unknown, nil)
	r.call(http.MethodGet, image, "/images/nonsense", nil)
}

func networks(r *run) {
	r.home()
	r.lan()
	r.external()
	r.call(http.MethodGet, network, "/networks?name="+member+"-net", nil)
	r.call(http.MethodGet, network, "/networks/"+r.home(), nil, only("network.*", "network.id"))
	r.call(http.MethodGet, network, "/networks/"+r.external(), nil, only("network.*", "network.router:external", "network.shared", "network.subnets"))
	r.call(http.MethodGet, network, "/networks?router:external=true&fields=name&sort_key=name&sort_dir=asc", nil)
	r.call(http.MethodGet, network, "/networks?name=nothing", nil)
	r.call(http.MethodGet, network, "/networks/"+unknown, nil)
	r.call(http.MethodGet, network, "/networks/nonsense", nil)
	r.call(http.MethodGet, network, "/subnets/"+r.lan(), nil)
	r.call(http.MethodGet, network, "/subnets?name="+member+"-subnet&fields=id&fields=network_id", nil)
	r.call(http.MethodGet, network, "/subnets/"+unknown, nil)
	r.note("what belongs to another project")
	r.call(http.MethodGet, network, "/networks?name="+stranger+"-net", nil)
	r.call(http.MethodGet, network, "/subnets?name="+stranger+"-subnet", nil)
}

func securityGroups(r *run) {
	r.call(http.MethodGet, network, "/security-groups?name=default", nil, only(
		"security_groups.*", "security_groups.name", "security_groups.description", "security_groups.stateful", "security_groups.tags"))
	name := r.name("group name", r.unique("group"))
	a := r.call(http.MethodPost, network, "/security-groups", object{"security_group": object{"name": name}},
		only("security_group.*", "security_group.name", "security_group.description"))
	id := a.names("group", "security_group.id")
	r.owns(network, "/security-groups/"+id)
	r.call(http.MethodGet, network, "/security-groups"+query("name", name, "fields", "id"), nil)
	r.call(http.MethodGet, network, "/security-groups/"+unknown, nil)
	r.call(http.MethodDelete, network, "/security-groups/"+id, nil)
	r.call(http.MethodDelete, network, "/security-groups/"+id, nil)
}

func zones(r *run) {
	r.call(http.MethodGet, compute, "/os-availability-zone", nil)
	r.call(http.MethodGet, compute, "/os-keypairs", nil)
}

func extensions(r *run) {
	r.call(http.MethodGet, network, "/extensions/trunk", nil, only("extension.*", "extension.alias"))
	r.call(http.MethodGet, network, "/extensions/standard-attr-description", nil, only("extension.alias"))
	r.call(http.MethodGet, network, "/extensions/nonsense", nil)
}
