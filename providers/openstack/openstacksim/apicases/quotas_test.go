package apicases_test

import (
	"encoding/json"
	"net/http"
)

func quotaCases() []apiCase {
	return []apiCase{
		{name: "quota: instances", do: quotaOfInstances},
		{name: "quota: cores and RAM", do: quotaOfCores},
		{name: "quota: ports", do: quotaOfPorts},
		{name: "quota: floating IPs", do: quotaOfFloatingIPs},
		{name: "quota: members of a server group", do: quotaOfMembers},
		{name: "quota: volumes", do: quotaOfVolumes},
		{name: "quota: who may see and change it", do: rightsToQuotas},
	}
}

func quotaOfInstances(r *run) {
	r.quota(compute, object{"instances": 1})
	r.running("server", nil)
	r.try(nil)
	r.note("of more than one kind")
	r.quota(compute, object{"instances": 1, "ram": 512})
	r.try(nil)
}

func quotaOfCores(r *run) {
	r.quota(compute, object{"cores": 1})
	r.try(object{"flavorRef": r.flavor("m1.large")})
	r.quota(compute, object{"cores": -1, "ram": 1024})
	r.try(object{"flavorRef": r.flavor("m1.small")})
}

func quotaOfPorts(r *run) {
	r.home()
	r.port("port", nil, quiet())
	used, err := pick(r.call(http.MethodGet, network, "/quotas/"+r.login(member).project+"/details.json", nil, quiet()).body, "quota.port.used").(json.Number).Int64()
	if err != nil {
		r.Fatal(err)
	}
	r.quota(network, object{"port": used})
	r.tryPort(object{})
	r.note("a server for which Nova would make one")
	r.try(object{"networks": list{object{"uuid": r.home()}}})
}

func quotaOfFloatingIPs(r *run) {
	r.quota(network, object{"floatingip": 0})
	r.call(http.MethodPost, network, "/floatingips", object{"floatingip": object{"floating_network_id": r.external()}})
}

func quotaOfMembers(r *run) {
	r.quota(compute, object{"server_group_members": 1})
	group := r.group("affinity", quiet())
	r.settle(r.inGroup("first", group, nil), "ACTIVE")
	body := r.vm("second", nil)
	body["os:scheduler_hints"] = object{"group": group}
	r.call(http.MethodPost, compute, "/servers", body)
}

func quotaOfVolumes(r *run) {
	r.quota(volume, object{"volumes": 0})
	r.call(http.MethodPost, volume, "/volumes", object{"volume": object{"size": 1}})
	r.quota(volume, object{"volumes": -1, "gigabytes": 1})
	r.call(http.MethodPost, volume, "/volumes", object{"volume": object{"size": 2}})
}

func rightsToQuotas(r *run) {
	project := r.login(member).project
	r.call(http.MethodGet, network, "/quotas/"+project, nil, only("quota.port", "quota.floatingip"))
	r.call(http.MethodPut, network, "/quotas/"+project, object{"quota": object{"port": 1}})
	r.call(http.MethodGet, compute, "/os-quota-sets/"+project, nil, only("quota_set.id", "quota_set.instances", "quota_set.cores", "quota_set.ram"))
	r.call(http.MethodPut, compute, "/os-quota-sets/"+project, object{"quota_set": object{"instances": 1}})
	r.call(http.MethodGet, compute, "/limits", nil, only("limits.rate", "limits.absolute.*", "limits.absolute.maxServerMeta", "limits.absolute.maxTotalInstances"))
}
