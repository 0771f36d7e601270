package fleet

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestBounded(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		want          int
	}{
		{"short", "käse", 5},
		{"as long as may be", strings.Repeat("x", maxMessage), maxMessage},
		{"too long", strings.Repeat("x", maxMessage+1), maxMessage},
		{"a character too long", strings.Repeat("x", maxMessage-1) + "\u00e4", maxMessage - 1},
		{"the longest character too long", strings.Repeat("x", maxMessage-1) + "\U0001F600", maxMessage - 1},
		{"characters of three bytes", strings.Repeat("\u20ac", maxMessage), maxMessage / 3 * 3},
	} {
		got := Bounded(tc.message)
		if len(got) != tc.want || !strings.HasPrefix(tc.message, got) || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes are left, %d should be; valid: %t", tc.name, len(got), tc.want, utf8.ValidString(got))
		}
	}
	if got := Bounded(strings.Repeat("\x80", maxMessage+1)); len(got) < maxMessage-utf8.UTFMax {
		t.Errorf("of nonsense %d bytes are left", len(got))
	}
}

func TestDue(t *testing.T) {
	now := time.Unix(100, 0)
	for _, tc := range []struct {
		name            string
		changed, urgent bool
		written         time.Time
		wait            time.Duration
		due             bool
	}{
		{"nothing new", false, false, time.Time{}, 0, false},
		{"a number, never written", true, false, time.Time{}, 0, true},
		{"a number, just written", true, false, now.Add(-time.Second / 4), 3 * time.Second / 4, false},
		{"a number, written a second ago", true, false, now.Add(-time.Second), 0, true},
		{"a verdict, just written", true, true, now, 0, true},
	} {
		if wait, due := Due(tc.changed, tc.urgent, tc.written, now); wait != tc.wait || due != tc.due {
			t.Errorf("%s: due %t, else in %s", tc.name, due, wait)
		}
	}
}
