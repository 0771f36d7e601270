package fences

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapped is a line of the map in core/doc.go: a tab, a package below core, and what it is for.
var mapped = regexp.MustCompile(`^//\t([a-z][a-z/]*)  ?\s*\S`)

// TestCoreIsMapped: core/doc.go is where everybody starts, so it names every package below core,
// and none that is gone.
func TestCoreIsMapped(t *testing.T) {
	doc, packages := map[string]bool{}, map[string]bool{}
	eachLine(t, filepath.Join(top, "core/doc.go"), func(_ int, line string) {
		if match := mapped.FindStringSubmatch(line); match != nil {
			doc[match[1]] = true
		}
	})
	sources(t, "core", func(path string) {
		folder, err := filepath.Rel(filepath.Join(top, "core"), filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if folder != "." && !strings.HasSuffix(path, "_test.go") {
			packages[filepath.ToSlash(folder)] = true
		}
	})
	if len(packages) == 0 {
		t.Fatal("core has no packages: does this test look in the right place?")
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		if !doc[folder] {
			t.Errorf("core/doc.go does not say what core/%s is for: add a line to its map", folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(doc)) {
		if !packages[folder] {
			t.Errorf("core/doc.go maps core/%s, which is no package", folder)
		}
	}
}
