package main

import (
	"slices"
	"testing"
)

func TestTheListOnlyShrinks(t *testing.T) {
	listed, err := parse("2 core/a.go\n1 docs/b.md\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		found         map[string]int
		grown, shrunk []string
	}{
		"the same":               {map[string]int{"core/a.go": 2, "docs/b.md": 1}, nil, nil},
		"a number that grew":     {map[string]int{"core/a.go": 3, "docs/b.md": 1}, []string{"core/a.go"}, nil},
		"a file not in the list": {map[string]int{"core/a.go": 2, "docs/b.md": 1, "new.md": 1}, []string{"new.md"}, nil},
		"a number that shrank":   {map[string]int{"core/a.go": 1, "docs/b.md": 1}, nil, []string{"core/a.go"}},
		"a file without any":     {map[string]int{"core/a.go": 2}, nil, []string{"docs/b.md"}},
	} {
		grown, shrunk := compare(listed, test.found)
		if !slices.Equal(grown, test.grown) || !slices.Equal(shrunk, test.shrunk) {
			t.Errorf("%s: grown %v, shrunk %v, want %v and %v", name, grown, shrunk, test.grown, test.shrunk)
		}
	}
}

func TestTheListIsSortedByPath(t *testing.T) {
	if got, want := format(map[string]int{"b": 1, "a": 2, "none": 0}), "2 a\n1 b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
