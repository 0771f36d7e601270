package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-dev/millwright/core/providerspec"
)

// maxExponent bounds the numbers of schemas and specs. The validator calculates with fractions: one
// with a million digits keeps it busy, and it ends the process over those that are greater still.
const maxExponent = 1000

// excess returns where in a value a number is that must not be calculated with; the first, in the
// order of keys.
func excess(at providerspec.Path, value any) (providerspec.Path, bool) {
	switch v := value.(type) {
	case json.Number:
		_, exponent, has := strings.Cut(strings.ToLower(v.String()), "e")
		n, err := strconv.Atoi(exponent)
		return at, has && (err != nil || n < -maxExponent || n > maxExponent)
	case []any:
		for i, element := range v {
			if found, is := excess(append(at, i), element); is {
				return found, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found, is := excess(append(at, key), v[key]); is {
				return found, true
			}
		}
	}
	return nil, false
}
