package providerspec

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// WriteOnly says whether the field, or something that it lies in, is marked writeOnly: such fields
// may come from a Secret.
func (s *Schema) WriteOnly(path Path) bool {
	for i := range len(path) + 1 {
		if slices.ContainsFunc(s.lookup(path[:i], step), func(sub *jsonschema.Schema) bool { return sub.WriteOnly }) {
			return true
		}
	}
	return false
}

// IsEndpoint says whether the field holds an address: its format is uri or iri, or one of their
// references. A field counts whose name differs from that of an address in its case alone, since
// some drivers read it as the same.
func (s *Schema) IsEndpoint(path Path) bool {
	return slices.ContainsFunc(s.lookup(path, stepFolded), func(sub *jsonschema.Schema) bool {
		return sub.Format != nil && slices.Contains([]string{"uri", "iri", "uri-reference", "iri-reference"}, sub.Format.Name)
	})
}

// Endpoint is an address in a spec.
type Endpoint struct {
	Path  Path
	Value string
}

// Endpoints returns the addresses in a spec, in no order. An empty text is none.
func (s *Schema) Endpoints(spec Spec) []Endpoint {
	var found []Endpoint
	walk(nil, spec.root, func(path Path, text string) {
		if text != "" && s.IsEndpoint(path) {
			found = append(found, Endpoint{Path: path, Value: text})
		}
	})
	return found
}

// walk calls visit for each string in value, with a path that visit may keep.
func walk(at Path, value any, visit func(Path, string)) {
	switch v := value.(type) {
	case string:
		visit(at, v)
	case []any:
		for i, element := range v {
			walk(at.under(i), element, visit)
		}
	case map[string]any:
		for key, element := range v {
			walk(at.under(key), element, visit)
		}
	}
}

// lookup returns all schemas that speak of what path leads to, whichever alternatives hold.
// Each call of step gets from a schema to those of what lies in it.
func (s *Schema) lookup(path Path, step func(*jsonschema.Schema, any) []*jsonschema.Schema) []*jsonschema.Schema {
	found := expand(nil, s.root)
	for _, element := range path {
		var next []*jsonschema.Schema
		for _, sub := range found {
			for _, below := range step(sub, element) {
				next = expand(next, below)
			}
		}
		found = next
	}
	return found
}

// expand adds a schema and all that it is composed of, each once.
func expand(to []*jsonschema.Schema, sub *jsonschema.Schema) []*jsonschema.Schema {
	if sub == nil || slices.Contains(to, sub) {
		return to
	}
	to = append(to, sub)
	for _, part := range slices.Concat([]*jsonschema.Schema{sub.Ref, sub.If, sub.Then, sub.Else}, sub.AllOf, sub.AnyOf, sub.OneOf) {
		to = expand(to, part)
	}
	for _, part := range sub.DependentSchemas {
		to = expand(to, part)
	}
	return to
}

// step returns the schemas of what lies under a key or an index.
func step(sub *jsonschema.Schema, element any) []*jsonschema.Schema {
	if index, is := element.(int); is {
		return stepInto(sub, index)
	}
	key, _ := element.(string)
	var found []*jsonschema.Schema
	if property, named := sub.Properties[key]; named {
		found = append(found, property)
	}
	for pattern, property := range sub.PatternProperties {
		if pattern.MatchString(key) {
			found = append(found, property)
		}
	}
	if others, is := sub.AdditionalProperties.(*jsonschema.Schema); is && len(found) == 0 {
		found = append(found, others)
	}
	if sub.UnevaluatedProperties != nil && len(found) == 0 {
		found = append(found, sub.UnevaluatedProperties)
	}
	return found
}

// stepFolded is step, and takes a key also for those properties that differ from it in their case.
func stepFolded(sub *jsonschema.Schema, element any) []*jsonschema.Schema {
	found := step(sub, element)
	key, _ := element.(string) // of an index none, which no name folds to
	for name, property := range sub.Properties {
		if name != key && strings.EqualFold(name, key) {
			found = append(found, property)
		}
	}
	return found
}

// stepInto returns the schemas of a list's element.
func stepInto(sub *jsonschema.Schema, index int) []*jsonschema.Schema {
	if index < len(sub.PrefixItems) {
		return sub.PrefixItems[index : index+1]
	}
	if sub.Items2020 != nil {
		return []*jsonschema.Schema{sub.Items2020}
	}
	switch items := sub.Items.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{items}
	case []*jsonschema.Schema:
		if index < len(items) {
			return items[index : index+1]
		}
	}
	return nil
}
