package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// ReadProvider is ReadSpec for the spec of a call together with its secrets: each secret whose name
// is the path of a string field of the struct goes into that field. Others, such as further keys of
// a whole Secret, are left out.
func ReadProvider(provider *driverv1alpha1.ProviderContext, into any) error {
	return ReadSpec(withSecrets(provider, reflect.TypeOf(into)), into)
}

// ReadAccount reads the fields of a spec that the struct has, with the secrets of the call, and
// nothing else: status, delete and list depend on what names the account alone. It is not strict.
func ReadAccount(provider *driverv1alpha1.ProviderContext, into any) error {
	if err := json.Unmarshal(withSecrets(provider, reflect.TypeOf(into)), into); err != nil {
		return unreadable(err)
	}
	return nil
}

// withSecrets returns the spec with the secrets in their places; as it is where it is no object.
func withSecrets(provider *driverv1alpha1.ProviderContext, t reflect.Type) []byte {
	raw := provider.GetProviderSpec()
	if len(provider.GetSecrets()) == 0 || !json.Valid(raw) {
		return raw
	}
	var value any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber() // a float64 does not hold each integer
	if err := numbers.Decode(&value); err != nil {
		return raw
	}
	for name, secret := range provider.GetSecrets() {
		if steps, ok := pathSteps(name); ok {
			value = place(value, t, steps, string(secret))
		}
	}
	merged, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return merged
}

// place returns value with a string at the path, where a struct of this type has a string there.
func place(value any, t reflect.Type, path []any, text string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(path) == 0 {
		if t.Kind() == reflect.String {
			return text
		}
		return value
	}
	switch step := path[0].(type) {
	case int:
		list, is := value.([]any)
		if is && t.Kind() == reflect.Slice && step < len(list) {
			list[step] = place(list[step], t.Elem(), path[1:], text)
		}
		return value
	case string:
		below := valueType(t, step)
		object, is := value.(map[string]any)
		if below == nil || !is && value != nil {
			return value
		}
		if now := place(object[step], below, path[1:], text); now != nil {
			if object == nil {
				object = map[string]any{}
			}
			object[step] = now
		}
		if object == nil {
			return nil
		}
		return object
	}
	return value
}

// valueType is the type of what stands under a key; nil where there is no such key.
func valueType(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		if field, known := specFields(t)[key]; known {
			return field.of
		}
	}
	return nil
}

// pathSteps reads the name of a secret as the contract writes paths: keys are strings, indexes
// ints.
func pathSteps(name string) (steps []any, ok bool) {
	for rest := name; rest != ""; {
		if bracketed, is := strings.CutPrefix(rest, "["); is {
			inside, after, closed := cutBracket(bracketed)
			if !closed {
				return nil, false
			}
			steps, rest = append(steps, inside), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			return append(steps, rest), true
		}
		if end == 0 {
			return nil, false
		}
		steps, rest = append(steps, rest[:end]), strings.TrimPrefix(rest[end:], ".")
	}
	return steps, len(steps) > 0
}

// cutBracket reads what stands in brackets: an index, or a JSON string.
func cutBracket(text string) (step any, after string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		decoder := json.NewDecoder(strings.NewReader(text))
		var key string
		if decoder.Decode(&key) != nil {
			return nil, "", false
		}
		after, ok = strings.CutPrefix(text[decoder.InputOffset():], "]")
		return key, after, ok
	}
	digits, after, ok := strings.Cut(text, "]")
	index, err := strconv.Atoi(digits)
	return index, after, ok && err == nil && index >= 0
}
