package spec

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documentedField is a row of the tables of fields: | `path` | type |…
var documentedField = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|")

// TestEveryFieldIsDocumented holds docs/openstack.md and the schema together: the same fields, and
// the same of them secret.
func TestEveryFieldIsDocumented(t *testing.T) {
	_ = os.Getenv("MILLWRIGHT_INPUTS") // so that Go runs the test again when they change: tools/inputs.sh
	text, err := os.ReadFile("../../../docs/openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Fields\n")
	if !found {
		t.Fatal("there is no section Fields")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, row := range documentedField.FindAllStringSubmatch(section, -1) {
		if _, twice := documented[row[1]]; twice {
			t.Errorf("%s: is documented twice", row[1])
		}
		documented[row[1]] = row[2] == "secret"
	}
	want := map[string]bool{}
	secretByPath("", readSchema(t), want)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("-schema +documented:\n%s", diff)
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("which are secret: -schema +documented:\n%s", diff)
	}
}

// secretByPath notes each field below a node, and whether it may come from a Secret.
func secretByPath(at string, n node, all map[string]bool) {
	if n.Items != nil {
		secretByPath(at+"[]", *n.Items, all)
	}
	for name, property := range n.Properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		all[path] = property.WriteOnly
		secretByPath(path, property, all)
	}
}
