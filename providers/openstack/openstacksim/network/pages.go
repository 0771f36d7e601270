package network

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
)

// portion is a part of a list of Neutron; limit is 0 for all.
type portion struct {
	limit   int
	marker  string
	reverse bool
}

func neutronPage(call *api.Call) (portion, error) {
	given := call.Query.Get("limit")
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
	return portion{limit: n, marker: call.Query.Get("marker"), reverse: api.IsTrue(call.Query.Get("page_reverse"))}, nil
}

// cut returns the part of what was found. Where the marker is not among that, the part begins at
// the beginning.
func (p portion) cut(found []api.Object) []api.Object {
	if p.limit == 0 {
		return found
	}
	at := slices.IndexFunc(found, func(view api.Object) bool { return view["id"] == p.marker })
	if p.reverse {
		if at >= 0 {
			found = found[:at]
		}
		return found[max(0, len(found)-p.limit):]
	}
	found = found[at+1:]
	return found[:min(p.limit, len(found))]
}

func (p portion) link(call *api.Call, body api.Object, many string, found []api.Object) {
	if p.limit == 0 {
		return
	}
	links := []api.Object{}
	href := call.Base() + call.Request.URL.Path + "?"
	if len(found) >= p.limit || p.reverse {
		links = append(links, api.Object{"rel": "next", "href": href + p.query(call, found, len(found)-1)})
	}
	if len(found) >= p.limit || !p.reverse {
		links = append(links, api.Object{"rel": "previous", "href": href + p.query(call, found, 0) + "&page_reverse=True"})
	}
	body[many+"_links"] = links
}

// query is that of the part that follows the n-th of those that were found.
func (portion) query(call *api.Call, found []api.Object, n int) string {
	var rest []string
	for part := range strings.SplitSeq(call.Request.URL.RawQuery, "&") {
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
