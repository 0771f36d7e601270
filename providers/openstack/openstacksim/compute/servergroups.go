package compute

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// ServerGroup is a server group of Nova.
type ServerGroup struct {
	state.Record
	Policy string     `json:"policy"`
	Rules  api.Object `json:"rules,omitempty"`
	UserID string     `json:"userID,omitempty"`
}

// Keys implements state.Resource: server groups are found by id alone.
func (g *ServerGroup) Keys() []state.Key { return nil }

func serverGroupView(nova *Nova, call *api.Call, g *ServerGroup) api.Object {
	view := api.Object{"id": g.ID, "name": g.Name, "members": nova.Servers.in(g.ID)}
	if call.Version >= 13 {
		view["project_id"], view["user_id"] = g.Project, g.UserID
	}
	if call.Version >= groupPolicy {
		view["policy"], view["rules"] = g.Policy, g.Rules
		if g.Rules == nil {
			view["rules"] = api.Object{}
		}
		return view
	}
	view["policies"], view["metadata"] = []string{g.Policy}, api.Object{}
	return view
}

// listServerGroups implements GET /os-server-groups, which knows no filters.
func listServerGroups(nova *Nova, call *api.Call) (api.Reply, error) {
	p, err := api.ReadPage(call)
	if err != nil {
		return api.Reply{}, err
	}
	offset, _ := strconv.Atoi(call.Query.Get("offset")) // none is the beginning
	views := []api.Object{}
	for _, g := range nova.ServerGroups.Ordered {
		if g.Project == call.Project() {
			views = append(views, serverGroupView(nova, call, g))
		}
	}
	views = views[min(max(offset, 0), len(views)):]
	views = views[:min(p.Limit, len(views))]
	return api.OK(api.Object{"server_groups": views})
}

func findServerGroup(nova *Nova, call *api.Call) (*ServerGroup, error) {
	g := nova.ServerGroups.ByID[call.Path("id")]
	if g == nil || !call.Sees(g.Project) {
		return nil, api.Refuse(http.StatusNotFound, "Instance group %s could not be found.", call.Path("id"))
	}
	return g, nil
}

// showServerGroup implements GET /os-server-groups/{id}.
func showServerGroup(nova *Nova, call *api.Call) (api.Reply, error) {
	g, err := findServerGroup(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{"server_group": serverGroupView(nova, call, g)})
}

var policies = []string{"anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"}

// createServerGroup implements POST /os-server-groups.
func createServerGroup(nova *Nova, call *api.Call) (api.Reply, error) {
	var body struct {
		Group json.RawMessage `json:"server_group"`
	}
	var wanted struct {
		Name     string     `json:"name"`
		Policy   string     `json:"policy"`
		Policies []string   `json:"policies"`
		Rules    api.Object `json:"rules"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil || json.Unmarshal(body.Group, &wanted) != nil {
		return api.Reply{}, api.Refuse(http.StatusBadRequest, "Malformed request body")
	}
	if call.Version < groupPolicy && len(wanted.Policies) > 0 {
		wanted.Policy = wanted.Policies[0]
	}
	if wanted.Policy == "" {
		property := "policy"
		if call.Version < groupPolicy {
			property = "policies"
		}
		return api.Reply{}, api.Invalid("server_group", api.Pythonic(body.Group), "'"+property+"' is a required property")
	}
	if !slices.Contains(policies, wanted.Policy) {
		return api.Reply{}, api.Invalid("policy", wanted.Policy, "'"+wanted.Policy+"' is not one of ['"+strings.Join(policies, "', '")+"']")
	}
	g := &ServerGroup{Record: nova.store.NewRecord(call.Project(), wanted.Name), Policy: wanted.Policy, Rules: wanted.Rules, UserID: call.Caller.UserID}
	nova.ServerGroups.Put(g)
	call.Changed(g.ID)
	return api.OK(api.Object{"server_group": serverGroupView(nova, call, g)})
}

// deleteServerGroup implements DELETE /os-server-groups/{id}.
func deleteServerGroup(nova *Nova, call *api.Call) (api.Reply, error) {
	g, err := findServerGroup(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	nova.ServerGroups.Remove(g.ID)
	call.Changed(g.ID)
	return api.WithStatus(http.StatusNoContent, nil)
}
