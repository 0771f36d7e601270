package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// The longest other texts that Nova takes, in characters, and the most tags and metadata.
const (
	maxTag      = 60
	maxTags     = 50
	maxUserData = 65535
	maxMetadata = 128
)

var (
	tagForm         = regexp.MustCompile(`^[^,/]*$`)
	metadataKeyForm = regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)
)

// checkServer holds a server that is asked for against Nova's schema.
func checkServer(call *api.Call, r *serverRequest, whole json.RawMessage) error {
	for _, name := range []string{"name", "flavorRef", "networks"} {
		if _, given := r.raw[name]; !given && (name != "networks" || call.Version >= networksRequired) {
			return api.Invalid("server", api.Pythonic(whole), "'"+name+"' is a required property")
		}
	}
	for _, name := range api.KeysInOrder(whole) {
		if since, known := serverAttributes[name]; !known || call.Version < since {
			return api.Invalid("server", api.Pythonic(whole), fmt.Sprintf("Additional properties are not allowed ('%s' was unexpected)", name))
		}
	}
	if err := checkServerTexts(r); err != nil {
		return err
	}
	if err := checkTags(r.raw["tags"]); err != nil {
		return err
	}
	return checkMetadata(r.raw["metadata"])
}

func checkServerTexts(r *serverRequest) error {
	name, isText := api.TextOf(r.raw["name"])
	if !isText {
		return api.Invalid("name", api.Pythonic(r.raw["name"]), api.Pythonic(r.raw["name"])+" is not of type 'string'")
	}
	if err := checkLength("name", name, api.MaxText); err != nil {
		return err
	}
	if strings.TrimSpace(name) != name {
		return api.Refuse(http.StatusBadRequest, "An invalid 'name' value was provided. The name must be: printable characters. "+
			"Can not start or end with whitespace.")
	}
	if description, given := api.TextOf(r.raw["description"]); given && utf8.RuneCountInString(description) > api.MaxText {
		return api.Invalid("description", description, "'"+description+"' is too long")
	}
	if data, given := api.TextOf(r.raw["user_data"]); given && !isBase64(data) {
		return api.Invalid("user_data", data, "'"+data+"' is not a 'base64'")
	}
	if data, given := api.TextOf(r.raw["user_data"]); given && len(data) > maxUserData {
		return api.Invalid("user_data", data, "'"+data+"' is too long")
	}
	if id, given := api.TextOf(r.raw["imageRef"]); given && id != "" && !state.IsUUID(id) {
		return api.Invalid("imageRef", id, "'"+id+"' is not valid under any of the given schemas")
	}
	return nil
}

// isBase64 says whether Nova can decode a text. It passes over all characters that base64 does not
// have.
func isBase64(text string) bool {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	have, padding := 0, 0
	for _, r := range text {
		switch {
		case r == '=':
			if padding++; have >= 2 && have+padding >= 4 {
				return true
			}
		case strings.ContainsRune(alphabet, r):
			have, padding = (have+1)%4, 0
		}
	}
	return have == 0
}

func checkLength(field, text string, most int) error {
	if text == "" {
		return api.Invalid(field, text, "'' is too short")
	}
	if utf8.RuneCountInString(text) > most {
		return api.Invalid(field, text, "'"+text+"' is too long")
	}
	return nil
}

func checkTags(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var tags []json.RawMessage
	if err := json.Unmarshal(raw, &tags); err != nil {
		return api.Invalid("tags", api.Pythonic(raw), api.Pythonic(raw)+" is not of type 'array'")
	}
	if len(tags) > maxTags {
		return api.Invalid("tags", api.Pythonic(raw), api.Pythonic(raw)+" is too long")
	}
	for i, one := range tags {
		tag, isText := api.TextOf(one)
		if !isText {
			return api.Invalid(fmt.Sprint(i), api.Pythonic(one), api.Pythonic(one)+" is not of type 'string'")
		}
		if err := checkLength(fmt.Sprint(i), tag, maxTag); err != nil {
			return err
		}
		if !tagForm.MatchString(tag) {
			return api.Invalid(fmt.Sprint(i), tag, "'"+tag+"' does not match '^[^,/]*$'")
		}
	}
	return nil
}

func checkMetadata(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(raw, &metadata); err != nil {
		return api.Invalid("metadata", api.Pythonic(raw), api.Pythonic(raw)+" is not of type 'object'")
	}
	for _, name := range api.KeysInOrder(raw) {
		if !metadataKeyForm.MatchString(name) {
			return api.Invalid("metadata", api.Pythonic(raw), "'"+name+"' does not match any of the regexes: '^[a-zA-Z0-9-_:. ]{1,255}$'")
		}
		value, isText := api.TextOf(metadata[name])
		if !isText {
			return api.Invalid(name, api.Pythonic(metadata[name]), api.Pythonic(metadata[name])+" is not of type 'string'")
		}
		if utf8.RuneCountInString(value) > api.MaxText {
			return api.Invalid(name, value, "'"+value+"' is too long")
		}
	}
	if len(metadata) > maxMetadata {
		return api.Refuse(http.StatusForbidden, "Maximum number of metadata items exceeds %d", maxMetadata)
	}
	return nil
}
