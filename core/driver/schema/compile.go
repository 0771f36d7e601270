package schema

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a driver's JSON Schema. It is safe for concurrent use.
type Schema struct {
	root *jsonschema.Schema
}

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
	if err := compiler.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
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
