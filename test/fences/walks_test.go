package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// walkTitle is the heading of a walk in docs/architecture.md, with the most files it may have.
	walkTitle = regexp.MustCompile(`^### (.+ → .+), at most (\d+) files$`)
	// walkStep is the beginning of a step, walkFile one of its files, and the functions to read
	// there.
	walkStep = regexp.MustCompile("^\\d+\\. `")
	walkFile = regexp.MustCompile("`([\\w/]+\\.go)`: ((?:`\\w+`(?:, )?)+)")
	// walks is how many walks the page has.
	walks = 4
)

// TestWalksAreShortAndExist: docs/architecture.md leads through the code along the most important
// events. Each function of a walk is where the page says, and a walk opens few files.
func TestWalksAreShortAndExist(t *testing.T) {
	found, title, most := 0, "", 0
	files := map[string]bool{}
	eachLine(t, filepath.Join(top, "docs/architecture.md"), func(n int, line string) {
		if strings.HasPrefix(line, "#") {
			title, files = "", map[string]bool{}
		}
		if match := walkTitle.FindStringSubmatch(line); match != nil {
			found++
			title = match[1]
			most, _ = strconv.Atoi(match[2])
		}
		if title == "" || !walkStep.MatchString(line) {
			return
		}
		matches := walkFile.FindAllStringSubmatch(line, -1)
		if len(matches) == 0 {
			t.Errorf("docs/architecture.md:%d: the step names no file with its functions", n)
		}
		for _, match := range matches {
			files[match[1]] = true
			if len(files) == most+1 {
				t.Errorf("docs/architecture.md:%d: %q opens more than %d files", n, title, most)
			}
			for name := range strings.SplitSeq(match[2], ", ") {
				if name = strings.Trim(name, "` "); !declares(t, match[1], name) {
					t.Errorf("docs/architecture.md:%d: there is no func %s in %s", n, name, match[1])
				}
			}
		}
	})
	if found != walks {
		t.Errorf("docs/architecture.md has %d walks, want %d", found, walks)
	}
}

// declares says whether a file of the tree declares a function or method of that name.
func declares(t *testing.T, path, name string) bool {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Error(err)
		return false
	}
	return regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `[\[(]`).Match(source)
}
