package limiter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/core/instance"
)

// one returns a limiter with slots for all, and its only breaker.
func one() (*Limiter, *breaker) {
	l := New(1000, instance.DefaultCredentialRetry)
	return l, l.breaker(creates, epoch)
}

// begin begins creates that may begin.
func begin(t *testing.T, l *Limiter, now time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		if !l.take(name, now) {
			t.Fatalf("%s may not call", name)
		}
	}
}

// fail ends a create that began at an instant.
func fail(l *Limiter, name string, began, now time.Time, class instance.Class) {
	l.end(caller(name), began, now, &instance.Failure{Class: class})
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint("m", i))
	}
	return all
}

func TestSAFE7_BreakerOpensByTheClassOfTheRefusal(t *testing.T) {
	refusal := func(class instance.Class, after time.Duration) *instance.Failure {
		return &instance.Failure{Class: class, Reason: "R", Message: "words", RetryAfter: after, ProviderID: "another's", LastKnownState: []byte("another's")}
	}
	cases := map[string]struct {
		reason   string
		failures []*instance.Failure
		// openFor is for how long nobody may call after the last of them, turns how many may call
		// after that.
		openFor time.Duration
		turns   int
	}{
		"successes":             {"each lets one more through", []*instance.Failure{nil, nil}, 0, firstWindow + 2},
		"quota":                 {"five seconds, then one", []*instance.Failure{nil, refusal(instance.Quota, 0)}, 5 * time.Second, 1},
		"quota, again":          {"ever longer", []*instance.Failure{refusal(instance.Quota, 0), refusal(instance.Quota, 0)}, 10 * time.Second, 1},
		"quota, long":           {"never longer than half a minute", slices.Repeat([]*instance.Failure{refusal(instance.Quota, 0)}, 20), 30 * time.Second, 1},
		"credentials":           {"the contract says five minutes", []*instance.Failure{refusal(instance.Credentials, 0)}, 5 * time.Minute, 1},
		"credentials, again":    {"never longer", slices.Repeat([]*instance.Failure{refusal(instance.Credentials, 0)}, 3), 5 * time.Minute, 1},
		"another cause":         {"begins its own count", []*instance.Failure{refusal(instance.Quota, 0), refusal(instance.Quota, 0), refusal(instance.Capacity, 0)}, 5 * time.Second, 1},
		"after a success":       {"the count begins anew", []*instance.Failure{refusal(instance.Quota, 0), refusal(instance.Quota, 0), nil, refusal(instance.Quota, 0)}, 5 * time.Second, 1},
		"the driver's wish":     {"counts where it is longer", []*instance.Failure{refusal(instance.RateLimited, time.Minute)}, time.Minute, 1},
		"a shorter wish":        {"does not count", []*instance.Failure{refusal(instance.Quota, time.Second)}, 5 * time.Second, 1},
		"a success after":       {"opens it; others follow one by one", []*instance.Failure{refusal(instance.Quota, 0), nil}, 0, 2},
		"a machine's own":       {"says nothing of the account", []*instance.Failure{refusal(instance.SpecInvalid, 0), refusal(instance.OutcomeUnknown, 0)}, 0, firstWindow},
		"unknown after refusal": {"opens nothing", []*instance.Failure{refusal(instance.Quota, 0), refusal(instance.OutcomeUnknown, 0)}, 0, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, b := one()
			at := epoch
			for i, failure := range tc.failures {
				who := fmt.Sprint(i)
				begin(t, l, at, who)
				l.end(caller(who), at, at, failure)
				if i+1 < len(tc.failures) && b.isOpen(at) {
					at = b.until
				}
			}
			if got := max(0, b.until.Sub(at)); b.isOpen(at) != (tc.openFor > 0) || tc.openFor > 0 && got != tc.openFor {
				t.Errorf("it is open for %s, want %s: %s", got, tc.openFor, tc.reason)
			}
			if b.isOpen(at) {
				turn, held := l.Ask(caller("asks"), creates, at)
				if turn || held == nil || held.Message != "words" || held.ProviderID != "" || held.LastKnownState != nil {
					t.Errorf("who asks meanwhile gets %+v, want the words and nothing of another's VM", held)
				}
				l.Drop(caller("asks"))
				at = b.until
			}
			turns := 0
			for ; turns < 100; turns++ {
				if !l.ask(fmt.Sprint("r", turns), at) {
					break
				}
			}
			if turns != tc.turns {
				t.Errorf("%d may call at once, want %d: %s", turns, tc.turns, tc.reason)
			}
		})
	}
}

