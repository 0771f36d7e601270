package openstacksim

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// serverFilter is what a list of servers asks for.
type serverFilter struct {
	// name finds a text within; exact is the one that it finds, where that is so.
	name    *regexp.Regexp
	exact   string
	isExact bool
	states  []string
	// tags have to be there in full, anyTag in part; notTags must not be there in full, notAny not
	// in part.
	tags, anyTag, notTags, notAny []string
	image, flavor                 string
	ip                            *regexp.Regexp
	since                         time.Time
	everybody                     bool
	until                         int64
}

// statuses are the states of servers, in the words of Nova's status.
var statuses = map[string]string{
	"build": vmBuilding, "active": vmActive, "shutoff": vmStopped, "error": vmError, "deleted": vmDeleted, "paused": vmPaused,
	"suspended": vmSuspended, "rescue": vmRescued, "shelved_offloaded": vmShelved, "verify_resize": vmResized,
	// These are known, and here no server is ever in one of them.
	"reboot": "", "hard_reboot": "", "password": "", "rebuild": "", "migrating": "", "resize": "", "revert_resize": "",
	"soft_deleted": "", "shelved": "",
}

// readServerFilter reads a query. What Nova does not know, or does not let members ask for, it
// passes over in silence.
func readServerFilter(t *turn) (*serverFilter, error) {
	f := &serverFilter{until: t.Horizon(), image: t.query.Get("image"), flavor: t.query.Get("flavor")}
	if names := t.query["name"]; len(names) > 0 && names[len(names)-1] != "" {
		if err := f.byName(names[len(names)-1]); err != nil {
			return nil, err
		}
	}
	if err := f.byStatus(t); err != nil {
		return nil, err
	}
	if err := f.byAddress(t); err != nil {
		return nil, err
	}
	if err := f.byTags(t); err != nil {
		return nil, err
	}
	if err := f.byTime(t); err != nil {
		return nil, err
	}
	if all := t.query.Get("all_tenants"); t.query.Has("all_tenants") && all != "0" && !strings.EqualFold(all, "false") {
		if !t.admin() {
			return nil, refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:servers:%s:get_all_tenants to be performed.", listRule(t))
		}
		f.everybody = true
	}
	return f, nil
}

func (f *serverFilter) byAddress(t *turn) error {
	ip := t.query.Get("ip")
	if ip == "" {
		return nil
	}
	var err error
	if f.ip, err = regexp.Compile(ip); err != nil {
		return refuse(http.StatusBadRequest, "Invalid input for query parameters ip. Value: %s. '%s' is not a 'regex'", ip, ip)
	}
	return nil
}

func (f *serverFilter) byTags(t *turn) error {
	if t.version < serverTags {
		return nil
	}
	var err error
	for name, into := range map[string]*[]string{"tags": &f.tags, "tags-any": &f.anyTag, "not-tags": &f.notTags, "not-tags-any": &f.notAny} {
		if *into, err = tagsOf(t, name); err != nil {
			return err
		}
	}
	return nil
}

func (f *serverFilter) byTime(t *turn) error {
	since := t.query.Get("changes-since")
	if since == "" {
		return nil
	}
	var err error
	if f.since, err = parseTime(since); err != nil {
		return refuse(http.StatusBadRequest, "Invalid input for query parameters changes-since. Value: %s. '%s' is not a 'date-time'", since, since)
	}
	return nil
}

func listRule(t *turn) string {
	if strings.HasSuffix(t.request.URL.Path, "/detail") {
		return "detail"
	}
	return "index"
}

func (f *serverFilter) byName(name string) error {
	if f.exact, f.isExact = literal(name); f.isExact {
		f.exact = strings.ToLower(f.exact)
		return nil
	}
	// Nova escapes each |, and its data base does not tell capitals apart.
	found, err := regexp.Compile("(?i)" + strings.ReplaceAll(name, "|", `\|`))
	if err != nil {
		return refuse(http.StatusBadRequest, "Invalid input for query parameters name. Value: %s. '%s' is not a 'regex'", name, name)
	}
	f.name = found
	return nil
}

func (f *serverFilter) byStatus(t *turn) error {
	if !t.query.Has("status") {
		return nil
	}
	f.states = []string{}
	known := false
	for _, status := range t.query["status"] {
		state, is := statuses[strings.ToLower(status)]
		known = known || is
		if state != "" {
			f.states = append(f.states, state)
		}
	}
	if !known && t.version >= statusChecked {
		return refuse(http.StatusBadRequest, "Invalid status value")
	}
	if slices.Equal(f.states, []string{vmDeleted}) && !t.admin() {
		return refuse(http.StatusForbidden, "Only administrators may list deleted instances")
	}
	return nil
}

func tagsOf(t *turn, name string) ([]string, error) {
	var tags []string
	for _, value := range t.query[name] {
		if value == "" {
			return nil, refuse(http.StatusBadRequest, "Invalid input for query parameters %s. Value: . '' is not a 'regex'", name)
		}
		tags = append(tags, strings.Split(value, ",")...)
	}
	return tags, nil
}

// parseTime reads the forms of ISO 8601 that clients use.
func parseTime(s string) (time.Time, error) {
	var first error
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05", "2006-01-02"} {
		at, err := time.Parse(form, s)
		if err == nil {
			return at, nil
		}
		first = cmp.Or(first, err)
	}
	return time.Time{}, first
}

