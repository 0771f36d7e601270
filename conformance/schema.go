package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func specSchema(ctx context.Context, t *trial) {
	answer, err := t.specs.GetProviderSpecSchema(ctx, &driverv1alpha1.GetProviderSpecSchemaRequest{})
	if err != nil {
		t.fatalf("GetProviderSpecSchema: %v", err)
	}
	checkSchema(t, answer.GetJsonSchema())
}

// checkSchema holds a schema to the contract, and the spec and the secrets of the config to it.
func checkSchema(t *trial, raw []byte) {
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.fatalf("the schema is not a JSON object: %v", err)
	}
	schema := compiled(t, raw)
	for name := range t.secrets {
		if path, is := pathOf(name); is && len(schema.at(path)) > 0 && !schema.writeOnly(path) {
			t.errorf("the field %s may come from a Secret, and is not marked writeOnly", name)
		}
	}
	schema.checkSpec(t)
	visit("", document, func(path string, object map[string]any) {
		if ref, is := object["$ref"].(string); is && !strings.HasPrefix(ref, "#") {
			t.errorf("the schema refers to %q at %q", ref, path)
		}
		if partOfObject.MatchString(path) {
			return // The object as a whole refuses them: checkSpec tries it.
		}
		if _, has := object["properties"].(map[string]any); has && object["additionalProperties"] != false && object["unevaluatedProperties"] != false {
			t.errorf("the object at %q accepts unknown properties", path)
		}
	})
}

// partOfObject is where a schema is one of several for the same object.
var partOfObject = regexp.MustCompile(`/(allOf|anyOf|oneOf|if|then|else|dependentSchemas)(/|$)`)

// visit calls f for each schema in a schema, as JSON.
func visit(path string, schema any, f func(path string, object map[string]any)) {
	switch s := schema.(type) {
	case map[string]any:
		f(path, s)
		for key, value := range s {
			visit(path+"/"+key, value, f)
		}
	case []any:
		for _, value := range s {
			visit(path, value, f)
		}
	}
}

// specSchemas is a schema, and all that it holds. A path in it is a list of keys and indexes, an
// index as digits.
type specSchemas struct{ root *jsonschema.Schema }

// compiled holds a schema to the validator that core uses.
func compiled(t *trial, raw []byte) specSchemas {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.fatalf("the schema: %v", err)
	}
	const location = "millwright:///provider-spec"
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	_ = compiler.AddResource(location, document) // fails for a bad location and for the second one
	root, err := compiler.Compile(location)
	if err != nil {
		t.fatalf("the schema does not compile: %v", err)
	}
	return specSchemas{root}
}

// checkSpec holds the config's spec to the schema: it is right, and with a field more in any object
// it is wrong. An object whose keys are the user's own takes any.
func (s specSchemas) checkSpec(t *trial) {
	var spec any
	_ = json.Unmarshal(t.config.ProviderSpec, &spec) // the config was checked
	if err := s.root.Validate(spec); err != nil && !s.onlySecretsMissing(err) {
		t.errorf("the schema refuses the spec of the config: %v", err)
	}
	eachObject(nil, spec, func(path []string, object map[string]any) {
		if s.hasOwnKeys(path) {
			return
		}
		object[noField] = "x"
		if s.root.Validate(spec) == nil {
			t.errorf("the schema accepts an unknown field in the spec's object %q", strings.Join(path, "/"))
		}
		delete(object, noField)
	})
}

// eachObject calls f for each object in a value. A path that it gets is the caller's.
func eachObject(path []string, value any, f func(path []string, object map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		f(path, v)
		for key, below := range v {
			eachObject(append(slices.Clone(path), key), below, f)
		}
	case []any:
		for i, below := range v {
			eachObject(append(slices.Clone(path), strconv.Itoa(i)), below, f)
		}
	}
}

// hasOwnKeys says whether the object at a path holds keys of the user's own choice, such as labels:
// the schema says what their values are. The spec as a whole never does.
func (s specSchemas) hasOwnKeys(path []string) bool {
	return len(path) > 0 && slices.ContainsFunc(s.at(path), func(one *jsonschema.Schema) bool {
		_, values := one.AdditionalProperties.(*jsonschema.Schema)
		return values || len(one.PatternProperties) > 0 || unevaluated(one) != nil
	})
}

