package template

import (
	"errors"
	"fmt"
	"strings"
)

// markers stand for the values of one content until it is known that each stands where a value may.
type markers struct {
	// prefix occurs nowhere in the content.
	prefix string
	values []any
}

func newMarkers(content string) *markers {
	prefix := "MILLWRIGHT"
	for strings.Contains(content, prefix) {
		prefix += "X"
	}
	return &markers{prefix: prefix}
}

// maxMarkers bounds how often a template prints.
const maxMarkers = 10000

// mark is what an action prints instead of a value.
func (m *markers) mark(value any) (string, error) {
	if len(m.values) == maxMarkers {
		return "", errTooLong
	}
	m.values = append(m.values, value)
	return m.name(len(m.values) - 1), nil
}

// name is the marker of a value. None is the beginning of another.
func (m *markers) name(i int) string { return fmt.Sprintf("%s%05dZ", m.prefix, i) }

// fill puts the values in the places of their markers, once the format has nothing against it.
func (m *markers) fill(text string, f format) (string, error) {
	pairs := make([]string, 0, 2*len(m.values))
	quoted := make(map[string]any, len(m.values))
	for i, value := range m.values {
		text, err := f.quote(value)
		if err != nil {
			return "", err
		}
		pairs = append(pairs, m.name(i), text)
		quoted[m.name(i)] = value
	}
	filled := strings.NewReplacer(pairs...).Replace(text)
	if len(quoted) == 0 {
		return filled, nil
	}
	return filled, f.check(text, filled, place{prefix: m.prefix, values: quoted})
}

// place is what a format's check knows of the markers.
type place struct {
	prefix string
	// values by their markers.
	values map[string]any
}

// errMisplaced is why a template is refused.
var errMisplaced = errors.New("an action stands where no value of its format can stand: it must be a value by itself, without quotes around it and not in a comment")
