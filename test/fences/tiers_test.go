package fences

import (
	"slices"
	"testing"

	"github.com/millwright-dev/millwright/test/tier/catalog"
)

// TestEachBehaviourHasATestInMakeTest: tests of whole processes may be long and left to `make
// test-long`, but not all of those of a behaviour, nor all of those in test/e2e.
func TestEachBehaviourHasATestInMakeTest(t *testing.T) {
	tests, err := catalog.Read(top)
	if err != nil {
		t.Fatal(err)
	}
	inE2E := slices.DeleteFunc(slices.Clone(tests), func(one catalog.Test) bool { return one.Package != "test/e2e" })
	for where, tests := range map[string][]catalog.Test{"all packages": tests, "test/e2e": inE2E} {
		if long := withoutShort(tests); len(long) > 0 {
			t.Errorf("in %s these behaviours have only tests that tier.Long leaves out of make test: %v", where, long)
		}
	}
	if !slices.ContainsFunc(tests, func(one catalog.Test) bool { return one.Why != "" }) {
		t.Error("no test is left to make test-long: does this test look in the right place?")
	}
}

// withoutShort returns the ids of which each test is long.
func withoutShort(tests []catalog.Test) []string {
	hasShort := map[string]bool{}
	for _, one := range tests {
		for _, id := range one.IDs {
			hasShort[id] = hasShort[id] || one.Why == ""
		}
	}
	var long []string
	for id, has := range hasShort {
		if !has {
			long = append(long, id)
		}
	}
	slices.Sort(long)
	return long
}

func TestWithoutShort(t *testing.T) {
	got := withoutShort([]catalog.Test{
		{IDs: []string{"ROL1", "ROL2"}, Why: "long"}, {IDs: []string{"ROL1"}}, {IDs: []string{"ROL3"}, Why: "long"}, {IDs: []string{"ROL4"}},
	})
	if want := []string{"ROL2", "ROL3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestEndToEndTestsRunBesideOthers: a test that does not call t.Parallel runs before all others,
// alone.
func TestEndToEndTestsRunBesideOthers(t *testing.T) {
	waits := 0
	sources(t, "test/e2e", func(path string) {
		test := ""
		eachLine(t, path, func(_ int, line string) {
			if match := testFunc.FindStringSubmatch(line); match != nil && match[1] != "TestMain" {
				if test != "" {
					t.Errorf("%s: %s does not call t.Parallel", path, test)
				}
				test = match[1]
			}
			if line == "\tt.Parallel()" {
				waits++
				test = ""
			}
		})
		if test != "" {
			t.Errorf("%s: %s does not call t.Parallel", path, test)
		}
	})
	if waits == 0 {
		t.Error("no test calls t.Parallel: does this test look in the right place?")
	}
}
