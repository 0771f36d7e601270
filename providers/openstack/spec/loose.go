package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The types below read what people and other systems write for one thing in several ways. They
// never fail: encoding/json would stop at the first that does, and could not say where it is. They
// keep what is wrong until it is known where they stand.

// scalar returns the text of a JSON string, number or truth value; empty for null, and known false
// for anything else.
func scalar(raw []byte) (text string, known bool) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool, float64:
		// As it is written: a float64 does not hold every integer.
		return string(raw), true
	}
	return "", false
}

// truth is true or false, also as a string.
type truth struct {
	value *bool
	wrong bool
}

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (t *truth) UnmarshalJSON(raw []byte) error {
	*t = truth{}
	text, known := scalar(raw)
	if known && text == "" {
		return nil
	}
	is := strings.EqualFold(text, "true")
	*t = truth{value: &is, wrong: !is && !strings.EqualFold(text, "false")}
	return nil
}

// read returns the value; nil where it is not given.
func (t truth) read(field string, found *findings) *bool {
	if t.wrong {
		found.add(field, "must be true or false")
		return nil
	}
	return t.value
}

// isTrue is read for fields that are false where not given.
func (t truth) isTrue(field string, found *findings) bool {
	value := t.read(field, found)
	return value != nil && *value
}

// integer is a whole number, also as a string.
type integer struct {
	value *int
	wrong bool
}

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (n *integer) UnmarshalJSON(raw []byte) error {
	*n = integer{}
	text, known := scalar(raw)
	if known && text == "" {
		return nil
	}
	*n = integerOf(text)
	return nil
}

func integerOf(text string) integer {
	value, err := strconv.ParseInt(text, 10, 32)
	small := int(value)
	return integer{value: &small, wrong: err != nil}
}

// read returns the value; nil where it is not given or below the least.
func (n integer) read(field string, least int, found *findings) *int {
	if n.value == nil {
		return nil
	}
	if n.wrong || *n.value < least {
		found.add(field, "must be a whole number, at least %d and below 2^31", least)
		return nil
	}
	return n.value
}

// tags are Nova's metadata where they are an object, as in Kubermatic's specs, and Nova's tags
// where they are a list, as in MetaKube's.
type tags struct {
	pairs map[string]string
	list  []string
	wrong []string // what is wrong, by paths below the field
	shape bool     // neither an object nor a list
}

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (t *tags) UnmarshalJSON(raw []byte) error {
	*t = tags{}
	var value any
	_ = json.Unmarshal(raw, &value) // what gets here is JSON
	switch v := value.(type) {
	case nil:
	case map[string]any:
		t.pairs = map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, is := v[key].(string)
			if !is && v[key] != nil {
				t.wrong = append(t.wrong, below("tags", key))
			}
			t.pairs[key] = text
		}
	case []any:
		for i, tag := range v {
			text, is := tag.(string)
			if !is && tag != nil {
				t.wrong = append(t.wrong, element("tags", i))
			}
			t.list = append(t.list, text)
		}
	default:
		t.shape = v != ""
	}
	return nil
}

// read returns the tags of either kind.
func (t tags) read(found *findings) (pairs map[string]string, list []string) {
	if t.shape {
		found.add("tags", "must be an object, whose strings become metadata of the server, or a list of strings, which become its tags")
	}
	for _, path := range t.wrong {
		found.add(path, "must be a string")
	}
	return t.pairs, t.list
}
