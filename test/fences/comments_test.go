package fences

import (
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// widestComment is how many columns a line of comment may have. A tab counts as four.
const widestComment = 100

// TestCommentsFitThePage: a comment is read once, from left to right. Linters for long lines count
// code as well, where a break seldom helps; this test counts lines that are comment and nothing
// else.
func TestCommentsFitThePage(t *testing.T) {
	files := 0
	sources(t, ".", func(path string) {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files++
		for _, line := range wideComments(path, source) {
			t.Errorf("%s:%d is wider than %d columns: break the comment", path, line, widestComment)
		}
	})
	if files == 0 {
		t.Error("there are no sources: does this test look in the right place?")
	}
}

// wideComments returns the numbers of the lines that hold too wide a comment and no code.
func wideComments(path string, source []byte) []int {
	files := token.NewFileSet()
	lines := strings.Split(string(source), "\n")
	var wide []int
	var tokens scanner.Scanner
	file := files.AddFile(path, -1, len(source))
	tokens.Init(file, source, nil, scanner.ScanComments)
	for {
		at, kind, text := tokens.Scan()
		if kind == token.EOF {
			return wide
		}
		if kind != token.COMMENT {
			continue
		}
		first := files.Position(at).Line
		for n := range strings.Count(text, "\n") + 1 {
			if isTooWide(lines[first+n-1]) {
				wide = append(wide, first+n)
			}
		}
	}
}

// isTooWide says whether a line is comment alone, has too many columns, and could be broken:
// directives and single words cannot.
func isTooWide(line string) bool {
	text, isComment := strings.CutPrefix(strings.TrimLeft(line, " \t"), "//")
	if !isComment || !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\t") {
		return false
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "+") || !strings.Contains(text, " ") {
		return false
	}
	return utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > widestComment
}

func TestWideComments(t *testing.T) {
	long := strings.Repeat("word ", 20)
	for name, source := range map[string]struct {
		text string
		want bool
	}{
		"a line that fits":             {"// " + long[:90], false},
		"a line that does not":         {"// " + long, true},
		"a tab counts as four":         {"func f() {\n\t\t// " + long[:90] + "w w\n}", true},
		"code is others' to judge":     {"var x = 1 // " + long, false},
		"a string is no comment":       {"var x = `\n// " + long + "`", false},
		"a directive cannot be broken": {"// +kubebuilder:" + long, false},
		"nor can an address":           {"// https://" + strings.Repeat("a", 100), false},
	} {
		text := "package x\n\n" + source.text + "\n"
		if got := wideComments(name, []byte(text)); (len(got) > 0) != source.want {
			t.Errorf("%s: wide lines %v, want some: %t", name, got, source.want)
		}
	}
}
