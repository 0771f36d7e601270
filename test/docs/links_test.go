package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// unsaid are the characters of headings that anchors leave out.
	unsaid = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Each link within the repository leads to a file, or a heading, that is there.
func TestLinksLeadSomewhere(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", page, match[1], err)
				continue
			}
			if anchor != "" && !anchors(t, target)[anchor] {
				t.Errorf("%s: %s: no heading has this name", page, match[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("there are only %d links: does this test look in the right place?", links)
	}
}

// anchors are those of a page's headings, as GitHub makes them.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(read(t, page), -1) {
		found[strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return found
}
