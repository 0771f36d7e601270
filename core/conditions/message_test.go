package conditions

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLongMessageIsCutBetweenCharacters(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		want          int
	}{
		{"short", "käse", 5},
		{"as long as may be", strings.Repeat("x", maxMessage), maxMessage},
		{"too long", strings.Repeat("x", maxMessage+1), maxMessage},
		{"two bytes across the end", strings.Repeat("x", maxMessage-1) + "\u00e4", maxMessage - 1},
		{"four bytes across the end", strings.Repeat("x", maxMessage-1) + "\U0001F600", maxMessage - 1},
		{"three bytes each", strings.Repeat("\u20ac", maxMessage), maxMessage / 3 * 3},
	} {
		got := TruncateMessage(tc.message)
		if len(got) != tc.want || !strings.HasPrefix(tc.message, got) || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes are left, want %d; valid: %t", tc.name, len(got), tc.want, utf8.ValidString(got))
		}
	}
	if got := TruncateMessage(strings.Repeat("\x80", maxMessage+1)); len(got) < maxMessage-utf8.UTFMax {
		t.Errorf("of bytes that are no characters %d are left", len(got))
	}
}
