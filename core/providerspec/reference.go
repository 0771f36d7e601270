package providerspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/core/messages"
)

// The keys that make an object a reference. An object that has one of them, and nothing but them,
// stands for a string.
const (
	literalKey   = "value"
	secretKey    = "secretKeyRef"
	configMapKey = "configMapKeyRef"
)

// Kind is what a reference leads to.
type Kind string

// The kinds.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// Reference stands in a spec for a string that is in a Secret or ConfigMap.
type Reference struct {
	Path Path
	Kind Kind
	// Namespace is empty for that of the object.
	Namespace, Name, Key string
}

// maxProblems is how many of them Read tells.
const maxProblems = 32

// Problems are the fields of a spec that are wrong, with paths as by Shown. They are an error.
type Problems []instance.Field

// Error lists them.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p))
	for _, problem := range p {
		lines = append(lines, problem.Path+": "+problem.Description)
	}
	return strings.Join(lines, "; ")
}

// Sort puts them into the order of their paths: what is told twice is told alike.
func (p Problems) Sort() {
	slices.SortFunc(p, func(a, b instance.Field) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Description, b.Description))
	})
}

// Spec is a spec whose references are known. Make it with Read.
type Spec struct {
	root map[string]any
	// References are in the order of their paths.
	References []Reference
}

// Read takes a spec apart: {value: x} becomes x, and what refers elsewhere is cut out. It returns
// at most 32 problems; with any there is no Spec.
func Read(raw []byte) (Spec, Problems) {
	root, err := decode(raw)
	if err != nil {
		return Spec{}, Problems{{Description: err.Error()}}
	}
	r := &reader{}
	s := Spec{root: r.object(nil, root)}
	if len(r.problems) > 0 {
		r.problems.Sort()
		return Spec{}, r.problems[:min(len(r.problems), maxProblems)]
	}
	slices.SortFunc(r.references, func(a, b Reference) int { return cmp.Compare(a.Path.String(), b.Path.String()) })
	s.References = r.references
	return s, nil
}

// JSON is the spec without what refers elsewhere: such a field is absent, and such an element of a
// list is null, so that the others keep their places.
func (s Spec) JSON() []byte {
	return encode(s.root)
}

// Fill returns the spec with a string in the place of each reference that has one in values, by
// path.
func (s Spec) Fill(values map[string]string) Spec {
	filled := Spec{}
	root := clone(s.root)
	for _, r := range s.References {
		value, has := values[r.Path.String()]
		if !has {
			filled.References = append(filled.References, r)
			continue
		}
		root = put(root, r.Path, value)
	}
	filled.root, _ = root.(map[string]any)
	return filled
}

// Refer returns spec, which is what a driver has made of JSON, with the references written back
// into it.
func (s Spec) Refer(spec []byte) ([]byte, error) {
	root, err := decode(spec)
	if err != nil {
		return nil, err
	}
	for _, r := range s.References {
		// The path leads into the object: it stays the same one.
		put(root, r.Path, r.written())
	}
	return encode(root), nil
}

// written is the reference as it stands in a spec.
func (r Reference) written() map[string]any {
	to := map[string]any{"name": r.Name, "key": r.Key}
	if r.Namespace != "" {
		to["namespace"] = r.Namespace
	}
	if r.Kind == ConfigMap {
		return map[string]any{configMapKey: to}
	}
	return map[string]any{secretKey: to}
}

// put changes value so that path leads to what, and returns it, or what takes its place. Objects
// that are missing on the way are made, and lists that are too short are filled with null.
func put(value any, path Path, what any) any {
	if len(path) == 0 {
		return what
	}
	if index, is := path[0].(int); is {
		list, _ := value.([]any)
		for len(list) <= index {
			list = append(list, nil)
		}
		list[index] = put(list[index], path[1:], what)
		return list
	}
	key, _ := path[0].(string)
	object, is := value.(map[string]any)
	if !is {
		object = map[string]any{}
	}
	object[key] = put(object[key], path[1:], what)
	return object
}

// clone returns a copy that shares no object and no list with value.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, element := range v {
			copied[key] = clone(element)
		}
		return copied
	case []any:
		copied := make([]any, 0, len(v))
		for _, element := range v {
			copied = append(copied, clone(element))
		}
		return copied
	}
	return value
}

// refers says whether an object stands for a string.
func refers(object map[string]any) bool {
	if len(object) == 0 {
		return false
	}
	for key, value := range object {
		switch key {
		case secretKey, configMapKey:
		case literalKey:
			if len(object) == 1 && !scalar(value) {
				// Something of the driver's own that has this name.
				return false
			}
		default:
			return false
		}
	}
	return true
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// reader collects what it finds in a spec.
type reader struct {
	references []Reference
	problems   Problems
}

func (r *reader) object(at Path, object map[string]any) map[string]any {
	read := make(map[string]any, len(object))
	for key, value := range object {
		if kept, stays := r.value(at.under(key), value); stays {
			read[key] = kept
		}
	}
	return read
}

// value returns what is in the place of a value; stays is false where there is nothing.
func (r *reader) value(at Path, value any) (kept any, stays bool) {
	switch v := value.(type) {
	case []any:
		list := make([]any, 0, len(v))
		for i, element := range v {
			kept, _ := r.value(at.under(i), element)
			list = append(list, kept)
		}
		return list, true
	case map[string]any:
		if refers(v) {
			return r.reference(at, v)
		}
		if inner, is := v[literalKey].(map[string]any); is && len(v) == 1 && refers(inner) {
			// With the inner one replaced the outer one would become a reference.
			r.add(at, literalKey+" must not be a reference itself")
			return nil, false
		}
		return r.object(at, v), true
	}
	return value, true
}

func (r *reader) reference(at Path, object map[string]any) (literal any, is bool) {
	if len(object) > 1 {
		r.add(at, fmt.Sprintf("has several of %s, %s and %s: choose one", literalKey, secretKey, configMapKey))
		return nil, false
	}
	if literal, is = object[literalKey]; is {
		return literal, true
	}
	kind, word := Secret, secretKey
	if _, is := object[configMapKey]; is {
		kind, word = ConfigMap, configMapKey
	}
	fields, _ := object[word].(map[string]any)
	reference := Reference{Path: at, Kind: kind}
	into := map[string]*string{"name": &reference.Name, "key": &reference.Key, "namespace": &reference.Namespace}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value, known := into[field]
		text, isText := fields[field].(string)
		if !known || !isText {
			r.add(at, fmt.Sprintf("%s.%s: must be one of name, key and namespace, and a string", word, messages.OneLine(field, maxShown)))
			return nil, false
		}
		if !isName(text) {
			r.add(at, fmt.Sprintf("%s.%s: must be of letters, digits, '-', '_' and '.', at most %d", word, field, maxName))
			return nil, false
		}
		*value = text
	}
	if reference.Name == "" || reference.Key == "" {
		r.add(at, word+" needs a name and a key")
		return nil, false
	}
	r.references = append(r.references, reference)
	return nil, false
}

func (r *reader) add(at Path, description string) {
	r.problems = append(r.problems, instance.Field{Path: at.Shown(), Description: description})
}

// maxName is the longest name of an object, and the longest key in one, in Kubernetes.
const maxName = validation.DNS1123SubdomainMaxLength

// isName says whether text may be looked up, as the name of an object or as a key in one: by the
// rule for keys, which is the wider one. Whether there can be such a name is the API server's to
// say; it must not be the way to somewhere else. Nothing at all is no name, but was told already.
func isName(text string) bool {
	return text == "" || len(validation.IsConfigMapKey(text)) == 0
}
