package earliest

import (
	"testing"
	"time"
)

func TestZeroIsNever(t *testing.T) {
	for _, tc := range []struct{ a, b, want time.Duration }{
		{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}, {2, 2, 2},
	} {
		if got := Delay(tc.a, tc.b); got != tc.want {
			t.Errorf("of %s and %s the shorter is %s, want %s", tc.a, tc.b, got, tc.want)
		}
		if got := Instant(instant(tc.a), instant(tc.b)); !got.Equal(instant(tc.want)) {
			t.Errorf("of %s and %s the earlier is %s, want %s", instant(tc.a), instant(tc.b), got, instant(tc.want))
		}
	}
}

// instant is the zero time for 0.
func instant(since time.Duration) time.Time {
	if since == 0 {
		return time.Time{}
	}
	return time.Unix(0, 0).Add(since)
}
