package network

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// attributes are those of one thing in a body of Neutron.
type attributes map[string]json.RawMessage

// readAttributes reads the body of a creation or an update. Attributes that are not known are
// refused.
func readAttributes(call *api.Call, one string, known []string) (attributes, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return nil, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Resource body required")
	}
	given := attributes{}
	if err := json.Unmarshal(body[one], &given); err != nil {
		return nil, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Unable to find '%s' in request body", one)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return nil, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Unrecognized attribute(s) '%s'", name)
		}
	}
	for _, name := range []string{"admin_state_up", "port_security_enabled", "shared", "router:external", "enable_dhcp"} {
		if text, isText := api.TextOf(given[name]); isText && !slices.Contains([]string{"true", "false", "0", "1"}, strings.ToLower(text)) {
			return nil, refuseAs(http.StatusBadRequest, "InvalidInput", "Invalid input for operation: '%s' cannot be converted to boolean.", text)
		}
	}
	for _, name := range []string{"name", "description"} {
		if text := given.text(name); utf8.RuneCountInString(text) > api.MaxText {
			return nil, refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for %s. Reason: '%s' exceeds maximum length of 255.", name, text)
		}
	}
	return given, nil
}

// has says whether an attribute is given, and is not null.
func (a attributes) has(name string) bool {
	raw, given := a[name]
	return given && string(raw) != "null"
}

// text returns a string; empty where there is none.
func (a attributes) text(name string) string {
	s, _ := api.TextOf(a[name])
	return s
}

// flag returns a boolean, or what it is where it is not given.
func (a attributes) flag(name string, otherwise bool) bool {
	if text, isText := api.TextOf(a[name]); isText {
		return api.IsTrue(text)
	}
	value := otherwise
	_ = json.Unmarshal(a[name], &value) // absent or of another form: otherwise
	return value
}

// read reads an attribute into something; absent is fine.
func (a attributes) read(name string, into any) error {
	if !a.has(name) {
		return nil
	}
	if err := json.Unmarshal(a[name], into); err != nil {
		return refuseAs(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for %s. Reason: '%s' is not of the right type.", name, api.Pythonic(a[name]))
	}
	return nil
}

// id returns the id of something else; one that cannot be an id is refused.
func (a attributes) id(name string) (string, error) {
	id := a.text(name)
	if a.has(name) && !state.IsUUID(id) {
		return "", notUUID(name, id)
	}
	return id, nil
}

// project is whose a new thing is: the caller's, unless an administrator says otherwise.
func (a attributes) project(call *api.Call) string {
	for _, name := range []string{"project_id", "tenant_id"} {
		if id := a.text(name); id != "" && call.Admin() {
			return id
		}
	}
	return call.Project()
}
