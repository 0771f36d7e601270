package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// MaxText is the longest name or description that the services take, in characters.
const MaxText = 255

// TimeForm is how Nova, Neutron and Glance write times.
const TimeForm = "2006-01-02T15:04:05Z"

// TimeOrNil is nil for the zero time.
func TimeOrNil(t time.Time, form string) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(form)
}

// TextOrNil is nil for the empty text.
func TextOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// OrEmpty is an empty map for none: JSON has no null then.
func OrEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// Clone is a copy of a map, empty for none.
func Clone(m map[string]string) map[string]string { return maps.Clone(OrEmpty(m)) }

// IsTrue reads a flag as clients write it in queries.
func IsTrue(v string) bool { return strings.EqualFold(v, "true") || v == "1" }

// TextOf returns a string of JSON; false when it is none.
func TextOf(raw json.RawMessage) (string, bool) {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", false
	}
	return *s, true
}

// KeysInOrder are those of a JSON object, as they stand in it.
func KeysInOrder(raw json.RawMessage) []string {
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

// Pythonic is JSON as Nova repeats it: as Python writes it.
func Pythonic(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "None"
	case string(raw) == "true":
		return "True"
	case string(raw) == "false":
		return "False"
	case raw[0] == '"':
		text, _ := TextOf(raw)
		return pythonString(text)
	case raw[0] == '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items) // it was JSON before
		texts := make([]string, 0, len(items))
		for _, item := range items {
			texts = append(texts, Pythonic(item))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case raw[0] == '{':
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields) // it was JSON before
		var texts []string
		for _, name := range slices.Compact(KeysInOrder(raw)) {
			texts = append(texts, pythonString(name)+": "+Pythonic(fields[name]))
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
