// Package earliest chooses what is due first of two instants or delays, where zero means never.
// It is pure.
package earliest

import "time"

// Instant is the earlier of two instants. The zero time is never.
func Instant(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Delay is the shorter of two delays. 0 is never.
func Delay(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
