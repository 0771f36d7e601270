package schema

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/millwright-dev/millwright/core/providerspec"
)

// Scope says how much of a spec there is to be checked.
type Scope struct {
	// Partial: others will fill in what is missing.
	Partial bool
	// Withheld are fields that are set, by a reference, and are not in the spec.
	Withheld []providerspec.Path
}

// hidden is what is said of a value that must not be shown.
const hidden = "is not what the driver's schema asks for"

// Check returns what is wrong with a spec, sorted by path, each once. A secret field that is
// missing is not wrong: it may come from a Secret. Values of secret fields are not shown.
func (s *Schema) Check(spec []byte, scope Scope) providerspec.Problems {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec))
	if err != nil {
		return providerspec.Problems{{Description: "is not JSON"}}
	}
	if at, is := excess(nil, value); is {
		return providerspec.Problems{{Path: at.Shown(), Description: "is a number out of all bounds"}}
	}
	for _, path := range scope.Withheld {
		value = stand(value, path)
	}
	wrong, is := errors.AsType[*jsonschema.ValidationError](s.root.Validate(value))
	if !is {
		return nil
	}
	c := checker{schema: s, value: value, scope: scope, words: message.NewPrinter(language.English)}
	found := c.problems(wrong)
	found.Sort()
	return slices.Compact(found)
}

// stand puts a string where a withheld value would be, so that the schema sees that it is there.
// Read left the way to it.
func stand(value any, path providerspec.Path) any {
	if len(path) == 0 {
		return ""
	}
	switch v := value.(type) {
	case map[string]any:
		if key, is := path[0].(string); is {
			v[key] = stand(v[key], path[1:])
		}
	case []any:
		if index, is := path[0].(int); is && index < len(v) {
			v[index] = stand(v[index], path[1:])
		}
	}
	return value
}

type checker struct {
	schema *Schema
	value  any
	scope  Scope
	words  *message.Printer
}

// problems returns what is wrong in the end, below whatever groups it.
func (c checker) problems(wrong *jsonschema.ValidationError) providerspec.Problems {
	var found providerspec.Problems
	if len(wrong.Causes) == 0 {
		return c.problem(wrong)
	}
	_, anyOf := wrong.ErrorKind.(*kind.AnyOf)
	_, oneOf := wrong.ErrorKind.(*kind.OneOf)
	for _, cause := range wrong.Causes {
		below := c.problems(cause)
		if (anyOf || oneOf) && len(below) == 0 {
			// This alternative holds.
			return nil
		}
		found = append(found, below...)
	}
	return found
}

func (c checker) problem(wrong *jsonschema.ValidationError) providerspec.Problems {
	at := c.path(wrong.InstanceLocation)
	say := func(path providerspec.Path, description string) providerspec.Problem {
		return providerspec.Problem{Path: path.Shown(), Description: description}
	}
	var found providerspec.Problems
	switch k := wrong.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			missing := append(slices.Clone(at), name)
			if !c.scope.Partial && !c.schema.WriteOnly(missing) {
				found = append(found, say(missing, "is required"))
			}
		}
		return found
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			found = append(found, say(append(slices.Clone(at), name), "is not a field"))
		}
		return found
	case *kind.FalseSchema:
		return providerspec.Problems{say(at, "is not a field")}
	}
	if slices.ContainsFunc(c.scope.Withheld, func(p providerspec.Path) bool { return p.String() == at.String() }) {
		return nil
	}
	if c.secretive(at) {
		return providerspec.Problems{say(at, hidden)}
	}
	return providerspec.Problems{say(at, wrong.ErrorKind.LocalizedString(c.words))}
}

// secretive says whether the value at a path is or holds a secret, which words about it could show.
func (c checker) secretive(at providerspec.Path) bool {
	if c.schema.WriteOnly(at) {
		return true
	}
	value := c.value
	for _, element := range at {
		switch v := value.(type) {
		case map[string]any:
			value = v[element.(string)] //nolint:forcetypeassert // path made it by this value
		case []any:
			value = v[element.(int)] //nolint:forcetypeassert // path made it by this value
		}
	}
	found := false
	walk(at, value, func(path providerspec.Path, _ string) {
		found = found || len(path) > len(at) && c.schema.WriteOnly(path)
	})
	return found
}

// path turns a location, in which indexes are words, into a path in the value.
func (c checker) path(location []string) providerspec.Path {
	var path providerspec.Path
	value := c.value
	for _, word := range location {
		switch v := value.(type) {
		case []any:
			index, err := strconv.Atoi(word)
			if err != nil || index >= len(v) {
				return path
			}
			path, value = append(path, index), v[index]
		case map[string]any:
			path, value = append(path, word), v[word]
		default:
			return path
		}
	}
	return path
}
