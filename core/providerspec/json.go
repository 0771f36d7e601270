package providerspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// maxNesting is how deep the objects and lists of a spec may lie in one another. Beyond it somebody
// wants to keep us busy.
const maxNesting = 100

// What a spec is that is not what it has to be.
var (
	errNoObject = errors.New("is not a JSON object")
	errNested   = fmt.Errorf("is nested more than %d levels deep", maxNesting)
)

// decode reads a JSON object of at most maxNesting levels, with numbers as they were written.
// Nothing at all is an empty one.
func decode(raw []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	// A Decoder does not look at what follows the value.
	if !json.Valid(raw) {
		return nil, errNoObject
	}
	if nesting(raw) > maxNesting {
		return nil, errNested
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

// nesting is how deep objects and lists lie in one another in valid JSON.
func nesting(raw []byte) int {
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			inText = !inText
		case c == '\\':
			// It stands in texts alone; what follows it neither ends one nor opens anything.
			i++
		case inText:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}

// encode is decode's inverse, with sorted keys.
func encode(object map[string]any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(object) // what was decoded can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Equal says whether two specs mean the same, in whatever order and with whatever blanks they are
// written. What is no spec equals nothing.
func Equal(a, b []byte) bool {
	left, leftErr := decode(a)
	right, rightErr := decode(b)
	return leftErr == nil && rightErr == nil && reflect.DeepEqual(left, right)
}
