package providerspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
)

// errNoObject says that a spec is not what it has to be.
var errNoObject = errors.New("is not a JSON object")

// decode reads a JSON object, with numbers as they were written. Nothing at all is an empty one.
func decode(raw []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	// A Decoder does not look at what follows the value.
	if !json.Valid(raw) {
		return nil, errNoObject
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	_ = decoder.Decode(&value) // what is valid is decoded
	object, is := value.(map[string]any)
	if !is {
		return nil, errNoObject
	}
	return object, nil
}

// encode is decode's inverse, with sorted keys.
func encode(object map[string]any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(object) // what was decoded can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Equal says whether two specs mean the same, in whatever order and with whatever blanks they are written. What is no JSON
// object equals nothing.
func Equal(a, b []byte) bool {
	left, leftErr := decode(a)
	right, rightErr := decode(b)
	return leftErr == nil && rightErr == nil && reflect.DeepEqual(left, right)
}
