package requeue

import (
	"testing"
	"time"
)

func TestStatusIsWrittenOncePerSecondUnlessUrgent(t *testing.T) {
	now := time.Unix(100, 0)
	for _, tc := range []struct {
		name            string
		changed, urgent bool
		written         time.Time
		wait            time.Duration
		due             bool
	}{
		{"nothing changed", false, false, time.Time{}, 0, false},
		{"a number changed, never written", true, false, time.Time{}, 0, true},
		{"a number changed, just written", true, false, now.Add(-time.Second / 4), 3 * time.Second / 4, false},
		{"a number changed, written a second ago", true, false, now.Add(-time.Second), 0, true},
		{"a condition changed, just written", true, true, now, 0, true},
	} {
		if wait, due := StatusDue(tc.changed, tc.urgent, tc.written, now); wait != tc.wait || due != tc.due {
			t.Errorf("%s: due = %t, else in %s; want %t, %s", tc.name, due, wait, tc.due, tc.wait)
		}
	}
}