func (f *serverFilter) finds(t *turn, s *server) bool {
	if s.Project != t.project() && !f.everybody || s.Seq > f.until {
		return false
	}
	if !f.findsName(s.Name) {
		return false
	}
	if f.states != nil && !slices.Contains(f.states, s.VMState) || f.image != "" && s.Image != f.image || f.flavor != "" && s.Flavor.ID != f.flavor {
		return false
	}
	if !f.since.IsZero() && s.Updated.Before(f.since) {
		return false
	}
	return f.findsTags(s.Tags)
}

func (f *serverFilter) findsName(name string) bool {
	if f.isExact {
		return strings.ToLower(name) == f.exact
	}
	return f.name == nil || f.name.MatchString(name)
}

func (f *serverFilter) findsTags(tags []string) bool {
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	for _, tag := range f.tags {
		if !has(tag) {
			return false
		}
	}
	if len(f.anyTag) > 0 && !slices.ContainsFunc(f.anyTag, has) {
		return false
	}
	lacks := func(tag string) bool { return !has(tag) }
	return (len(f.notTags) == 0 || slices.ContainsFunc(f.notTags, lacks)) && !slices.ContainsFunc(f.notAny, has)
}

// candidates are a superset of what the filter finds.
func (c *Cloud) candidates(f *serverFilter) []*server {
	wishes := map[string][]string{}
	if f.isExact {
		wishes[byName] = []string{f.exact}
	}
	if len(f.anyTag) > 0 {
		wishes[byTag] = f.anyTag
	}
	for _, tag := range f.tags {
		if rarer, known := wishes[byTag]; !known || c.alive.count(byTag, tag) < c.alive.count(byTag, rarer...) {
			wishes[byTag] = []string{tag}
		}
	}
	found := c.alive.narrowed(wishes)
	if f.since.IsZero() {
		return found
	}
	found = slices.Clone(found)
	for n := len(c.buried) - 1; n >= 0 && !c.buried[n].Updated.Before(f.since); n-- {
		found = append(found, c.buried[n])
	}
	return found
}

// serverPage returns the servers that a request asks for, the newest first.
func (c *Cloud) serverPage(t *turn) ([]*server, page, error) {
	p, err := novaPage(t)
	if err != nil {
		return nil, p, err
	}
	f, err := readServerFilter(t)
	if err != nil {
		return nil, p, err
	}
	var marker *server
	if p.marker != "" {
		if marker = c.anyServer(p.marker); marker == nil || !t.sees(marker.Project) {
			return nil, p, refuse(http.StatusBadRequest, "marker [%s] not found", p.marker)
		}
	}
	before, err := listOrder(t)
	if err != nil {
		return nil, p, err
	}
	var found []*server
	for _, s := range c.candidates(f) {
		if (marker == nil || before(marker, s) < 0) && f.finds(t, s) && (f.ip == nil || c.hasAddress(s, f.ip)) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, before)
	return found[:min(p.limit, len(found))], p, nil
}

// hasAddress says whether the server has an address in which the expression is found.
func (c *Cloud) hasAddress(s *server, ip *regexp.Regexp) bool {
	for _, views := range c.addresses(s) {
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

type serverOrder func(a, b *server) int

// listOrder is the order in which Nova lists servers: the newest first, and by id those of one
// second, unless the query has another one.
func listOrder(t *turn) (serverOrder, error) {
	var order []serverOrder
	directions := t.query["sort_dir"]
	for n, name := range t.query["sort_key"] {
		if !slices.Contains(sortKeys, name) {
			quoted := "['" + strings.Join(sortKeys, "', '") + "']"
			return nil, refuse(http.StatusBadRequest, "Invalid input for query parameters sort_key. Value: %s. '%s' is not one of %s", name, name, quoted)
		}
		order = append(order, directed(byKey(name), n < len(directions) && directions[n] == "asc"))
	}
	if len(order) == 0 {
		order = []serverOrder{directed(byKey("created_at"), false)}
	}
	return func(a, b *server) int {
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
		return func(a, b *server) int { return cmp.Compare(a.ID, b.ID) }
	case "display_name":
		return func(a, b *server) int { return cmp.Compare(a.Name, b.Name) }
	case "created_at":
		return func(a, b *server) int { return cmp.Compare(a.Created.Unix(), b.Created.Unix()) }
	case "updated_at":
		return func(a, b *server) int { return cmp.Compare(a.Updated.Unix(), b.Updated.Unix()) }
	}
	return func(*server, *server) int { return 0 }
}

func directed(order serverOrder, up bool) serverOrder {
	if up {
		return order
	}
	return func(a, b *server) int { return order(b, a) }
}

// anyServer finds a server by its id, also one that is gone.
func (c *Cloud) anyServer(id string) *server {
	if s := c.alive.byID[id]; s != nil {
		return s
	}
	return c.gone[id]
}

// listServers implements GET /servers and GET /servers/detail.
func listServers(c *Cloud, t *turn) (reply, error) {
	found, p, err := c.serverPage(t)
	if err != nil {
		return reply{}, err
	}
	detail := listRule(t) == "detail"
	views := make([]object, 0, len(found))
	for _, s := range found {
		if detail {
			views = append(views, c.view(t, s, false))
			continue
		}
		views = append(views, s.brief(t))
	}
	body := object{"servers": views}
	p.link(t, body, "servers", views)
	return ok(body)
}
