package apicases_test

import "net/http"

func listCases() []apiCase {
	return []apiCase{
		{name: "list: servers by tags", do: listByTags},
		{name: "list: pages of servers", do: pagesOfServers},
		{name: "list: filters of servers", do: filters},
		{name: "list: filters that a member's request cannot have", do: ignoredFilters},
	}
}

// three makes servers named a, b and c, whose tags the first names; the list of it is ordered by
// their names.
func (r *run) three() string {
	r.Helper()
	tag := r.unique("three")
	for _, name := range []string{"a", "b", "c"} {
		r.boot(name, r.vm(name, object{"tags": list{tag, r.unique("of-" + name)}}), quiet())
	}
	for _, name := range []string{"a", "b", "c"} {
		r.settle(r.names.value(name), "ACTIVE")
	}
	return tag
}

// byName are the names that a list has, in their order.
var byName = only("servers.name", "servers_links.rel")

func listByTags(r *run) {
	all := r.three()
	a, b := r.unique("of-a"), r.unique("of-b")
	for _, filter := range [][]string{
		{"tags", all, "tags-any", a + "," + b}, {"tags", all, "tags-any", a}, {"tags", all, "tags-any", "nobody"}, {"tags", all + "," + a},
		{"tags", all, "tags", b}, {"tags", all, "not-tags", a}, {"tags", all, "not-tags-any", a + "," + b}, {"tags-any", a + "," + b}, {"tags", ""}, {"tags", all, "tags-any", ""},
	} {
		r.call(http.MethodGet, compute, "/servers"+query(append(filter, "sort_key", "display_name", "sort_dir", "asc")...), nil, byName)
	}
	r.note("what is in a list without detail")
	r.call(http.MethodGet, compute, "/servers"+query("tags", a), nil)
}

func pagesOfServers(r *run) {
	tag := r.three()
	sorted := func(more ...string) string {
		return "/servers" + query(append([]string{"tags", tag, "sort_key", "display_name", "sort_dir", "asc"}, more...)...)
	}
	paged := only("servers.name", "servers_links")
	r.call(http.MethodGet, compute, sorted("limit", "2"), nil, paged)
	r.call(http.MethodGet, compute, sorted("limit", "2", "marker", r.names.value("b")), nil, paged)
	r.call(http.MethodGet, compute, sorted("limit", "1", "marker", r.names.value("b")), nil, paged)
	r.call(http.MethodGet, compute, sorted("limit", "1", "marker", r.names.value("c")), nil, paged)
	r.call(http.MethodGet, compute, sorted("limit", "3"), nil, paged)
	r.call(http.MethodGet, compute, sorted("limit", "1001"), nil, paged)
	r.call(http.MethodGet, compute, sorted("limit", "0"), nil, paged)
	r.call(http.MethodGet, compute, "/servers/detail"+query("tags", tag, "limit", "1", "sort_key", "display_name", "sort_dir", "asc"), nil, paged)
	r.call(http.MethodGet, compute, "/servers?limit=-1", nil)
	r.call(http.MethodGet, compute, "/servers?limit=x", nil)
	r.call(http.MethodGet, compute, "/servers?marker="+unknown, nil)
	r.note("a page that begins after a server that was deleted meanwhile")
	r.call(http.MethodDelete, compute, "/servers/"+r.names.value("b"), nil, quiet())
	r.gone(r.names.value("b"))
	r.call(http.MethodGet, compute, sorted("limit", "2", "marker", r.names.value("b")), nil, paged)
}

func filters(r *run) {
	tag := r.three()
	a := r.unique("a")
	for _, filter := range [][]string{
		{"name", a}, {"name", "^" + a}, {"name", a + "$"}, {"name", "^[ab]-"}, {"name", "("}, {"name", "*"}, {"status", "ACTIVE"}, {"status", "active"},
		{"status", "ERROR"}, {"status", "ACTIVE", "status", "ERROR"}, {"status", "NONSENSE"}, {"ip", "192.0.2"}, {"sort_key", "nonsense"},
	} {
		r.call(http.MethodGet, compute, "/servers"+query(append(filter, "tags", tag, "sort_key", "display_name", "sort_dir", "asc")...), nil, byName)
	}
	r.note("a single list of bad filters")
	r.call(http.MethodGet, compute, "/servers?name=(", nil)
	r.call(http.MethodGet, compute, "/servers?status=NONSENSE", nil)
}

func ignoredFilters(r *run) {
	tag := r.three()
	for _, filter := range [][]string{
		{"description", "nobody's"}, {"uuid", unknown}, {"metadata", `{"a":"b"}`}, {"user_id", "nobody"}, {"project_id", "nowhere"}, {"host", "nowhere"},
		{"nonsense", "1"}, {"deleted", "true"}, {"all_tenants", "1"},
	} {
		r.call(http.MethodGet, compute, "/servers"+query(append(filter, "tags", tag, "sort_key", "display_name", "sort_dir", "asc")...), nil, byName)
	}
}
