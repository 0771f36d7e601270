package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// testName is a test's name in a text. With a star it stands for all that begin so.
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z0-9]\w*\*?`)
	testFunc = regexp.MustCompile(`^func ((?:Test|Fuzz)\w+)\(`)
)

// TestDocsNameTestsThatExist: a claim in docs is as good as the test that it names.
func TestDocsNameTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	sources(t, ".", func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		eachLine(t, path, func(_ int, line string) {
			if match := testFunc.FindStringSubmatch(line); match != nil {
				tests[match[1]] = true
			}
		})
	})
	named := 0
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md"} {
		pages, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			eachLine(t, page, func(n int, line string) {
				for _, name := range testName.FindAllString(line, -1) {
					named++
					if !exists(tests, name) {
						t.Errorf("%s:%d names %s, which is no test", page, n, name)
					}
				}
			})
		}
	}
	if named == 0 {
		t.Error("no page names a test: does this test look in the right place?")
	}
}

// exists says whether a test has that name, or begins with what stands before a star.
func exists(tests map[string]bool, name string) bool {
	begin, star := strings.CutSuffix(name, "*")
	if !star {
		return tests[name]
	}
	for test := range tests {
		if strings.HasPrefix(test, begin) {
			return true
		}
	}
	return false
}

// namedFile is a file of the tree in a text, as `core/doc.go`.
var namedFile = regexp.MustCompile("`([a-z][\\w.-]*/[\\w./-]+\\.(?:go|proto|json|md))`")

// TestContributingNamesFilesThatExist: who is sent to a file has to find it.
func TestContributingNamesFilesThatExist(t *testing.T) {
	named := 0
	eachLine(t, filepath.Join(top, "CONTRIBUTING.md"), func(n int, line string) {
		for _, match := range namedFile.FindAllStringSubmatch(line, -1) {
			named++
			if _, err := os.Stat(filepath.Join(top, match[1])); err != nil {
				t.Errorf("CONTRIBUTING.md:%d: %v", n, err)
			}
		}
	})
	if named == 0 {
		t.Error("CONTRIBUTING.md names no file: does this test look for the right thing?")
	}
}

func TestExists(t *testing.T) {
	tests := map[string]bool{"TestAPI4_Inspect": true}
	for name, want := range map[string]bool{
		"TestAPI4_Inspect": true, "TestAPI4_*": true, "TestAPI4_": false, "TestAPI5_*": false, "TestAPI4_Inspects": false,
	} {
		if got := exists(tests, name); got != want {
			t.Errorf("%s exists: %t, want %t", name, got, want)
		}
	}
}
