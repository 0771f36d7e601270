package openstacksim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// serverGroup is a server group of Nova.
type serverGroup struct {
	record
	Policy string `json:"policy"`
	Rules  object `json:"rules,omitempty"`
	UserID string `json:"userID,omitempty"`
}

func (g *serverGroup) keys() []key { return nil }

func (c *Cloud) serverGroupView(t *turn, g *serverGroup) object {
	view := object{"id": g.ID, "name": g.Name, "members": c.serversOf(g.ID)}
	if t.version >= 13 {
		view["project_id"], view["user_id"] = g.Project, g.UserID
	}
	if t.version >= groupPolicy {
		view["policy"], view["rules"] = g.Policy, g.Rules
		if g.Rules == nil {
			view["rules"] = object{}
		}
		return view
	}
	view["policies"], view["metadata"] = []string{g.Policy}, object{}
	return view
}

// listServerGroups implements GET /os-server-groups, which knows no filters.
func listServerGroups(c *Cloud, t *turn) (reply, error) {
	p, err := novaPage(t)
	if err != nil {
		return reply{}, err
	}
	offset, _ := strconv.Atoi(t.query.Get("offset")) // none is the beginning
	views := []object{}
	for _, g := range c.serverGroups.ordered {
		if g.Project == t.project() {
			views = append(views, c.serverGroupView(t, g))
		}
	}
	views = views[min(max(offset, 0), len(views)):]
	views = views[:min(p.limit, len(views))]
	return ok(object{"server_groups": views})
}

func (c *Cloud) serverGroup(t *turn) (*serverGroup, error) {
	g := c.serverGroups.byID[t.path("id")]
	if g == nil || !t.sees(g.Project) {
		return nil, refuse(http.StatusNotFound, "Instance group %s could not be found.", t.path("id"))
	}
	return g, nil
}

// showServerGroup implements GET /os-server-groups/{id}.
func showServerGroup(c *Cloud, t *turn) (reply, error) {
	g, err := c.serverGroup(t)
	if err != nil {
		return reply{}, err
	}
	return ok(object{"server_group": c.serverGroupView(t, g)})
}

var policies = []string{"anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"}

// createServerGroup implements POST /os-server-groups.
func createServerGroup(c *Cloud, t *turn) (reply, error) {
	var body struct {
		Group json.RawMessage `json:"server_group"`
	}
	var wanted struct {
		Name     string   `json:"name"`
		Policy   string   `json:"policy"`
		Policies []string `json:"policies"`
		Rules    object   `json:"rules"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil || json.Unmarshal(body.Group, &wanted) != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	if t.version < groupPolicy && len(wanted.Policies) > 0 {
		wanted.Policy = wanted.Policies[0]
	}
	if wanted.Policy == "" {
		property := "policy"
		if t.version < groupPolicy {
			property = "policies"
		}
		return reply{}, invalid("server_group", pythonic(body.Group), "'"+property+"' is a required property")
	}
	if !slices.Contains(policies, wanted.Policy) {
		return reply{}, invalid("policy", wanted.Policy, "'"+wanted.Policy+"' is not one of ['"+strings.Join(policies, "', '")+"']")
	}
	g := &serverGroup{record: c.newRecord(t.project(), wanted.Name), Policy: wanted.Policy, Rules: wanted.Rules, UserID: t.scope.UserID}
	c.serverGroups.put(g)
	t.Changed(g.ID)
	return ok(object{"server_group": c.serverGroupView(t, g)})
}

// deleteServerGroup implements DELETE /os-server-groups/{id}.
func deleteServerGroup(c *Cloud, t *turn) (reply, error) {
	g, err := c.serverGroup(t)
	if err != nil {
		return reply{}, err
	}
	c.serverGroups.remove(g.ID)
	t.Changed(g.ID)
	return with(http.StatusNoContent, nil)
}

func (c *Cloud) computeLimit(project, quota string) int64 {
	return c.limit(project, computeQuotas[quota])
}

func (c *Cloud) computeUse(project string) map[string]int64 {
	used := map[string]int64{"instances": 0, "cores": 0, "ram": 0}
	for _, s := range c.alive.ordered {
		if s.Project == project {
			used["instances"]++
			used["cores"] += int64(s.Flavor.VCPUs)
			used["ram"] += int64(s.Flavor.RAM)
		}
	}
	return used
}

// showLimits implements GET /limits.
func showLimits(c *Cloud, t *turn) (reply, error) {
	used := c.computeUse(t.project())
	return ok(object{"limits": object{"rate": []object{}, "absolute": object{
		"maxTotalInstances": c.computeLimit(t.project(), "instances"), "maxTotalCores": c.computeLimit(t.project(), "cores"), "maxTotalRAMSize": c.computeLimit(t.project(), "ram"),
		"totalInstancesUsed": used["instances"], "totalCoresUsed": used["cores"], "totalRAMUsed": used["ram"], "maxServerMeta": maxMetadata,
		"maxTotalKeypairs": 100, "maxServerGroups": 10, "maxServerGroupMembers": c.computeLimit(t.project(), "server_group_members"), "totalServerGroupsUsed": c.serverGroups.used[t.project()],
	}}})
}

// showComputeQuota implements GET /os-quota-sets/{project}.
func showComputeQuota(c *Cloud, t *turn) (reply, error) {
	set := object{"id": t.path("project"), "metadata_items": maxMetadata, "key_pairs": 100, "server_groups": 10}
	for kind := range computeQuotas {
		set[kind] = c.computeLimit(t.path("project"), kind)
	}
	return ok(object{"quota_set": set})
}

// showComputeUse implements GET /os-quota-sets/{project}/detail.
func showComputeUse(c *Cloud, t *turn) (reply, error) {
	set, used := object{"id": t.path("project")}, c.computeUse(t.path("project"))
	for kind := range computeQuotas {
		set[kind] = object{"limit": c.computeLimit(t.path("project"), kind), "in_use": used[kind], "reserved": 0}
	}
	return ok(object{"quota_set": set})
}

// limitsOf reads those of a quota set that the cloud has kinds for.
func limitsOf(set map[string]any, kinds map[string]string) map[string]int64 {
	limits := map[string]int64{}
	for name, kind := range kinds {
		if limit, isNumber := set[name].(float64); isNumber {
			limits[kind] = int64(limit)
		}
	}
	return limits
}

// updateComputeQuota implements PUT /os-quota-sets/{project}.
func updateComputeQuota(c *Cloud, t *turn) (reply, error) {
	if !t.admin() {
		return reply{}, refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:os-quota-sets:update to be performed.")
	}
	var body struct {
		Set map[string]any `json:"quota_set"`
	}
	if err := json.Unmarshal(t.body, &body); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "Malformed request body")
	}
	c.setQuotas(t.path("project"), limitsOf(body.Set, computeQuotas))
	t.Done = true
	return showComputeQuota(c, t)
}

// listInterfaces implements GET /servers/{id}/os-interface.
func listInterfaces(c *Cloud, t *turn) (reply, error) {
	s, err := c.server(t)
	if err != nil {
		return reply{}, err
	}
	views := []object{}
	for _, p := range c.ports.with(byDevice, s.ID) {
		ips := []object{}
		for _, ip := range p.FixedIPs {
			ips = append(ips, object{"subnet_id": ip.Subnet, "ip_address": ip.Address})
		}
		views = append(views, object{"port_id": p.ID, "net_id": p.Network, "mac_addr": p.MAC, "port_state": p.status(), "fixed_ips": ips})
	}
	return ok(object{"interfaceAttachments": views})
}
