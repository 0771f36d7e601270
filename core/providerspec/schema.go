package providerspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a driver's JSON Schema, or why there is none. One that is absent finds nothing wrong,
// and knows no secret field and no address. It is safe for concurrent use.
type Schema struct {
	// root is nil where the schema is absent.
	root   *jsonschema.Schema
	absent string
}

// NoSchema stands for a schema that is absent; why says so for people, and must not be empty.
func NoSchema(why string) *Schema { return &Schema{absent: why} }

// Absent says, for people, why there is no schema; empty where there is one.
func (s *Schema) Absent() string { return s.absent }

// location is what the schema calls itself in references; nothing is ever loaded from there.
const location = "millwright:///provider-spec"

// Compile reads a JSON Schema, draft 2020-12 unless it says another. One that refers to anything
// outside itself, or to nothing, is an error.
func Compile(raw []byte) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if at, is := excess(nil, document); is {
		return nil, fmt.Errorf("%s: is a number out of all bounds", at.Shown())
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	compiler.AssertFormat()
	_ = compiler.AddResource(location, document) // fails for a bad location and for the second one
	root, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return &Schema{root: root}, nil
}

// nowhere keeps a driver's schema from having core read files or URLs.
type nowhere struct{}

// Load always fails.
func (nowhere) Load(string) (any, error) {
	return nil, errors.New("refers to something outside itself, which is not read")
}

// maxExponent bounds the numbers of schemas and specs. The validator calculates with fractions: one
// with a million digits keeps it busy, and it ends the process over those that are greater still.
const maxExponent = 1000

// excess returns where in a value a number is that must not be calculated with; the first, in the
// order of keys.
func excess(at Path, value any) (Path, bool) {
	switch v := value.(type) {
	case json.Number:
		_, exponent, has := strings.Cut(strings.ToLower(v.String()), "e")
		n, err := strconv.Atoi(exponent)
		return at, has && (err != nil || n < -maxExponent || n > maxExponent)
	case []any:
		for i, element := range v {
			if found, is := excess(at.under(i), element); is {
				return found, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found, is := excess(at.under(key), v[key]); is {
				return found, true
			}
		}
	}
	return nil, false
}
