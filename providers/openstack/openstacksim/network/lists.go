package network

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// The attributes by which things of Neutron are found.
const (
	ByDescription = "description"
	ByMAC         = "mac_address"
	ByDevice      = "device_id"
	ByDeviceOwner = "device_owner"
	ByNetwork     = "network_id"
	ByPort        = "port_id"
)

// collection is a kind of things of Neutron, as lists of it work.
type collection[T state.Resource] struct {
	one, many string
	inventory func(*Neutron) *state.Inventory[T]
	// filters are the attributes that a list can be narrowed by; the indexed ones among them are
	// keys of the inventory.
	filters, indexed []string
	// sortable are those that it can be sorted by, beside those that everything can.
	sortable []string
	visible  func(*api.Call, T) bool
	view     func(*Neutron, *api.Call, T) api.Object
	// missing is what is said of a thing that is not there.
	missing func(id string) error
}

// usualFilters are those that everything of Neutron has.
var usualFilters = []string{
	"id", "name", "description", "tenant_id", "project_id", "tags", "tags-any", "not-tags", "not-tags-any", "revision_number", "created_at",
	"updated_at", "changed_since", "status",
}

// notFilters are the other parameters of a list.
var notFilters = []string{"limit", "marker", "page_reverse", "sort_key", "sort_dir", "fields"}

// list implements GET of a collection.
func (k collection[T]) list(neutron *Neutron, call *api.Call) (api.Reply, error) {
	wishes, err := k.wishes(call)
	if err != nil {
		return api.Reply{}, err
	}
	p, err := neutronPage(call)
	if err != nil {
		return api.Reply{}, err
	}
	found := []api.Object{}
	for _, item := range k.candidates(neutron, wishes) {
		if !k.visible(call, item) || item.Base().Seq > call.Horizon() {
			continue
		}
		if view := k.view(neutron, call, item); fulfils(view, wishes) {
			found = append(found, view)
		}
	}
	if err := k.sort(call, found); err != nil {
		return api.Reply{}, err
	}
	if _, there := k.inventory(neutron).ByID[p.marker]; !there && p.marker != "" {
		return api.Reply{}, k.missing(p.marker)
	}
	found = p.cut(found)
	body := api.Object{}
	p.link(call, body, k.many, found)
	for n := range found {
		found[n] = selected(found[n], call.Query["fields"])
	}
	body[k.many] = found
	return api.OK(body)
}

// wishes returns what the query narrows the list by. Empty values are none.
func (k collection[T]) wishes(call *api.Call) (map[string][]string, error) {
	wishes := map[string][]string{}
	var unknown []string
	for name, values := range call.Query {
		if slices.Contains(notFilters, name) {
			continue
		}
		if !slices.Contains(usualFilters, name) && !slices.Contains(k.filters, name) {
			unknown = append(unknown, "'"+name+"'")
			continue
		}
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
		if len(values) > 0 {
			wishes[name] = values
		}
	}
	if len(unknown) > 0 {
		return nil, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "[%s] is invalid attribute for filtering", strings.Join(unknown, ", "))
	}
	if macs, wished := wishes[ByMAC]; wished {
		for n, mac := range macs {
			macs[n] = strings.ToLower(mac)
		}
	}
	return wishes, nil
}

func (k collection[T]) candidates(neutron *Neutron, wishes map[string][]string) []T {
	inventory := k.inventory(neutron)
	if ids, wished := wishes["id"]; wished {
		var found []T
		for _, id := range ids {
			if item, there := inventory.ByID[id]; there {
				found = append(found, item)
			}
		}
		return found
	}
	narrow := map[string][]string{}
	for name, values := range wishes {
		if slices.Contains(k.indexed, name) {
			narrow[name] = values
		}
	}
	return inventory.Narrowed(narrow)
}

// fulfils says whether a thing has one of the values that are wished of each attribute.
func fulfils(view api.Object, wishes map[string][]string) bool {
	for name, values := range wishes {
		if !fulfilsOne(view, name, values) {
			return false
		}
	}
	return true
}