func TestCredentialRetryIsTheOperators(t *testing.T) {
	l := New(1, time.Minute)
	begin(t, l, epoch, "a")
	was, is := l.Done(caller("a"), epoch, epoch, &instance.Failure{Class: instance.Credentials, Reason: "R"})
	if was != nil || is == nil || is.Reason != "R" {
		t.Errorf("the refusals before and after are %v and %v", was, is)
	}
	if l.ask("b", epoch.Add(time.Minute-1)) || !l.ask("b", epoch.Add(time.Minute)) {
		t.Error("the account is not held back for just a minute")
	}
}

// A call that began before the breaker opened says nothing new: many that fail at once are one
// failure.
func TestSAFE7_ManyRefusalsAtOnceAreOne(t *testing.T) {
	l, b := one()
	begin(t, l, epoch, names(firstWindow)...)
	later := epoch.Add(time.Second)
	for _, name := range names(firstWindow - 1) {
		fail(l, name, epoch, later, instance.Quota)
	}
	l.end(caller("m3"), epoch, later, nil)
	if b.cause == nil || b.until.Sub(later) != 5*time.Second {
		t.Errorf("open for %s by %v, want 5 s", b.until.Sub(later), b.cause)
	}
	if diff := cmp.Diff(map[instance.Class]int{instance.Quota: 1}, l.OpenBreakers()); diff != "" {
		t.Errorf("open breakers (-want +got):\n%s", diff)
	}
}

func TestSAFE7_OpenBreakerTellsItsQueueOnce(t *testing.T) {
	l, b := one()
	begin(t, l, epoch, "a", "b", "c")
	for _, name := range []string{"d", "e", "f"} {
		l.ask(name, epoch)
	}
	l.queue(caller("x"), deletes, epoch)
	// d has a turn. It loses it, and keeps its place.
	fail(l, "a", epoch, epoch.Add(time.Second), instance.Quota)
	wantNext(t, l, epoch.Add(time.Second), "d", "e", "f")
	if l.Begin(caller("d"), creates, epoch.Add(time.Second)) {
		t.Error("d began while the breaker was open")
	}
	if !l.Begin(caller("x"), deletes, epoch.Add(time.Second)) {
		t.Error("the delete of the same account is held back")
	}
	fail(l, "b", epoch, epoch.Add(2*time.Second), instance.Quota)
	wantNext(t, l, epoch.Add(2*time.Second))
	l.done("c", epoch.Add(2*time.Second))
	// The next one probes, and is refused: there is nothing new to be said.
	wantNext(t, l, b.until, "d")
	begin(t, l, b.until, "d")
	fail(l, "d", b.until, b.until.Add(time.Second), instance.Quota)
	wantNext(t, l, b.until.Add(-1))
	wantNext(t, l, b.until, "e")
}

// Whose turn has come and who does not come loses it to the next.
func TestSAFE7_UnusedProbePassesOn(t *testing.T) {
	l, b := one()
	now := epoch
	begin(t, l, now, "first")
	fail(l, "first", now, now, instance.Quota)
	for _, name := range []string{"a", "b", "c"} {
		if l.ask(name, now) {
			t.Errorf("%s may call though the breaker is open", name)
		}
	}
	wantNext(t, l, now)
	if due := l.Due(now); !due.Equal(now.Add(5 * time.Second)) {
		t.Errorf("while it is open the next is due at %s", due)
	}
	now = b.until
	wantNext(t, l, now, "a")
	if due := l.Due(now); !due.Equal(now.Add(TurnLifetime)) {
		t.Errorf("the next after a is due at %s", due)
	}
	now = now.Add(TurnLifetime)
	wantNext(t, l, now, "b")
	l.Drop(caller("b"))
	l.Drop(caller("c"))
	wantNext(t, l, now)
	if !l.Due(now).IsZero() {
		t.Errorf("nobody waits, and the next is due at %s", l.Due(now))
	}
}

