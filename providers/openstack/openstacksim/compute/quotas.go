package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// quotas are those of Nova, by what the cloud calls their kinds.
var quotas = map[string]string{"instances": state.KindVM, "cores": "cores", "ram": "ram", "server_group_members": "server_group_members"}

func computeLimit(nova *Nova, project, quota string) int64 {
	return nova.store.Quotas.Limit(project, quotas[quota])
}

func computeUse(nova *Nova, project string) map[string]int64 {
	used := map[string]int64{"instances": 0, "cores": 0, "ram": 0}
	for _, s := range nova.Servers.Alive.Ordered {
		if s.Project == project {
			used["instances"]++
			used["cores"] += int64(s.Flavor.VCPUs)
			used["ram"] += int64(s.Flavor.RAM)
		}
	}
	return used
}

// showLimits implements GET /limits.
func showLimits(nova *Nova, call *api.Call) (api.Reply, error) {
	used := computeUse(nova, call.Project())
	return api.OK(api.Object{"limits": api.Object{"rate": []api.Object{}, "absolute": api.Object{
		"maxTotalInstances": computeLimit(nova, call.Project(), "instances"), "maxTotalCores": computeLimit(nova, call.Project(), "cores"), "maxTotalRAMSize": computeLimit(nova, call.Project(), "ram"),
		"totalInstancesUsed": used["instances"], "totalCoresUsed": used["cores"], "totalRAMUsed": used["ram"], "maxServerMeta": maxMetadata,
		"maxTotalKeypairs": 100, "maxServerGroups": 10, "maxServerGroupMembers": computeLimit(nova, call.Project(), "server_group_members"), "totalServerGroupsUsed": nova.ServerGroups.Used[call.Project()],
	}}})
}

// showComputeQuota implements GET /os-quota-sets/{project}.
func showComputeQuota(nova *Nova, call *api.Call) (api.Reply, error) {
	set := api.Object{"id": call.Path("project"), "metadata_items": maxMetadata, "key_pairs": 100, "server_groups": 10}
	for kind := range quotas {
		set[kind] = computeLimit(nova, call.Path("project"), kind)
	}
	return api.OK(api.Object{"quota_set": set})
}

// showComputeUse implements GET /os-quota-sets/{project}/detail.
func showComputeUse(nova *Nova, call *api.Call) (api.Reply, error) {
	set, used := api.Object{"id": call.Path("project")}, computeUse(nova, call.Path("project"))
	for kind := range quotas {
		set[kind] = api.Object{"limit": computeLimit(nova, call.Path("project"), kind), "in_use": used[kind], "reserved": 0}
	}
	return api.OK(api.Object{"quota_set": set})
}

// updateComputeQuota implements PUT /os-quota-sets/{project}.
func updateComputeQuota(nova *Nova, call *api.Call) (api.Reply, error) {
	if !call.Admin() {
		return api.Reply{}, api.Refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:os-quota-sets:update to be performed.")
	}
	var body struct {
		Set map[string]any `json:"quota_set"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	nova.store.Quotas.Set(call.Path("project"), state.LimitsOf(body.Set, quotas))
	call.Done = true
	return showComputeQuota(nova, call)
}

// checkServerQuota returns Nova's words when the server is one too many.
func checkServerQuota(nova *Nova, s *Server) error {
	used := computeUse(nova, s.Project)
	wanted := map[string]int64{"instances": 1, "cores": int64(s.Flavor.VCPUs), "ram": int64(s.Flavor.RAM)}
	var names, requested, already, limits []string
	for _, kind := range []string{"cores", "instances", "ram"} {
		if !nova.store.Quotas.Exceeds(s.Project, quotas[kind], used[kind], wanted[kind]) {
			continue
		}
		names = append(names, kind)
		requested = append(requested, fmt.Sprint(wanted[kind]))
		already = append(already, fmt.Sprint(used[kind]))
		limits = append(limits, fmt.Sprint(computeLimit(nova, s.Project, kind)))
	}
	if len(names) == 0 {
		return nil
	}
	return api.Refuse(http.StatusForbidden, "Quota exceeded for %s: Requested %s, but already used %s of %s %s",
		strings.Join(names, ", "), strings.Join(requested, ", "), strings.Join(already, ", "), strings.Join(limits, ", "), strings.Join(names, ", "))
}
