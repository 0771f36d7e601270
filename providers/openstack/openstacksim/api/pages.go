package api

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// maxPage is the most that Nova and Cinder list at once.
const maxPage = 1000

// Page is a part of a list of Nova or Cinder.
type Page struct {
	// Limit is how many the part has at most; Marker is the id of what it follows, empty for the
	// first part.
	Limit  int
	Marker string
}

var digits = regexp.MustCompile(`^[0-9]*$`)

// ReadPage reads which part a request asks for.
func ReadPage(call *Call) (Page, error) {
	p := Page{Limit: maxPage, Marker: call.Query.Get("marker")}
	given := call.Query.Get("limit")
	if !digits.MatchString(given) {
		return Page{}, Refuse(http.StatusBadRequest,
			"Invalid input for query parameters limit. Value: %s. '%s' does not match '^[0-9]*$'", given, given)
	}
	if n, err := strconv.Atoi(given); given != "" && err == nil && n < maxPage {
		p.Limit = n
	}
	return p, nil
}

// Link adds the link to the next page when this one is full.
func (p Page) Link(call *Call, body Object, collection string, views []Object) {
	if len(views) == 0 || len(views) < p.Limit {
		return
	}
	last, _ := views[len(views)-1]["id"].(string)
	body[collection+"_links"] = []Object{{"rel": "next", "href": call.Base() + call.Request.URL.Path + "?" + queryAfter(call.Query, last)}}
}

// queryAfter is the query with another marker: in the place of the one before, or at the end.
func queryAfter(query url.Values, marker string) string {
	if !query.Has("marker") {
		return strings.TrimPrefix(query.Encode()+"&marker="+url.QueryEscape(marker), "&")
	}
	rest := maps.Clone(query)
	rest.Set("marker", marker)
	return rest.Encode()
}
