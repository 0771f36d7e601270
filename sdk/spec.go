package sdk

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// wholeSpec stands for the path of what is wrong with all of a spec.
const wholeSpec = "cloudProviderSpec"

// ReadSpec reads a cloudProviderSpec into the struct that into points at, by its json tags and as
// strictly as the contract. SPEC_INVALID names every field that the struct does not have or that
// holds something of another type. It also names each missing field whose tag says neither
// omitempty nor omitzero. A field that may come from a Secret needs one of those, since it is
// absent from the spec then. Names are compared exactly; null is like a field that is missing.
func ReadSpec(raw []byte, into any) error {
	var value any
	err := json.Unmarshal(raw, &value)
	if _, is := value.(map[string]any); !is || err != nil {
		return specInvalid([]flaw{{wholeSpec, "must be a JSON object"}})
	}
	var r specReader
	r.read("", value, reflect.TypeOf(into))
	if len(r.flaws) > 0 {
		return specInvalid(r.flaws)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return unreadable(err)
	}
	return nil
}

// unreadable names the field of an error of json.Unmarshal, where it tells.
func unreadable(err error) error {
	path := ""
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		path = wrong.Field
	}
	return specInvalid([]flaw{{cmp.Or(path, wholeSpec), "has a value that cannot be read"}})
}

// flaw is what is wrong with a field. It does not hold the field's value, which may be a secret in
// the wrong place.
type flaw struct{ path, description string }

func specInvalid(flaws []flaw) error {
	var parts []string
	var fields []ErrorOption
	for _, f := range flaws {
		parts = append(parts, f.path+" "+f.description)
		fields = append(fields, WithField(f.path, f.description))
	}
	return NewError(driverv1alpha1.ErrorReason_ERROR_REASON_SPEC_INVALID, strings.Join(parts, "; "), fields...)
}

// specReader compares JSON values with the types that they are for.
type specReader struct{ flaws []flaw }

func (r *specReader) add(path, description string) {
	r.flaws = append(r.flaws, flaw{path, description})
}

func (r *specReader) read(path string, value any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := shapeFor(t)
	if value == nil || want == "" {
		return
	}
	if shapeOf(value) != want {
		r.add(path, "must be "+want)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		r.readObject(path, v, t)
	case []any:
		for i, element := range v {
			r.read(path+"["+strconv.Itoa(i)+"]", element, t.Elem())
		}
	}
}

func (r *specReader) readObject(path string, object map[string]any, t reflect.Type) {
	keys := slices.Sorted(maps.Keys(object))
	if t.Kind() == reflect.Map {
		for _, key := range keys {
			r.read(below(path, key), object[key], t.Elem())
		}
		return
	}
	fields := specFields(t)
	for _, key := range keys {
		field, known := fields[key]
		if !known {
			r.add(below(path, key), "is not a field")
			continue
		}
		r.read(below(path, key), object[key], field.of)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if fields[key].required && object[key] == nil {
			r.add(below(path, key), "must be set")
		}
	}
}

// specField is a field of a spec's struct.
type specField struct {
	of       reflect.Type
	required bool
}

// specFields returns the fields of a struct by their names in JSON. Those of an embedded struct are
// its own, unless that has a name in JSON, or none on purpose.
func specFields(t reflect.Type) map[string]specField {
	fields := map[string]specField{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" || !promoted(t, f.Index[:len(f.Index)-1]) {
			continue
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		fields[cmp.Or(name, f.Name)] = specField{of: f.Type, required: !optional}
	}
	return fields
}

// promoted says whether encoding/json has the fields of the embedded struct at index be those of t.
func promoted(t reflect.Type, index []int) bool {
	for i := range index {
		if name, _, _ := strings.Cut(t.FieldByIndex(index[:i+1]).Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}

// The shapes of JSON, for people.
const (
	anObject    = "an object"
	aList       = "a list"
	aString     = "a string"
	aNumber     = "a number"
	trueOrFalse = "true or false"
)

func shapeOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return anObject
	case []any:
		return aList
	case string:
		return aString
	case bool:
		return trueOrFalse
	}
	return aNumber
}

// shapeFor returns what JSON a type is read from; empty where only the type itself knows.
func shapeFor(t reflect.Type) string {
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return anObject
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return aString
		}
		return aList
	case reflect.String:
		return aString
	case reflect.Bool:
		return trueOrFalse
	case reflect.Interface:
		return ""
	}
	return aNumber
}

// below returns the path of a key in the object at path, written as the contract writes the names
// of secrets.
func below(path, key string) string {
	switch {
	case key == "" || strings.ContainsAny(key, `.[]"`):
		return path + "[" + quoted(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func quoted(key string) string {
	raw, _ := json.Marshal(key) // a string cannot fail
	return string(raw)
}
