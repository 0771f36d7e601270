package openstacksim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The longest texts that Nova takes, in characters, and the most tags and metadata.
const (
	maxText     = 255
	maxTag      = 60
	maxTags     = 50
	maxUserData = 65535
	maxMetadata = 128
)

var (
	tagForm         = regexp.MustCompile(`^[^,/]*$`)
	metadataKeyForm = regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)
)

// invalid is what Nova says of a value that its schema does not take. It repeats the value,
// whatever that is.
func invalid(field, value, why string) error {
	return refuse(http.StatusBadRequest, "Invalid input for field/attribute %s. Value: %s. %s", field, value, why)
}

// checkServer holds a server that is asked for against Nova's schema.
func checkServer(t *turn, r *serverRequest, whole json.RawMessage) error {
	for _, name := range []string{"name", "flavorRef", "networks"} {
		if _, given := r.raw[name]; !given && (name != "networks" || t.version >= networksRequired) {
			return invalid("server", pythonic(whole), "'"+name+"' is a required property")
		}
	}
	for _, name := range keysInOrder(whole) {
		if since, known := serverAttributes[name]; !known || t.version < since {
			return invalid("server", pythonic(whole), fmt.Sprintf("Additional properties are not allowed ('%s' was unexpected)", name))
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
	name, isText := textOf(r.raw["name"])
	if !isText {
		return invalid("name", pythonic(r.raw["name"]), pythonic(r.raw["name"])+" is not of type 'string'")
	}
	if err := checkLength("name", name, maxText); err != nil {
		return err
	}
	if strings.TrimSpace(name) != name {
		return refuse(http.StatusBadRequest, "An invalid 'name' value was provided. The name must be: printable characters. "+
			"Can not start or end with whitespace.")
	}
	if description, given := textOf(r.raw["description"]); given && utf8.RuneCountInString(description) > maxText {
		return invalid("description", description, "'"+description+"' is too long")
	}
	if data, given := textOf(r.raw["user_data"]); given && !isBase64(data) {
		return invalid("user_data", data, "'"+data+"' is not a 'base64'")
	}
	if data, given := textOf(r.raw["user_data"]); given && len(data) > maxUserData {
		return invalid("user_data", data, "'"+data+"' is too long")
	}
	if id, given := textOf(r.raw["imageRef"]); given && id != "" && !isUUID(id) {
		return invalid("imageRef", id, "'"+id+"' is not valid under any of the given schemas")
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

// textOf returns a string of JSON; false when it is none.
func textOf(raw json.RawMessage) (string, bool) {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}

func checkLength(field, text string, most int) error {
	if text == "" {
		return invalid(field, text, "'' is too short")
	}
	if utf8.RuneCountInString(text) > most {
		return invalid(field, text, "'"+text+"' is too long")
	}
	return nil
}

func checkTags(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var tags []json.RawMessage
	if err := json.Unmarshal(raw, &tags); err != nil {
		return invalid("tags", pythonic(raw), pythonic(raw)+" is not of type 'array'")
	}
	if len(tags) > maxTags {
		return invalid("tags", pythonic(raw), pythonic(raw)+" is too long")
	}
	for i, one := range tags {
		tag, isText := textOf(one)
		if !isText {
			return invalid(fmt.Sprint(i), pythonic(one), pythonic(one)+" is not of type 'string'")
		}
		if err := checkLength(fmt.Sprint(i), tag, maxTag); err != nil {
			return err
		}
		if !tagForm.MatchString(tag) {
			return invalid(fmt.Sprint(i), tag, "'"+tag+"' does not match '^[^,/]*$'")
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
		return invalid("metadata", pythonic(raw), pythonic(raw)+" is not of type 'object'")
	}
	for _, name := range keysInOrder(raw) {
		if !metadataKeyForm.MatchString(name) {
			return invalid("metadata", pythonic(raw), "'"+name+"' does not match any of the regexes: '^[a-zA-Z0-9-_:. ]{1,255}$'")
		}
		value, isText := textOf(metadata[name])
		if !isText {
			return invalid(name, pythonic(metadata[name]), pythonic(metadata[name])+" is not of type 'string'")
		}
		if utf8.RuneCountInString(value) > maxText {
			return invalid(name, value, "'"+value+"' is too long")
		}
	}
	if len(metadata) > maxMetadata {
		return refuse(http.StatusForbidden, "Maximum number of metadata items exceeds %d", maxMetadata)
	}
	return nil
}

// keysInOrder are those of a JSON object, as they stand in it.
func keysInOrder(raw json.RawMessage) []string {
	var keys []string
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return keys
		}
		keys = append(keys, fmt.Sprint(name))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return keys
		}
	}
	return keys
}

// pythonic is JSON as Nova repeats it: as Python writes it.
func pythonic(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "None"
	case string(raw) == "true":
		return "True"
	case string(raw) == "false":
		return "False"
	case raw[0] == '"':
		text, _ := textOf(raw)
		return pythonString(text)
	case raw[0] == '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // it was JSON before
		texts := make([]string, 0, len(items))
		for _, item := range items {
			texts = append(texts, pythonic(item))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case raw[0] == '{':
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields) // it was JSON before
		var texts []string
		for _, name := range slices.Compact(keysInOrder(raw)) {
			texts = append(texts, pythonString(name)+": "+pythonic(fields[name]))
		}
		return "{" + strings.Join(texts, ", ") + "}"
	}
	return string(raw)
}

func pythonString(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	s = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
	if quote == "'" {
		s = strings.ReplaceAll(s, "'", `\'`)
	}
	return quote + s + quote
}
