package instance

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestRetryAfterNth checks that waits grow, stay within their bounds, and yield to a driver that
// asks for more.
func TestRetryAfterNth(t *testing.T) {
	for class, w := range backoffs {
		before := time.Duration(0)
		for n := 1; n < 40; n++ {
			wait := (&Failure{Class: class}).RetryAfterNth(n, "uid")
			if wait < before || wait < w.machine.First*8/10 || wait > w.machine.Last {
				t.Errorf("%s: wait %d is %s after %s", class, n, wait, before)
			}
			before = wait
		}
		if wait := (&Failure{Class: class, RetryAfter: time.Hour}).RetryAfterNth(1, "uid"); wait != time.Hour {
			t.Errorf("%s: waits %s where the driver asks for an hour", class, wait)
		}
	}
	quota := &Failure{Class: Quota}
	if quota.RetryAfterNth(1, "a") == quota.RetryAfterNth(1, "b") {
		t.Error("machines that failed together come back together")
	}
}

// TestBackoffsArePinned holds the table to the figures of calls in docs/drivers.md.
func TestBackoffsArePinned(t *testing.T) {
	want := map[Class]string{
		OutcomeUnknown: "1s 2s 30s", Unavailable: "1s 2s 10s", NotFound: "2s 4s 1m0s",
		Credentials: "10s 20s 30s", Quota: "5s 10s 30s", Capacity: "5s 10s 30s",
		RateLimited: "1s 2s 30s", Precondition: "10s 20s 2m0s", AccountChanged: "1m0s 2m0s 5m0s",
		StaleEpoch: "30s 1m0s 5m0s", Pending: "1s 2s 5s", Unimplemented: "1m0s 2m0s 5m0s",
		Internal: "2s 4s 2m0s", SpecInvalid: "30s 1m0s 5m0s", Conflict: "30s 1m0s 5m0s",
		DataLoss: "5m0s 5m0s 5m0s",
	}
	if len(backoffs) != len(want) {
		t.Errorf("the table has %d classes, want %d", len(backoffs), len(want))
	}
	for class, w := range backoffs {
		if got := fmt.Sprint(w.machine.Nth(1), w.machine.Nth(2), w.machine.Nth(100)); got != want[class] {
			t.Errorf("%s waits for %s, want %s", class, got, want[class])
		}
	}
}

// TestBreakerBackoffsArePinned names the classes that open a breaker, and how long it stays open.
func TestBreakerBackoffsArePinned(t *testing.T) {
	want := map[Class]string{
		Credentials: "5m0s 5m0s", Quota: "5s 30s", Capacity: "5s 30s", RateLimited: "1s 30s",
	}
	if got := BreakerClasses(); !slices.Equal(got, []Class{Capacity, Credentials, Quota, RateLimited}) {
		t.Errorf("%v open a breaker", got)
	}
	for class := range backoffs {
		wait, opens := class.BreakerBackoff()
		if opens != (want[class] != "") || opens && fmt.Sprint(wait.First, wait.Last) != want[class] {
			t.Errorf("%s: the breaker waits for %v (%t), want %q", class, wait, opens, want[class])
		}
	}
}

// TestWaitsSpread checks that machines that failed together come back over a fifth of the wait.
func TestWaitsSpread(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for n := range 1000 {
		wait := (&Failure{Class: Quota}).RetryAfterNth(100, strconv.Itoa(n))
		least, most = min(least, wait), max(most, wait)
	}
	if least < 24*time.Second || least > 24200*time.Millisecond || most != 30*time.Second {
		t.Errorf("waits of 30s last from %s to %s", least, most)
	}
}

// TestClassPredicates pins what core concludes from each class.
func TestClassPredicates(t *testing.T) {
	want := map[Class]string{
		OutcomeUnknown: "false true false", Unavailable: "false false false", SpecInvalid: "true false true",
		NotFound: "false true false", Conflict: "true false false", Credentials: "false false true",
		Quota: "false false false", Capacity: "false false false", RateLimited: "false false false",
		Precondition: "false false false", AccountChanged: "false false true", StaleEpoch: "false true false",
		Pending: "false true false", Unimplemented: "false false false", Internal: "false true false",
		DataLoss: "false true true",
	}
	for class := range backoffs {
		if got := fmt.Sprint(class.IsTerminal(), class.IsUncertain(), class.IsUnverifiable()); got != want[class] {
			t.Errorf("%s: terminal, uncertain, unverifiable are %s, want %s", class, got, want[class])
		}
	}
}