func fulfilsOne(view api.Object, name string, values []string) bool {
	switch name {
	case "changed_since":
		updated, _ := view["updated_at"].(string)
		return slices.ContainsFunc(values, func(v string) bool { return strings.TrimSuffix(updated, "Z") >= strings.TrimSuffix(v, "Z") })
	case "fixed_ips":
		return slices.ContainsFunc(values, func(v string) bool { return hasFixedIP(view, v) })
	case "tags", "tags-any", "not-tags", "not-tags-any":
		return fulfilsTags(view, name, values)
	}
	switch got := view[name].(type) {
	case []string:
		return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(got, v) })
	case bool:
		return slices.ContainsFunc(values, func(v string) bool { return api.IsTrue(v) == got })
	case nil:
		return false
	default:
		return slices.Contains(values, fmt.Sprint(got))
	}
}

func hasFixedIP(view api.Object, wish string) bool {
	attribute, value, _ := strings.Cut(wish, "=")
	ips, _ := view["fixed_ips"].([]api.Object)
	return slices.ContainsFunc(ips, func(ip api.Object) bool { return ip[attribute] == value })
}

func fulfilsTags(view api.Object, name string, values []string) bool {
	tags, _ := view["tags"].([]string)
	matched, wanted := 0, 0
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			wanted++
			if slices.Contains(tags, tag) {
				matched++
			}
		}
	}
	switch name {
	case "tags":
		return matched == wanted
	case "tags-any":
		return matched > 0
	case "not-tags":
		return matched < wanted
	default:
		return matched == 0
	}
}

// usuallySortable is what everything of Neutron can be sorted by.
var usuallySortable = []string{"id", "name", "status", "admin_state_up", "tenant_id", "project_id"}

// sort puts things into the order that the query asks for.
func (k collection[T]) sort(call *api.Call, views []api.Object) error {
	keys, directions := call.Query["sort_key"], call.Query["sort_dir"]
	if len(keys) != len(directions) {
		return refuseAs(http.StatusBadRequest, "HTTPBadRequest", "The number of sort_keys and sort_dirs must be same")
	}
	for _, name := range keys {
		if !slices.Contains(usuallySortable, name) && !slices.Contains(k.sortable, name) {
			return refuseAs(http.StatusBadRequest, "HTTPBadRequest", "['%s'] is invalid attribute for sort_keys", name)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	sort.SliceStable(views, func(a, b int) bool {
		for n, name := range keys {
			left, right := fmt.Sprint(views[a][name]), fmt.Sprint(views[b][name])
			if left != right {
				return (left < right) == (directions[n] == "asc")
			}
		}
		return false
	})
	return nil
}

// selected returns only the fields of a thing that are asked for, all where there are none.
func selected(view api.Object, fields []string) api.Object {
	if len(fields) == 0 {
		return view
	}
	some := api.Object{}
	for _, name := range fields {
		if value, there := view[name]; there {
			some[name] = value
		}
	}
	return some
}

// get implements GET of one thing.
func (k collection[T]) get(neutron *Neutron, call *api.Call) (api.Reply, error) {
	item, err := k.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, err
	}
	return api.OK(api.Object{k.one: selected(k.view(neutron, call, item), call.Query["fields"])})
}

func (k collection[T]) find(neutron *Neutron, call *api.Call, id string) (T, error) {
	item, there := k.inventory(neutron).ByID[id]
	if !there || !k.visible(call, item) {
		var none T
		return none, k.missing(id)
	}
	return item, nil
}

// replaceTags implements PUT of the tags of a thing.
func (k collection[T]) replaceTags(neutron *Neutron, call *api.Call) (api.Reply, error) {
	item, err := k.find(neutron, call, call.Path("id"))
	if err != nil {
		return api.Reply{}, refuseAs(http.StatusNotFound, "TagResourceNotFound", "Resource %s %s could not be found.", k.many, call.Path("id"))
	}
	var body struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return api.Reply{}, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid tags body")
	}
	record := item.Base()
	record.Tags, record.Updated = slices.Sorted(slices.Values(body.Tags)), testcloud.Now()
	k.inventory(neutron).Put(item)
	call.Changed(record.ID)
	return api.OK(api.Object{"tags": body.Tags})
}

// neutronView is what everything of Neutron shows.
func neutronView(r *state.Record, revision int) api.Object {
	return api.Object{
		"id": r.ID, "name": r.Name, "tenant_id": r.Project, "project_id": r.Project, "description": r.Description, "tags": append([]string{}, r.Tags...),
		"created_at": r.Created.Format(api.TimeForm), "updated_at": r.Updated.Format(api.TimeForm), "revision_number": revision,
	}
}
