package compute

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
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
	"build": VMBuilding, "active": VMActive, "shutoff": VMStopped, "error": VMError, "deleted": VMDeleted, "paused": VMPaused,
	"suspended": VMSuspended, "rescue": VMRescued, "shelved_offloaded": VMShelved, "verify_resize": VMResized,
	// These are known, and here no server is ever in one of them.
	"reboot": "", "hard_reboot": "", "password": "", "rebuild": "", "migrating": "", "resize": "", "revert_resize": "",
	"soft_deleted": "", "shelved": "",
}

// readServerFilter reads a query. What Nova does not know, or does not let members ask for, it
// passes over in silence.
func readServerFilter(call *api.Call) (*serverFilter, error) {
	f := &serverFilter{until: call.Horizon(), image: call.Query.Get("image"), flavor: call.Query.Get("flavor")}
	if names := call.Query["name"]; len(names) > 0 && names[len(names)-1] != "" {
		if err := f.byName(names[len(names)-1]); err != nil {
			return nil, err
		}
	}
	if err := f.byStatus(call); err != nil {
		return nil, err
	}
	if err := f.byAddress(call); err != nil {
		return nil, err
	}
	if err := f.byTags(call); err != nil {
		return nil, err
	}
	if err := f.byTime(call); err != nil {
		return nil, err
	}
	if all := call.Query.Get("all_tenants"); call.Query.Has("all_tenants") && all != "0" && !strings.EqualFold(all, "false") {
		if !call.Admin() {
			return nil, api.Refuse(http.StatusForbidden, "Policy doesn't allow os_compute_api:servers:%s:get_all_tenants to be performed.", listRule(call))
		}
		f.everybody = true
	}
	return f, nil
}

func (f *serverFilter) byAddress(call *api.Call) error {
	ip := call.Query.Get("ip")
	if ip == "" {
		return nil
	}
	var err error
	if f.ip, err = regexp.Compile(ip); err != nil {
		return api.Refuse(http.StatusBadRequest, "Invalid input for query parameters ip. Value: %s. '%s' is not a 'regex'", ip, ip)
	}
	return nil
}

func (f *serverFilter) byTags(call *api.Call) error {
	if call.Version < serverTags {
		return nil
	}
	var err error
	for name, into := range map[string]*[]string{"tags": &f.tags, "tags-any": &f.anyTag, "not-tags": &f.notTags, "not-tags-any": &f.notAny} {
		if *into, err = tagsOf(call, name); err != nil {
			return err
		}
	}
	return nil
}

func (f *serverFilter) byTime(call *api.Call) error {
	since := call.Query.Get("changes-since")
	if since == "" {
		return nil
	}
	var err error
	if f.since, err = parseTime(since); err != nil {
		return api.Refuse(http.StatusBadRequest, "Invalid input for query parameters changes-since. Value: %s. '%s' is not a 'date-time'", since, since)
	}
	return nil
}

func listRule(call *api.Call) string {
	if strings.HasSuffix(call.Request.URL.Path, "/detail") {
		return "detail"
	}
	return "index"
}

func (f *serverFilter) byName(name string) error {
	if f.exact, f.isExact = Literal(name); f.isExact {
		f.exact = strings.ToLower(f.exact)
		return nil
	}
	// Nova escapes each |, and its data base does not tell capitals apart.
	found, err := regexp.Compile("(?i)" + strings.ReplaceAll(name, "|", `\|`))
	if err != nil {
		return api.Refuse(http.StatusBadRequest, "Invalid input for query parameters name. Value: %s. '%s' is not a 'regex'", name, name)
	}
	f.name = found
	return nil
}

func (f *serverFilter) byStatus(call *api.Call) error {
	if !call.Query.Has("status") {
		return nil
	}
	f.states = []string{}
	known := false
	for _, status := range call.Query["status"] {
		state, is := statuses[strings.ToLower(status)]
		known = known || is
		if state != "" {
			f.states = append(f.states, state)
		}
	}
	if !known && call.Version >= statusChecked {
		return api.Refuse(http.StatusBadRequest, "Invalid status value")
	}
	if slices.Equal(f.states, []string{VMDeleted}) && !call.Admin() {
		return api.Refuse(http.StatusForbidden, "Only administrators may list deleted instances")
	}
	return nil
}

func tagsOf(call *api.Call, name string) ([]string, error) {
	var tags []string
	for _, value := range call.Query[name] {
		if value == "" {
			return nil, api.Refuse(http.StatusBadRequest, "Invalid input for query parameters %s. Value: . '' is not a 'regex'", name)
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

func (f *serverFilter) finds(call *api.Call, s *Server) bool {
	if s.Project != call.Project() && !f.everybody || s.Seq > f.until {
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

// Literal returns the one text that an expression of Nova's finds; false where it finds others too.
// Nova escapes every |, so that there are no alternatives.
func Literal(expression string) (string, bool) {
	inner, begins := strings.CutPrefix(expression, "^")
	inner, ends := strings.CutSuffix(inner, "$")
	if !begins || !ends {
		return "", false
	}
	var plain strings.Builder
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '\\' && i+1 < len(inner) && strings.IndexByte(meta, inner[i+1]) >= 0:
			i++
		case inner[i] != '|' && strings.IndexByte(meta, inner[i]) >= 0 && inner[i] != '-':
			return "", false
		}
		plain.WriteByte(inner[i])
	}
	return plain.String(), true
}

// meta are the characters that an expression escapes to have them for themselves.
const meta = `\.+*?()|[]{}^$-`
