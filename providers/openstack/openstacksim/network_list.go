package openstacksim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// The attributes by which things of Neutron are found.
const (
	byDescription = "description"
	byMAC         = "mac_address"
	byDevice      = "device_id"
	byDeviceOwner = "device_owner"
	byNetwork     = "network_id"
	byPort        = "port_id"
)

// collection is a kind of things of Neutron, as lists of it work.
type collection[T resource] struct {
	one, many string
	inventory func(*Cloud) *inventory[T]
	// filters are the attributes that a list can be narrowed by; the indexed ones among them are
	// keys of the inventory.
	filters, indexed []string
	// sortable are those that it can be sorted by, beside those that everything can.
	sortable []string
	visible  func(*turn, T) bool
	view     func(*Cloud, *turn, T) object
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
func (k collection[T]) list(c *Cloud, t *turn) (reply, error) {
	wishes, err := k.wishes(t)
	if err != nil {
		return reply{}, err
	}
	p, err := neutronPage(t)
	if err != nil {
		return reply{}, err
	}
	found := []object{}
	for _, item := range k.candidates(c, wishes) {
		if !k.visible(t, item) || item.base().Seq > t.Horizon() {
			continue
		}
		if view := k.view(c, t, item); fulfils(view, wishes) {
			found = append(found, view)
		}
	}
	if err := k.sort(t, found); err != nil {
		return reply{}, err
	}
	if _, there := k.inventory(c).byID[p.marker]; !there && p.marker != "" {
		return reply{}, k.missing(p.marker)
	}
	found = p.cut(found)
	body := object{}
	p.link(t, body, k.many, found)
	for n := range found {
		found[n] = selected(found[n], t.query["fields"])
	}
	body[k.many] = found
	return ok(body)
}

// wishes returns what the query narrows the list by. Empty values are none.
func (k collection[T]) wishes(t *turn) (map[string][]string, error) {
	wishes := map[string][]string{}
	var unknown []string
	for name, values := range t.query {
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
	if macs, wished := wishes[byMAC]; wished {
		for n, mac := range macs {
			macs[n] = strings.ToLower(mac)
		}
	}
	return wishes, nil
}

func (k collection[T]) candidates(c *Cloud, wishes map[string][]string) []T {
	inventory := k.inventory(c)
	if ids, wished := wishes["id"]; wished {
		var found []T
		for _, id := range ids {
			if item, there := inventory.byID[id]; there {
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
	return inventory.narrowed(narrow)
}

// fulfils says whether a thing has one of the values that are wished of each attribute.
func fulfils(view object, wishes map[string][]string) bool {
	for name, values := range wishes {
		if !fulfilsOne(view, name, values) {
			return false
		}
	}
	return true
}

func fulfilsOne(view object, name string, values []string) bool {
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
		return slices.ContainsFunc(values, func(v string) bool { return isTrue(v) == got })
	case nil:
		return false
	default:
		return slices.Contains(values, fmt.Sprint(got))
	}
}

func isTrue(v string) bool { return strings.EqualFold(v, "true") || v == "1" }

func hasFixedIP(view object, wish string) bool {
	attribute, value, _ := strings.Cut(wish, "=")
	ips, _ := view["fixed_ips"].([]object)
	return slices.ContainsFunc(ips, func(ip object) bool { return ip[attribute] == value })
}

func fulfilsTags(view object, name string, values []string) bool {
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
func (k collection[T]) sort(t *turn, views []object) error {
	keys, directions := t.query["sort_key"], t.query["sort_dir"]
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
func selected(view object, fields []string) object {
	if len(fields) == 0 {
		return view
	}
	some := object{}
	for _, name := range fields {
		if value, there := view[name]; there {
			some[name] = value
		}
	}
	return some
}

// get implements GET of one thing.
func (k collection[T]) get(c *Cloud, t *turn) (reply, error) {
	item, err := k.find(c, t, t.path("id"))
	if err != nil {
		return reply{}, err
	}
	return ok(object{k.one: selected(k.view(c, t, item), t.query["fields"])})
}

func (k collection[T]) find(c *Cloud, t *turn, id string) (T, error) {
	item, there := k.inventory(c).byID[id]
	if !there || !k.visible(t, item) {
		var none T
		return none, k.missing(id)
	}
	return item, nil
}

// portion is a part of a list of Neutron; limit is 0 for all.
type portion struct {
	limit   int
	marker  string
	reverse bool
}

func neutronPage(t *turn) (portion, error) {
	given := t.query.Get("limit")
	if given == "" {
		return portion{}, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 0 {
		return portion{}, refuseAs(http.StatusBadRequest, "BadRequest", "Bad limit request: Limit must be an integer 0 or greater and not '%s'.", given)
	}
	if n == 0 {
		return portion{}, nil // a marker without a limit counts for nothing
	}
	return portion{limit: n, marker: t.query.Get("marker"), reverse: isTrue(t.query.Get("page_reverse"))}, nil
}

// cut returns the part of what was found. Where the marker is not among that, the part begins at
// the beginning.
func (p portion) cut(found []object) []object {
	if p.limit == 0 {
		return found
	}
	at := slices.IndexFunc(found, func(view object) bool { return view["id"] == p.marker })
	if p.reverse {
		if at >= 0 {
			found = found[:at]
		}
		return found[max(0, len(found)-p.limit):]
	}
	found = found[at+1:]
	return found[:min(p.limit, len(found))]
}

func (p portion) link(t *turn, body object, many string, found []object) {
	if p.limit == 0 {
		return
	}
	links := []object{}
	href := t.base() + t.request.URL.Path + "?"
	if len(found) >= p.limit || p.reverse {
		links = append(links, object{"rel": "next", "href": href + p.query(t, found, len(found)-1)})
	}
	if len(found) >= p.limit || !p.reverse {
		links = append(links, object{"rel": "previous", "href": href + p.query(t, found, 0) + "&page_reverse=True"})
	}
	body[many+"_links"] = links
}

// query is that of the part that follows the n-th of those that were found.
func (portion) query(t *turn, found []object, n int) string {
	var rest []string
	for part := range strings.SplitSeq(t.request.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		value, err := url.QueryUnescape(value)
		if name != "marker" && name != "page_reverse" && err == nil {
			rest = append(rest, name+"="+url.QueryEscape(value))
		}
	}
	if n >= 0 && n < len(found) {
		rest = append(rest, "marker="+url.QueryEscape(fmt.Sprint(found[n]["id"])))
	}
	return strings.Join(rest, "&")
}
