package providerspec

import (
	"errors"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/millwright-dev/millwright/core/instance"
)

// hidden is what is said of a value that must not be shown.
const hidden = "is not what the driver's schema asks for"

// Check returns what is wrong with a spec, sorted by path, each once. The fields that withheld
// stands for are set, and their values are not in the spec. A secret field that is missing is not
// wrong: it may come from a Secret. Values of secret fields are not shown.
func (s *Schema) Check(spec []byte, withheld []Reference) Problems {
	return s.check(spec, checker{withheld: withheld})
}

// CheckPart is Check for a spec that others complete: nothing that is missing is wrong.
func (s *Schema) CheckPart(spec []byte, withheld []Reference) Problems {
	return s.check(spec, checker{withheld: withheld, partial: true})
}

func (s *Schema) check(spec []byte, c checker) Problems {
	if s.root == nil {
		return nil
	}
	value, err := decode(spec)
	if err != nil {
		return Problems{{Description: err.Error()}}
	}
	if at, is := excess(nil, value); is {
		return Problems{{Path: at.Shown(), Description: "is a number out of all bounds"}}
	}
	for _, ref := range c.withheld {
		// The schema is to see that it is there.
		put(value, ref.Path, "")
	}
	wrong, is := errors.AsType[*jsonschema.ValidationError](s.root.Validate(value))
	if !is {
		return nil
	}
	c.schema, c.value, c.words = s, value, message.NewPrinter(language.English)
	found := c.problems(wrong)
	found.Sort()
	return slices.Compact(found)
}

// checker words what a validation has found.
type checker struct {
	schema   *Schema
	value    any
	withheld []Reference
	partial  bool
	words    *message.Printer
}

// problems returns what is wrong in the end, below whatever groups it.
func (c checker) problems(wrong *jsonschema.ValidationError) Problems {
	var found Problems
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

func (c checker) problem(wrong *jsonschema.ValidationError) Problems {
	at, value := c.find(wrong.InstanceLocation)
	say := func(path Path, description string) instance.Field {
		return instance.Field{Path: path.Shown(), Description: description}
	}
	var found Problems
	switch k := wrong.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			if missing := at.under(name); !c.partial && !c.schema.WriteOnly(missing) {
				found = append(found, say(missing, "is required"))
			}
		}
		return found
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			found = append(found, say(at.under(name), "is not a field"))
		}
		return found
	case *kind.FalseSchema:
		return Problems{say(at, "is not a field")}
	}
	if slices.ContainsFunc(c.withheld, func(ref Reference) bool { return ref.Path.String() == at.String() }) {
		return nil
	}
	if c.isSecret(at, value) {
		return Problems{say(at, hidden)}
	}
	return Problems{say(at, wrong.ErrorKind.LocalizedString(c.words))}
}

// isSecret says whether the value at a path is or holds a secret, which words about it could show.
func (c checker) isSecret(at Path, value any) bool {
	found := c.schema.WriteOnly(at)
	walk(at, value, func(path Path, _ string) { found = found || c.schema.WriteOnly(path) })
	return found
}

// find turns a location, in which indexes are words, into a path in the spec, and returns what is
// there. The path ends where the spec does.
func (c checker) find(location []string) (Path, any) {
	var path Path
	value := c.value
	for _, word := range location {
		switch v := value.(type) {
		case []any:
			index, err := strconv.Atoi(word)
			if err != nil || index < 0 || index >= len(v) {
				return path, value
			}
			path, value = append(path, index), v[index]
		case map[string]any:
			path, value = append(path, word), v[word]
		default:
			return path, value
		}
	}
	return path, value
}
