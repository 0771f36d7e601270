package openstacksim

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

// page is a part of a list of Nova.
type page struct {
	limit  int
	marker string
}

var digits = regexp.MustCompile(`^[0-9]*$`)

// novaPage reads which part a request asks for.
func novaPage(t *turn) (page, error) {
	p := page{limit: maxPage, marker: t.query.Get("marker")}
	given := t.query.Get("limit")
	if !digits.MatchString(given) {
		return page{}, refuse(http.StatusBadRequest,
			"Invalid input for query parameters limit. Value: %s. '%s' does not match '^[0-9]*$'", given, given)
	}
	if n, err := strconv.Atoi(given); given != "" && err == nil && n < maxPage {
		p.limit = n
	}
	return p, nil
}

// link adds the link to the next page when this one is full.
func (p page) link(t *turn, body object, collection string, views []object) {
	if len(views) == 0 || len(views) < p.limit {
		return
	}
	last, _ := views[len(views)-1]["id"].(string)
	body[collection+"_links"] = []object{{"rel": "next", "href": t.base() + t.request.URL.Path + "?" + novaQuery(t.query, last)}}
}

// novaQuery is the query with another marker: in the place of the one before, or at the end.
func novaQuery(query url.Values, marker string) string {
	if !query.Has("marker") {
		return strings.TrimPrefix(query.Encode()+"&marker="+url.QueryEscape(marker), "&")
	}
	rest := maps.Clone(query)
	rest.Set("marker", marker)
	return rest.Encode()
}

// literal returns the one text that an expression of Nova's finds; false where it finds others too.
// Nova escapes every |, so that there are no alternatives.
func literal(expression string) (string, bool) {
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
