package providerspec

import (
	"fmt"
	"maps"
)

// Merge lays layers over one another, the first at the bottom. Objects are merged key by key.
// Lists, references and all other values are replaced as a whole. A null in an upper layer
// takes away what lies under it (RFC 7386). An empty layer changes nothing. The error says
// which layer, counted from 1, is no JSON object, or too deep a one.
func Merge(layers ...[]byte) ([]byte, error) {
	merged := map[string]any{}
	for i, raw := range layers {
		layer, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		if i == 0 {
			merged = layer
			continue
		}
		merged = merge(merged, layer)
	}
	return encode(merged), nil
}

// merge returns under with over laid over it, and shares nothing with under that it changes.
func merge(under, over map[string]any) map[string]any {
	merged := maps.Clone(under)
	for key, value := range over {
		if value == nil {
			delete(merged, key)
			continue
		}
		object, is := value.(map[string]any)
		if !is || refers(object) {
			merged[key] = value
			continue
		}
		below, both := merged[key].(map[string]any)
		if !both || refers(below) {
			below = map[string]any{}
		}
		merged[key] = merge(below, object)
	}
	return merged
}
