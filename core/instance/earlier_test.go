package instance

import (
	"testing"
	"time"
)

func TestEarlierTakesZeroForNever(t *testing.T) {
	never, first, last := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, tc := range []struct{ a, b, want time.Time }{
		{never, never, never}, {never, last, last}, {last, never, last}, {first, last, first}, {last, first, first}, {last, last, last},
	} {
		if got := Earlier(tc.a, tc.b); !got.Equal(tc.want) {
			t.Errorf("of %s and %s the earlier is %s, want %s", tc.a, tc.b, got, tc.want)
		}
	}
}
