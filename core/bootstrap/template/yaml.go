package template

import (
	"errors"
	"io"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

var errSecond = errors.New("has text after its first YAML document")

// readYAML reads YAML strictly. Of several documents the reader would take the first alone.
func readYAML(text string, into any) error {
	decoder := goyaml.NewDecoder(strings.NewReader(text))
	var tree any
	if err := decoder.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := decoder.Decode(&tree); !errors.Is(err, io.EOF) {
		return errSecond
	}
	return yaml.UnmarshalStrict([]byte(text), into)
}
