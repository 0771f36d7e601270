package apicases_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

func refusedServerCases() []apiCase {
	return []apiCase{
		{name: "refused server: things that there are not", do: unknownThings},
		{name: "refused server: things that cannot be", do: malformedThings},
		{name: "refused server: user data", do: refusedUserData},
		{name: "refused server: tags", do: refusedTags},
		{name: "refused server: metadata", do: refusedMetadata},
		{name: "refused server: name and description", do: refusedNames},
	}
}

// try asks for a server that may be refused.
func (r *run) try(more object, options ...option) answer {
	r.Helper()
	a := r.call(http.MethodPost, compute, "/servers", r.vm("vm", more), options...)
	if a.status == http.StatusAccepted {
		r.owns(compute, "/servers/"+a.text("server.id"))
	}
	return a
}

func unknownThings(r *run) {
	r.try(object{"flavorRef": unknown})
	r.try(object{"flavorRef": "nonsense"})
	r.try(object{"imageRef": unknown})
	r.try(object{"imageRef": nil})
	r.try(object{"networks": list{object{"uuid": unknown}}})
	r.try(object{"networks": list{object{"port": unknown}}})
	r.try(object{"networks": list{object{"uuid": r.home()}}, "security_groups": list{object{"name": "nothing"}}})
	r.try(object{"networks": list{object{"uuid": r.home()}}, "security_groups": list{object{"name": unknown}}})
	r.try(object{"availability_zone": "nowhere"})
	r.try(object{"key_name": "nothing"})
	group := r.vm("vm", nil)
	group["os:scheduler_hints"] = object{"group": unknown}
	r.call(http.MethodPost, compute, "/servers", group)
	r.note("a network of another project")
	others, _ := pick(r.call(http.MethodGet, network, "/networks?name="+stranger+"-net", nil, as(stranger), quiet()).body, "networks.id").(list)
	r.name("network of others", others[0].(string))
	r.try(object{"networks": list{object{"uuid": others[0]}}})
}

func malformedThings(r *run) {
	r.try(object{"imageRef": "nonsense"})
	r.try(object{"networks": list{object{"uuid": "nonsense"}}})
	r.try(object{"networks": list{object{"port": "nonsense"}}})
	r.try(object{"networks": "nonsense"})
	r.try(object{"nonsense": 1})
	group := r.vm("vm", nil)
	group["os:scheduler_hints"] = object{"group": "a name"}
	r.call(http.MethodPost, compute, "/servers", group)
	r.call(http.MethodPost, compute, "/servers", object{"nonsense": 1})
	r.try(object{"flavorRef": r.flavor("m1.nodisk")})
}

func refusedUserData(r *run) {
	r.try(object{"user_data": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 49149)))}, only("server.*"))
	data := strings.Repeat("secret", 10923)
	a := r.try(object{"user_data": data})
	r.note("the answer repeats it: %d times", strings.Count(string(a.raw), data))
	a = r.try(object{"user_data": "my-secret", "nonsense": 1})
	r.note("the answer to another mistake repeats it: %t", strings.Contains(string(a.raw), "my-secret"))
}

func refusedTags(r *run) {
	tags := func(n int) list {
		var tags list
		for i := range n {
			tags = append(tags, fmt.Sprintf("t%d", i))
		}
		return tags
	}
	r.try(object{"tags": tags(50)}, only("server.*"))
	r.try(object{"tags": tags(51)})
	r.try(object{"tags": list{strings.Repeat("t", 60)}}, only("server.*"))
	for _, tag := range []string{strings.Repeat("t", 61), "a,b", "a/b", ""} {
		r.try(object{"tags": list{tag}})
	}
}

func refusedMetadata(r *run) {
	items := func(n int) object {
		items := object{}
		for i := range n {
			items[fmt.Sprintf("k%d", i)] = "v"
		}
		return items
	}
	r.try(object{"metadata": object{strings.Repeat("k", 255): strings.Repeat("v", 255)}}, only("server.*"))
	r.try(object{"metadata": object{"a": strings.Repeat("v", 256)}})
	r.try(object{"metadata": object{"a/b": "v"}})
	r.try(object{"metadata": object{"a": 1}})
	r.try(object{"metadata": items(128)}, only("server.*"))
	r.try(object{"metadata": items(129)})
}

func refusedNames(r *run) {
	r.try(object{"name": strings.Repeat("n", 255)}, only("server.*"))
	r.try(object{"name": "a/b"}, only("server.*"))
	for _, name := range []string{strings.Repeat("n", 256), "", " a"} {
		r.try(object{"name": name})
	}
	r.try(object{"description": strings.Repeat("d", 255)}, only("server.*"))
	r.try(object{"description": strings.Repeat("d", 256)})
}
