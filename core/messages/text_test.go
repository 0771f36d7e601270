package messages

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextsOfOthersFitOnOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"a short one":           {"no valid host", 20, "no valid host"},
		"one that just fits":    {"no valid host", 13, "no valid host"},
		"lines":                 {"no\nvalid\thost\r\n", 20, "no valid host"},
		"a change of direction": {"a\u202eb", 20, "a b"},
		"bytes that are none":   {"a\xffb", 20, "a\uFFFDb"},
		"one that is cut":       {"no valid host was found", 12, "no valid …"},
		"one cut in a letter":   {"ääää", 6, "ä…"},
		"blanks around it":      {"  a  ", 20, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := OneLine(c.text, c.limit)
			if got != c.want || len(got) > c.limit || !utf8.ValidString(got) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if note := EventNote(strings.Repeat("x", 2*maxNote)); len(note) != maxNote {
		t.Errorf("a note of %d bytes", len(note))
	}
}
