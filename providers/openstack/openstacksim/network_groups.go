package openstacksim

import (
	"net/http"
	"slices"
)

// defaultGroup is the name of the security group that every project has.
const defaultGroup = "default"

// securityGroup is a security group of Neutron. Its rules allow what goes out, and nothing else:
// nothing here sends packets.
type securityGroup struct {
	record
	Revised int `json:"revised,omitempty"`
}

func (g *securityGroup) keys() []key { return []key{{byName, g.Name}} }

var securityGroups = collection[*securityGroup]{
	one: "security_group", many: "security_groups", inventory: func(c *Cloud) *inventory[*securityGroup] { return c.securityGroups },
	filters: []string{"stateful", "shared"},
	indexed: []string{byName},
	visible: func(t *turn, g *securityGroup) bool { return t.sees(g.Project) },
	view:    (*Cloud).groupView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "SecurityGroupNotFound", "Security group %s does not exist", id)
	},
}

func (c *Cloud) groupView(_ *turn, g *securityGroup) object {
	view := neutronView(&g.record, g.Revised+1)
	view["stateful"], view["shared"] = true, false
	view["security_group_rules"] = []object{g.egress("IPv4"), g.egress("IPv6")}
	return view
}

// egress is the rule that lets everything out.
func (g *securityGroup) egress(family string) object {
	return object{
		"id": namedID("rule", g.ID+family), "tenant_id": g.Project, "project_id": g.Project, "security_group_id": g.ID, "ethertype": family,
		"direction": "egress", "protocol": nil, "port_range_min": nil, "port_range_max": nil, "remote_ip_prefix": nil, "remote_group_id": nil,
		"remote_address_group_id": nil, "normalized_cidr": nil, "description": nil, "tags": []string{}, "created_at": g.Created.Format(novaTime),
		"updated_at": g.Created.Format(novaTime), "revision_number": 0, "standard_attr_id": g.Seq,
	}
}

// defaultGroup returns the security group that a project has from its first use of Neutron on.
func (c *Cloud) defaultGroup(project string) *securityGroup {
	if g := c.groupNamed(project, defaultGroup); g != nil {
		return g
	}
	g := &securityGroup{record: c.newRecord(project, defaultGroup)}
	g.ID, g.Given, g.Description = namedID("security group", project+"/"+defaultGroup), true, "Default security group"
	c.securityGroups.put(g)
	return g
}

// groupNamed finds a security group of a project by its name or id; nil when there is none.
func (c *Cloud) groupNamed(project, nameOrID string) *securityGroup {
	if g := c.securityGroups.byID[nameOrID]; g != nil && g.Project == project {
		return g
	}
	for _, g := range c.securityGroups.with(byName, nameOrID) {
		if g.Project == project {
			return g
		}
	}
	return nil
}

// listSecurityGroups implements GET /v2.0/security-groups.
func listSecurityGroups(c *Cloud, t *turn) (reply, error) {
	c.defaultGroup(t.project())
	return securityGroups.list(c, t)
}

// createSecurityGroup implements POST /v2.0/security-groups.
func createSecurityGroup(c *Cloud, t *turn) (reply, error) {
	a, err := readAttributes(t, "security_group", []string{"name", "description", "tenant_id", "project_id", "stateful"})
	if err != nil {
		return reply{}, err
	}
	c.defaultGroup(t.project())
	if a.text("name") == defaultGroup {
		return reply{}, refuseAs(http.StatusConflict, "SecurityGroupDefaultAlreadyExists", "Default security group already exists.")
	}
	g := &securityGroup{record: c.newRecord(a.project(t), a.text("name"))}
	g.Description = a.text("description")
	c.securityGroups.put(g)
	t.Changed(g.ID)
	return with(http.StatusCreated, object{"security_group": c.groupView(t, g)})
}

// deleteSecurityGroup implements DELETE /v2.0/security-groups/{id}.
func deleteSecurityGroup(c *Cloud, t *turn) (reply, error) {
	g, err := securityGroups.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	used := slices.ContainsFunc(c.ports.ordered, func(p *port) bool { return slices.Contains(p.Groups, g.ID) })
	if used {
		return reply{}, refuseAs(http.StatusConflict, "SecurityGroupInUse", "Security Group %s in use.", g.ID)
	}
	c.securityGroups.remove(g.ID)
	t.Changed(g.ID)
	return with(http.StatusNoContent, nil)
}