// onlySecretsMissing says whether nothing but writeOnly fields that are not there is wrong: as core
// has it, they can come from a Secret.
func (s specSchemas) onlySecretsMissing(err error) bool {
	wrong, is := errors.AsType[*jsonschema.ValidationError](err)
	if !is {
		return false
	}
	below := func(cause *jsonschema.ValidationError) bool { return s.onlySecretsMissing(cause) }
	switch k := wrong.ErrorKind.(type) {
	case *kind.Required:
		return !slices.ContainsFunc(k.Missing, func(name string) bool {
			return !s.writeOnly(append(slices.Clone(wrong.InstanceLocation), name))
		})
	case *kind.AnyOf, *kind.OneOf:
		return slices.ContainsFunc(wrong.Causes, below)
	}
	return len(wrong.Causes) > 0 && !slices.ContainsFunc(wrong.Causes, func(cause *jsonschema.ValidationError) bool { return !below(cause) })
}

// writeOnly says whether a field, or something that it lies in, may come from a Secret.
func (s specSchemas) writeOnly(path []string) bool {
	for i := range len(path) + 1 {
		if slices.ContainsFunc(s.at(path[:i]), func(one *jsonschema.Schema) bool { return one.WriteOnly }) {
			return true
		}
	}
	return false
}

// at returns all schemas that speak of what a path leads to, whichever alternatives hold.
func (s specSchemas) at(path []string) []*jsonschema.Schema {
	found := parts(nil, s.root)
	for _, step := range path {
		var next []*jsonschema.Schema
		for _, one := range found {
			for _, below := range under(one, step) {
				next = parts(next, below)
			}
		}
		found = next
	}
	return found
}

// parts adds a schema and all that it is composed of, each once.
func parts(to []*jsonschema.Schema, one *jsonschema.Schema) []*jsonschema.Schema {
	if one == nil || slices.Contains(to, one) {
		return to
	}
	to = append(to, one)
	for _, part := range slices.Concat([]*jsonschema.Schema{one.Ref, one.If, one.Then, one.Else}, one.AllOf, one.AnyOf, one.OneOf) {
		to = parts(to, part)
	}
	for _, part := range one.DependentSchemas {
		to = parts(to, part)
	}
	return to
}

// under returns the schemas of what lies under a key, or, where that is digits, under an index.
func under(one *jsonschema.Schema, step string) []*jsonschema.Schema {
	var found []*jsonschema.Schema
	if property, named := one.Properties[step]; named {
		found = append(found, property)
	}
	for pattern, property := range one.PatternProperties {
		if pattern.MatchString(step) {
			found = append(found, property)
		}
	}
	if others, is := one.AdditionalProperties.(*jsonschema.Schema); is && len(found) == 0 {
		found = append(found, others)
	}
	if others := unevaluated(one); others != nil && len(found) == 0 {
		found = append(found, others)
	}
	if i, err := strconv.Atoi(step); err == nil && i >= 0 {
		if i < len(one.PrefixItems) {
			return append(found, one.PrefixItems[i])
		}
		items, _ := one.Items.(*jsonschema.Schema)
		found = append(found, one.Items2020, items)
	}
	return found
}

// unevaluated is the schema of the keys that no other part of one speaks of; nil where they are
// refused, or where none is given.
func unevaluated(one *jsonschema.Schema) *jsonschema.Schema {
	if others := one.UnevaluatedProperties; others != nil && others.Bool == nil {
		return others
	}
	return nil
}

// pathStep is a key, an index in brackets, or a key in brackets as a JSON string.
var pathStep = regexp.MustCompile(`^(?:([^.\[\]"]+)|\[([0-9]+)\]|\[("(?:[^"\\]|\\.)*")\])`)

// pathOf reads the name of a secret that is the path of a field, such as auth.password. A key of a
// whole Secret need not be one.
func pathOf(name string) (path []string, is bool) {
	for rest := name; rest != ""; {
		if len(path) > 0 && !strings.HasPrefix(rest, "[") {
			if rest, is = strings.CutPrefix(rest, "."); !is {
				return nil, false
			}
		}
		step := pathStep.FindStringSubmatch(rest)
		if step == nil {
			return nil, false
		}
		key := step[1] + step[2]
		if step[3] != "" && json.Unmarshal([]byte(step[3]), &key) != nil {
			return nil, false
		}
		path, rest = append(path, key), rest[len(step[0]):]
	}
	return path, len(path) > 0
}