func TestIdleAccountsAreForgotten(t *testing.T) {
	other := func(n uint64) Key { return Key{Account: n, Operation: instance.Create} }
	for name, tc := range map[string]struct {
		leave func(*Limiter)
		after time.Duration
		want  bool
	}{
		"a while ago":        {func(l *Limiter) { l.Drop(caller("a")) }, breakerMemory, true},
		"long ago":           {func(l *Limiter) { l.Drop(caller("a")) }, breakerMemory + 1, false},
		"with a call":        {func(l *Limiter) { l.Begin(caller("a"), other(7), epoch) }, 2 * breakerMemory, true},
		"with a queue":       {func(l *Limiter) { l.Drop(caller("a")); l.limit = 0; l.queue(caller("b"), other(7), epoch) }, 2 * breakerMemory, true},
		"while it is open":   {func(l *Limiter) { refuse(l, other(7), 3*breakerMemory) }, 2 * breakerMemory, true},
		"when it was opened": {func(l *Limiter) { refuse(l, other(7), time.Minute) }, 2 * breakerMemory, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, instance.DefaultCredentialRetry)
			l.queue(caller("a"), other(7), epoch)
			tc.leave(l)
			l.queue(caller("z"), other(8), epoch.Add(tc.after))
			if _, known := l.breakers[other(7)]; known != tc.want {
				t.Errorf("remembered: %t, want %t", known, tc.want)
			}
		})
	}
}

// refuse begins the call of a and has it refused.
func refuse(l *Limiter, key Key, retryAfter time.Duration) {
	l.Begin(caller("a"), key, epoch)
	l.end(caller("a"), epoch, epoch, &instance.Failure{Class: instance.Quota, RetryAfter: retryAfter})
}

// After a rest the next calls feel their way again.
func TestSAFE7_SuccessesAreForgotten(t *testing.T) {
	l, b := one()
	for _, name := range names(20) {
		begin(t, l, epoch, name)
		l.done(name, epoch)
	}
	begin(t, l, epoch.Add(windowMemory), "soon")
	if b.maxCalls() != firstWindow+20 {
		t.Errorf("%d may call at once, want one more for each success", b.maxCalls())
	}
	// What is under way is no rest.
	l.ask("asks", epoch.Add(10*windowMemory))
	if b.maxCalls() != firstWindow+20 {
		t.Errorf("beside a call %d may call at once", b.maxCalls())
	}
	l.Drop(caller("asks"))
	l.done("soon", epoch.Add(10*windowMemory))
	begin(t, l, epoch.Add(12*windowMemory), "later")
	if b.maxCalls() != firstWindow {
		t.Errorf("after a rest %d may call at once, want %d", b.maxCalls(), firstWindow)
	}
}

func TestSAFE7_ARestOpensNoWindow(t *testing.T) {
	l, b := one()
	begin(t, l, epoch, "a")
	fail(l, "a", epoch, epoch, instance.Quota)
	probe := epoch.Add(time.Minute)
	begin(t, l, probe, "b")
	l.end(caller("b"), probe, probe, nil)
	l.ask("c", epoch.Add(time.Hour))
	if b.maxCalls() != 2 {
		t.Errorf("after a rest %d may call at once, want 2 as before", b.maxCalls())
	}
}

func TestWindowsAreBounded(t *testing.T) {
	l, b := one()
	b.window, b.used = maxWindow-1, epoch
	for _, name := range names(3) {
		begin(t, l, epoch, name)
		l.done(name, epoch)
	}
	if b.window != maxWindow {
		t.Errorf("the window is %d, want %d at most", b.window, maxWindow)
	}
}

func TestSAFE7_RateLimitsHalveWhatAnAccountGets(t *testing.T) {
	for calls, want := range map[int]int{16: 8, 15: 7, 2: 1, 1: 1} {
		l, b := one()
		b.window, b.used = 16, epoch
		begin(t, l, epoch, names(calls)...)
		for _, name := range names(calls) {
			l.end(caller(name), epoch, epoch.Add(time.Second), &instance.Failure{Class: instance.RateLimited, RetryAfter: 3 * time.Second})
		}
		if b.maxCalls() != want || !b.until.Equal(epoch.Add(4*time.Second)) {
			t.Errorf("of %d calls %d may call from %s on, want %d after 3 s", calls, b.maxCalls(), b.until, want)
		}
	}
}

func TestSAFE7_RateLimitInTheWindowTakesTurnsBack(t *testing.T) {
	l, b := one()
	b.window, b.used = 4, epoch
	begin(t, l, epoch, "a")
	l.ask("b", epoch)
	l.ask("c", epoch)
	fail(l, "a", epoch, epoch.Add(1), instance.RateLimited)
	now := b.until
	l.Next(epoch.Add(1))
	wantNext(t, l, now, "b")
	// The second refusal comes while b has a turn: b loses it.
	b.window = 3
	l.Next(now)
	begin(t, l, now, "c")
	fail(l, "c", now, now.Add(1), instance.RateLimited)
	if l.Begin(caller("b"), creates, now.Add(1)) {
		t.Error("b began while the breaker was open")
	}
	wantNext(t, l, now.Add(1))
	wantNext(t, l, b.until, "b")
}
