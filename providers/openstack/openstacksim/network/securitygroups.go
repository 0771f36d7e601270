package network

import (
	"net/http"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// DefaultGroupName is the name of the security group that every project has.
const DefaultGroupName = "default"

// SecurityGroup is a security group of Neutron. Its rules allow what goes out, and nothing else:
// nothing here sends packets.
type SecurityGroup struct {
	state.Record
	Revised int `json:"revised,omitempty"`
}

// Keys implements state.Resource.
func (g *SecurityGroup) Keys() []state.Key { return []state.Key{{state.ByName, g.Name}} }

var securityGroups = collection[*SecurityGroup]{
	one: "security_group", many: "security_groups", inventory: func(neutron *Neutron) *state.Inventory[*SecurityGroup] { return neutron.SecurityGroups },
	filters: []string{"stateful", "shared"},
	indexed: []string{state.ByName},
	visible: func(call *api.Call, g *SecurityGroup) bool { return call.Sees(g.Project) },
	view:    groupView,
	missing: func(id string) error {
		return refuseAs(http.StatusNotFound, "SecurityGroupNotFound", "Security group %s does not exist", id)
	},
}

func groupView(neutron *Neutron, _ *api.Call, g *SecurityGroup) api.Object {
	view := neutronView(&g.Record, g.Revised+1)
	view["stateful"], view["shared"] = true, false
	view["security_group_rules"] = []api.Object{g.egress("IPv4"), g.egress("IPv6")}
	return view
}

// egress is the rule that lets everything out.
func (g *SecurityGroup) egress(family string) api.Object {
	return api.Object{
		"id": state.NamedID("rule", g.ID+family), "tenant_id": g.Project, "project_id": g.Project, "security_group_id": g.ID, "ethertype": family,
		"direction": "egress", "protocol": nil, "port_range_min": nil, "port_range_max": nil, "remote_ip_prefix": nil, "remote_group_id": nil,
		"remote_address_group_id": nil, "normalized_cidr": nil, "description": nil, "tags": []string{}, "created_at": g.Created.Format(api.TimeForm),
		"updated_at": g.Created.Format(api.TimeForm), "revision_number": 0, "standard_attr_id": g.Seq,
	}
}

// DefaultGroup returns the security group that a project has from its first use of Neutron on.
func (neutron *Neutron) DefaultGroup(project string) *SecurityGroup {
	if g := neutron.GroupNamed(project, DefaultGroupName); g != nil {
		return g
	}
	g := &SecurityGroup{Record: neutron.store.NewRecord(project, DefaultGroupName)}
	g.ID, g.Given, g.Description = state.NamedID("security group", project+"/"+DefaultGroupName), true, "Default security group"
	neutron.SecurityGroups.Put(g)
	return g
}

// GroupNamed finds a security group of a project by its name or id; nil when there is none.
func (neutron *Neutron) GroupNamed(project, nameOrID string) *SecurityGroup {
	if g := neutron.SecurityGroups.ByID[nameOrID]; g != nil && g.Project == project {
		return g
	}
	for _, g := range neutron.SecurityGroups.With(state.ByName, nameOrID) {
		if g.Project == project {
			return g
		}
	}
	return nil
}

// listSecurityGroups implements GET /v2.0/security-groups.
func listSecurityGroups(neutron *Neutron, call *api.Call) (api.Reply, error) {
	neutron.DefaultGroup(call.Project())
	return securityGroups.list(neutron, call)
}

// createSecurityGroup implements POST /v2.0/security-groups.
func createSecurityGroup(neutron *Neutron, call *api.Call) (api.Reply, error) {
	a, err := readAttributes(call, "security_group", []string{"name", "description", "tenant_id", "project_id", "stateful"})
	if err != nil {
		return api.Reply{}, err
	}
	neutron.DefaultGroup(call.Project())
	if a.text("name") == DefaultGroupName {
		return api.Reply{}, refuseAs(http.StatusConflict, "SecurityGroupDefaultAlreadyExists", "Default security group already exists.")
	}
	g := &SecurityGroup{Record: neutron.store.NewRecord(a.project(call), a.text("name"))}
	g.Description = a.text("description")
	neutron.SecurityGroups.Put(g)
	call.Changed(g.ID)
	return api.WithStatus(http.StatusCreated, api.Object{"security_group": groupView(neutron, call, g)})
}

// deleteSecurityGroup implements DELETE /v2.0/security-groups/{id}.
func deleteSecurityGroup(neutron *Neutron, call *api.Call) (api.Reply, error) {
	g, err := securityGroups.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	used := slices.ContainsFunc(neutron.Ports.Ordered, func(p *Port) bool { return slices.Contains(p.Groups, g.ID) })
	if used {
		return api.Reply{}, refuseAs(http.StatusConflict, "SecurityGroupInUse", "Security Group %s in use.", g.ID)
	}
	neutron.SecurityGroups.Remove(g.ID)
	call.Changed(g.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}
