package network

import (
	"encoding/json"
	"net/http"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// usualQuotas are the quotas of Neutron, with what it allows where nobody says otherwise.
var usualQuotas = map[string]int64{
	"network": 100, "subnet": 100, state.KindPort: state.Unlimited, "router": 10, state.KindFloatingIP: state.Unlimited, "security_group": 10,
	"security_group_rule": 100, state.KindTrunk: state.Unlimited, "subnetpool": state.Unlimited, "rbac_policy": 10,
}

// ExceedsPorts says whether more ports of a project are too many. The limit of the hooks does not
// count those of its routers that the world had from the beginning.
func (neutron *Neutron) ExceedsPorts(project string, more int64) bool {
	used := neutron.Ports.Used[project]
	if !neutron.store.Quotas.IsSet(project, state.KindPort) {
		used -= givenPorts(neutron, project)
	}
	return neutron.store.Quotas.Exceeds(project, state.KindPort, used, more)
}

// givenPorts counts the ports of a project that the world had from the beginning: those of its
// routers.
func givenPorts(neutron *Neutron, project string) int64 {
	given := int64(0)
	for _, p := range neutron.Ports.With(ByDeviceOwner, routerInterface) {
		if p.Given && p.Project == project {
			given++
		}
	}
	return given
}

// limit is how many of a kind a project may have.
func limit(neutron *Neutron, project, kind string) int64 {
	if limit := neutron.store.Quotas.Limit(project, kind); limit >= 0 {
		return limit
	}
	if neutron.store.Quotas.IsSet(project, kind) {
		return state.Unlimited
	}
	return usualQuotas[kind]
}

// showNetworkQuota implements GET /v2.0/quotas/{project}.
func showNetworkQuota(neutron *Neutron, call *api.Call) (api.Reply, error) {
	if !call.Sees(call.Path("project")) {
		return api.Reply{}, forbidden("rule:get_quota")
	}
	limits := api.Object{}
	for kind := range usualQuotas {
		limits[kind] = limit(neutron, call.Path("project"), kind)
	}
	return api.OK(api.Object{"quota": limits})
}

// showNetworkUse implements GET /v2.0/quotas/{project}/details.json.
func showNetworkUse(neutron *Neutron, call *api.Call) (api.Reply, error) {
	project := call.Path("project")
	if !call.Sees(project) {
		return api.Reply{}, forbidden("rule:get_quota")
	}
	used := map[string]int64{
		"port": neutron.Ports.Used[project], "floatingip": neutron.FloatingIPs.Used[project], "trunk": neutron.Trunks.Used[project], "network": neutron.Networks.Used[project],
		"subnet": neutron.Subnets.Used[project], "security_group": neutron.SecurityGroups.Used[project], "router": neutron.Routers.Used[project],
	}
	limits := api.Object{}
	for kind := range usualQuotas {
		limits[kind] = api.Object{"limit": limit(neutron, project, kind), "used": used[kind], "reserved": 0}
	}
	return api.OK(api.Object{"quota": limits})
}

// updateNetworkQuota implements PUT /v2.0/quotas/{project}.
func updateNetworkQuota(neutron *Neutron, call *api.Call) (api.Reply, error) {
	if !call.Admin() {
		return api.Reply{}, forbidden("rule:update_quota")
	}
	var body struct {
		Quota map[string]int64 `json:"quota"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Resource body required")
	}
	neutron.store.Quotas.Set(call.Path("project"), body.Quota)
	call.Done = true
	return showNetworkQuota(neutron, call)
}
