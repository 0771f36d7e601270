package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/test/tier/catalog"
)

func TestLongTestsAreTold(t *testing.T) {
	rolls := catalog.Test{Package: "test/e2e", Name: "TestROL1_Rolls", IDs: []string{"ROL1"}}
	slow := catalog.Test{Package: "test/e2e", Name: "TestROL1_Slow", IDs: []string{"ROL1"}, Why: "it is slow"}
	const head = "| left to `make test-long` | why | what shows it in `make test` |\n| --- | --- | --- |\n"
	for name, tc := range map[string]struct {
		ids       []string
		tests     []catalog.Test
		want, err string
	}{
		"one of two":     {[]string{"ROL1"}, []catalog.Test{rolls, slow}, head + "| e2e.TestROL1_Slow | it is slow | ROL1: e2e.TestROL1_Rolls |\n", ""},
		"the only one":   {[]string{"ROL1"}, []catalog.Test{slow}, head + "| e2e.TestROL1_Slow | it is slow | ROL1:  |\n", "no other test shows ROL1"},
		"an unknown one": {[]string{"SET1"}, []catalog.Test{rolls}, head, "shows ROL1, which is not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := tellLong(&out, tc.ids, tc.tests)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
