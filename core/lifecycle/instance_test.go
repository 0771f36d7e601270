package lifecycle

import (
	"testing"

	"github.com/millwright-dev/millwright/core/instance"
)

// TestExplain: wrong fields are named by their whole path.
func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		fields []instance.Field
		want   string
	}{
		"no field": {nil, "words"},
		"fields": {
			[]instance.Field{{Path: "size", Description: "is wrong"}, {Path: "disks[0].type", Description: "is missing"}},
			"spec.providerSpec.value.cloudProviderSpec.size: is wrong; spec.providerSpec.value.cloudProviderSpec.disks[0].type: is missing",
		},
		"the whole": {[]instance.Field{{Description: "is no object"}}, "spec.providerSpec.value.cloudProviderSpec: is no object"},
		"an element": {
			[]instance.Field{{Path: `["a.b"]`, Description: "is unknown"}},
			`spec.providerSpec.value.cloudProviderSpec["a.b"]: is unknown`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explain(&instance.Failure{Message: "words", Fields: c.fields}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
