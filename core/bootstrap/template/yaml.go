package template

import (
	"errors"
	"fmt"
	"io"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

var (
	errSecond  = errors.New("has text after its first YAML document")
	errAliases = fmt.Errorf("becomes longer than %d bytes by its aliases", maxDocument)
)

// readYAML reads YAML strictly. Of several documents the reader would take the first alone, and it
// would write out each alias.
func readYAML(text string, into any) error {
	if err := checkYAML(text); err != nil {
		return err
	}
	return yaml.UnmarshalStrict([]byte(text), into)
}

// checkYAML says whether the text is one document that is no longer with its aliases written out
// than documents may be.
func checkYAML(text string) error {
	decoder := goyaml.NewDecoder(strings.NewReader(text))
	var tree any
	if err := decoder.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := decoder.Decode(&tree); !errors.Is(err, io.EOF) {
		return errSecond
	}
	if left := maxDocument; !fits(tree, &left) {
		return errAliases
	}
	return nil
}

// fits says whether a tree has no more bytes than are left. What is no text counts as one.
func fits(tree any, left *int) bool {
	switch t := tree.(type) {
	case string:
		*left -= len(t)
	case []any:
		for i := 0; i < len(t) && fits(t[i], left); i++ {
			*left--
		}
	case map[any]any:
		for key, value := range t {
			if !fits(key, left) || !fits(value, left) {
				return false
			}
		}
	default:
		*left--
	}
	return *left >= 0
}
