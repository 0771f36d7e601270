package compute

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// candidates are a superset of what the filter finds.
func candidates(nova *Nova, f *serverFilter) []*Server {
	wishes := map[string][]string{}
	if f.isExact {
		wishes[state.ByName] = []string{f.exact}
	}
	if len(f.anyTag) > 0 {
		wishes[byTag] = f.anyTag
	}
	for _, tag := range f.tags {
		if rarer, known := wishes[byTag]; !known || nova.Servers.Alive.Count(byTag, tag) < nova.Servers.Alive.Count(byTag, rarer...) {
			wishes[byTag] = []string{tag}
		}
	}
	found := nova.Servers.Alive.Narrowed(wishes)
	if f.since.IsZero() {
		return found
	}
	found = slices.Clone(found)
	for n := len(nova.Servers.buried) - 1; n >= 0 && !nova.Servers.buried[n].Updated.Before(f.since); n-- {
		found = append(found, nova.Servers.buried[n])
	}
	return found
}

// serverPage returns the servers that a request asks for, the newest first.
func serverPage(nova *Nova, call *api.Call) ([]*Server, api.Page, error) {
	p, err := api.ReadPage(call)
	if err != nil {
		return nil, p, err
	}
	f, err := readServerFilter(call)
	if err != nil {
		return nil, p, err
	}
	var marker *Server
	if p.Marker != "" {
		if marker = nova.Servers.find(p.Marker); marker == nil || !call.Sees(marker.Project) {
			return nil, p, api.Refuse(http.StatusBadRequest, "marker [%s] not found", p.Marker)
		}
	}
	before, err := listOrder(call)
	if err != nil {
		return nil, p, err
	}
	var found []*Server
	for _, s := range candidates(nova, f) {
		if (marker == nil || before(marker, s) < 0) && f.finds(call, s) && (f.ip == nil || hasAddress(nova, s, f.ip)) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, before)
	return found[:min(p.Limit, len(found))], p, nil
}

// hasAddress says whether the server has an address in which the expression is found.
func hasAddress(nova *Nova, s *Server, ip *regexp.Regexp) bool {
	for _, views := range addresses(nova, s) {
		for _, view := range views {
			if address, _ := view["addr"].(string); ip.MatchString(address) {
				return true
			}
		}
	}
	return false
}

// sortKeys are what servers can be sorted by, as Nova lists them. What it does not sort by in spite
// of that is the same for all here.
var sortKeys = []string{
	"access_ip_v4", "access_ip_v6", "auto_disk_config", "availability_zone", "config_drive", "created_at", "display_description", "display_name", "host",
	"hostname", "image_ref", "instance_type_id", "kernel_id", "key_name", "launch_index", "launched_at", "locked_by", "node", "power_state", "progress",
	"project_id", "ramdisk_id", "root_device_name", "task_state", "terminated_at", "updated_at", "user_id", "uuid", "vm_state", "architecture",
	"cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted", "deleted_at", "disable_terminate", "ephemeral_gb",
	"ephemeral_key_uuid", "id", "key_data", "launched_on", "locked", "memory_mb", "os_type", "reservation_id", "root_gb", "shutdown_terminate",
	"user_data", "vcpus", "vm_mode",
}

type serverOrder func(a, b *Server) int

// listOrder is the order in which Nova lists servers: the newest first, and by id those of one
// second, unless the query has another one.
func listOrder(call *api.Call) (serverOrder, error) {
	var order []serverOrder
	directions := call.Query["sort_dir"]
	for n, name := range call.Query["sort_key"] {
		if !slices.Contains(sortKeys, name) {
			quoted := "['" + strings.Join(sortKeys, "', '") + "']"
			return nil, api.Refuse(http.StatusBadRequest, "Invalid input for query parameters sort_key. Value: %s. '%s' is not one of %s", name, name, quoted)
		}
		order = append(order, directed(byKey(name), n < len(directions) && directions[n] == "asc"))
	}
	if len(order) == 0 {
		order = []serverOrder{directed(byKey("created_at"), false)}
	}
	return func(a, b *Server) int {
		for _, one := range order {
			if first := one(a, b); first != 0 {
				return first
			}
		}
		return cmp.Compare(a.ID, b.ID)
	}, nil
}

func byKey(name string) serverOrder {
	switch name {
	case "uuid":
		return func(a, b *Server) int { return cmp.Compare(a.ID, b.ID) }
	case "display_name":
		return func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) }
	case "created_at":
		return func(a, b *Server) int { return cmp.Compare(a.Created.Unix(), b.Created.Unix()) }
	case "updated_at":
		return func(a, b *Server) int { return cmp.Compare(a.Updated.Unix(), b.Updated.Unix()) }
	}
	return func(*Server, *Server) int { return 0 }
}

func directed(order serverOrder, up bool) serverOrder {
	if up {
		return order
	}
	return func(a, b *Server) int { return order(b, a) }
}

// listServers implements GET /servers and GET /servers/detail.
func listServers(nova *Nova, call *api.Call) (api.Reply, error) {
	found, p, err := serverPage(nova, call)
	if err != nil {
		return api.Reply{}, err
	}
	detail := listRule(call) == "detail"
	views := make([]api.Object, 0, len(found))
	for _, s := range found {
		if detail {
			views = append(views, serverView(nova, call, s, false))
			continue
		}
		views = append(views, s.brief(call))
	}
	body := api.Object{"servers": views}
	p.Link(call, body, "servers", views)
	return api.OK(body)
}
