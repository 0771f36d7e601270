package limiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/core/instance"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// creates and deletes are two keys of one account.
	creates = Key{Account: 1, Operation: instance.Create}
	deletes = Key{Account: 1, Operation: instance.Delete}
)

func caller(name string) Caller { return Caller{Namespace: "ns", Name: name, UID: "uid-" + name} }

func callers(names ...string) []Caller {
	var all []Caller
	for _, name := range names {
		all = append(all, caller(name))
	}
	return all
}

// newLimiter returns a limiter whose accounts have all succeeded often: only slots are scarce.
func newLimiter(limit int) *Limiter {
	l := New(limit, instance.DefaultCredentialRetry)
	for _, key := range []Key{creates, deletes} {
		b := l.breaker(key, epoch)
		b.window, b.used = 100, epoch
	}
	return l
}

// ask is Ask for a create.
func (l *Limiter) ask(name string, now time.Time) bool {
	turn, _ := l.Ask(caller(name), creates, now)
	return turn
}

// take asks for a create and begins it.
func (l *Limiter) take(name string, now time.Time) bool {
	return l.ask(name, now) && l.Begin(caller(name), creates, now)
}

// end ends a call.
func (l *Limiter) end(who Caller, began, now time.Time, failure *instance.Failure) {
	_, _ = l.Done(who, began, now, failure)
}

// done ends a create that succeeded.
func (l *Limiter) done(name string, now time.Time) { l.end(caller(name), epoch, now, nil) }

// queue asks for a call, whatever comes of it.
func (l *Limiter) queue(who Caller, key Key, now time.Time) { _, _ = l.Ask(who, key, now) }

func wantNext(t *testing.T, l *Limiter, now time.Time, names ...string) {
	t.Helper()
	if diff := cmp.Diff(callers(names...), l.Next(now)); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

func TestSlotsAreGrantedInOrderOfArrival(t *testing.T) {
	l := newLimiter(1)
	if !l.take("a", epoch) {
		t.Fatal("the first request finds no free slot")
	}
	for _, name := range []string{"b", "c", "b"} {
		if l.take(name, epoch) {
			t.Errorf("%s got a slot beside a", name)
		}
	}
	wantNext(t, l, epoch)
	l.done("a", epoch)
	wantNext(t, l, epoch, "b")
	if l.take("d", epoch) || l.take("c", epoch) {
		t.Error("somebody came before b")
	}
	if !l.take("b", epoch) {
		t.Error("b's turn was given away")
	}
}

func TestSlotsGoInOrderOfArrivalAcrossKeys(t *testing.T) {
	l := newLimiter(1)
	l.take("a", epoch)
	queue := []struct {
		name string
		key  Key
	}{{"b", deletes}, {"c", creates}, {"d", creates}, {"e", deletes}}
	for _, next := range queue {
		l.queue(caller(next.name), next.key, epoch)
	}
	last := "a"
	for _, next := range queue {
		l.done(last, epoch)
		wantNext(t, l, epoch, next.name)
		if !l.Begin(caller(next.name), next.key, epoch) {
			t.Errorf("%s has no turn", next.name)
		}
		last = next.name
	}
}

func TestUnusedTurnPassesOn(t *testing.T) {
	l := newLimiter(1)
	if !l.ask("a", epoch) || l.ask("b", epoch) {
		t.Fatal("a turn is not exclusive")
	}
	wantNext(t, l, epoch.Add(TurnLifetime-1))
	if due := l.Due(epoch); !due.Equal(epoch.Add(TurnLifetime)) {
		t.Errorf("due at %s", due)
	}
	wantNext(t, l, l.Due(epoch), "b")
	if l.Begin(caller("a"), creates, l.Due(epoch)) {
		t.Error("a began a call after its turn")
	}
}

func TestTurnsThatExpireTogetherPassOnTogether(t *testing.T) {
	l := newLimiter(2)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		l.ask(name, epoch)
	}
	wantNext(t, l, epoch.Add(TurnLifetime), "c", "d")
}

func TestAskingAgainRenewsATurn(t *testing.T) {
	l := newLimiter(2)
	l.ask("a", epoch)
	l.ask("b", epoch.Add(time.Second))
	l.ask("c", epoch.Add(time.Second))
	if !l.ask("a", epoch.Add(TurnLifetime-1)) {
		t.Error("a lost its turn")
	}
	wantNext(t, l, epoch.Add(TurnLifetime))
	if due := l.Due(epoch); !due.Equal(epoch.Add(time.Second + TurnLifetime)) {
		t.Errorf("due at %s, want when b's turn ends", due)
	}
	wantNext(t, l, epoch.Add(time.Second+TurnLifetime), "c")
	if !l.Begin(caller("a"), creates, epoch.Add(2*TurnLifetime-2)) {
		t.Error("a may not call in a turn that was renewed")
	}
}

func TestTurnThatExpiredCannotBeUsed(t *testing.T) {
	l := newLimiter(1)
	l.ask("a", epoch)
	if l.Begin(caller("a"), creates, epoch.Add(TurnLifetime)) {
		t.Error("a call began in a turn that has expired")
	}
	if !l.take("b", epoch.Add(TurnLifetime)) {
		t.Error("the turn that has expired still takes a slot")
	}
	if !l.Due(epoch).IsZero() {
		t.Errorf("due at %s, want never", l.Due(epoch))
	}
}

func TestTurnIsForOneKey(t *testing.T) {
	l := newLimiter(1)
	l.ask("a", epoch)
	l.ask("b", epoch)
	if l.Begin(caller("a"), deletes, epoch) {
		t.Error("a create's turn was good for a delete")
	}
	// Whoever wants another call has given up the first, and stands at the end of the queue.
	if turn, _ := l.Ask(caller("a"), deletes, epoch); turn {
		t.Error("a came before b")
	}
	wantNext(t, l, epoch, "b")
	if l.Begin(caller("a"), creates, epoch) {
		t.Error("a has a turn that it gave up")
	}
}

func TestWhoCallsNeitherAsksNorQueues(t *testing.T) {
	l := newLimiter(2)
	l.take("a", epoch)
	for _, key := range []Key{creates, deletes} {
		if turn, refusal := l.Ask(caller("a"), key, epoch); turn || refusal != nil {
			t.Errorf("%v: a second call beside the first", key)
		}
	}
	l.Drop(caller("a"))
	if l.Begin(caller("a"), creates, epoch) || l.underWay != 1 {
		t.Errorf("%d calls are under way, want the one that was not dropped", l.underWay)
	}
	l.done("a", epoch)
	l.done("a", epoch)
	l.ask("a", epoch)
	l.done("a", epoch)
	if l.underWay != 0 || !l.Begin(caller("a"), creates, epoch) {
		t.Errorf("%d calls are under way, want none, and a's turn to be its own", l.underWay)
	}
}

func TestDropMakesRoom(t *testing.T) {
	l := newLimiter(1)
	for _, name := range []string{"a", "b", "c", "d"} {
		l.ask(name, epoch)
	}
	l.Drop(caller("c"))
	l.Drop(caller("a"))
	wantNext(t, l, epoch, "b")
	l.Drop(caller("b"))
	wantNext(t, l, epoch, "d")
	l.Drop(caller("d"))
	wantNext(t, l, epoch)
	if len(l.calls)+len(l.queued)+len(l.turns) > 0 {
		t.Error("something is left of those who were dropped")
	}
}

func TestWhoWaitsForTheDriverIsWokenWhenItIsBack(t *testing.T) {
	l := newLimiter(2)
	l.take("a", epoch)
	l.ask("b", epoch)
	l.ask("c", epoch)
	l.Suspend()
	if l.Begin(caller("b"), creates, epoch) {
		t.Error("b called a driver that is away")
	}
	l.Wait(caller("d"), time.Time{})
	l.Wait(caller("e"), time.Time{})
	l.Drop(caller("e"))
	wantNext(t, l, epoch.Add(time.Hour))
	if due := l.Due(epoch); !due.IsZero() {
		t.Errorf("due at %s, want never", due)
	}
	// It is back with a lower limit, and a's call is under way still.
	l.Resume(1)
	woken := map[Caller]bool{}
	for _, who := range l.Next(epoch) {
		woken[who] = true
	}
	if diff := cmp.Diff(map[Caller]bool{caller("b"): true, caller("c"): true, caller("d"): true}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if l.ask("b", epoch) {
		t.Error("b has a turn beside as many calls as the driver takes")
	}
	l.done("a", epoch)
	wantNext(t, l, epoch, "b")
	wantNext(t, l, epoch)
}

func TestWhoWaitsForAnInstantIsWokenThen(t *testing.T) {
	l := newLimiter(1)
	if !l.ask("a", epoch) {
		t.Fatal("a has no turn")
	}
	// The Lease has no time: a keeps its turn, and asks again.
	l.Wait(caller("a"), epoch.Add(2*time.Second))
	l.Wait(caller("b"), epoch.Add(time.Second))
	l.queue(caller("b"), deletes, epoch)
	if due := l.Due(epoch); !due.Equal(epoch.Add(time.Second)) {
		t.Errorf("due at %s", due)
	}
	wantNext(t, l, epoch.Add(time.Second-1))
	wantNext(t, l, epoch.Add(time.Second), "a")
	wantNext(t, l, epoch.Add(2*time.Second))
	if !l.Begin(caller("a"), creates, epoch.Add(2*time.Second)) {
		t.Error("a lost its turn")
	}
	l.Wait(caller("b"), epoch.Add(time.Minute))
	l.Suspend()
	if !l.Due(epoch).IsZero() {
		t.Error("who waits for a driver that is away is woken before that is back")
	}
}

func TestPollsGoFirstAndCanBeAbandoned(t *testing.T) {
	l := newLimiter(2)
	l.take("a", epoch)
	l.take("c", epoch)
	l.take("b", epoch)
	first, second := l.AcquirePoll(epoch), l.AcquirePoll(epoch)
	l.done("a", epoch)
	select {
	case <-first:
	default:
		t.Error("the first poll was not told of its slot before somebody called Next")
	}
	wantNext(t, l, epoch)
	l.AbandonPoll(second, epoch)
	l.AbandonPoll(first, epoch)
	wantNext(t, l, epoch, "b")
}

func TestPollsThatNeverEndStarveNoMutation(t *testing.T) {
	for _, limit := range []int{1, 2, 5} {
		l := newLimiter(limit)
		for range 20 * limit {
			l.AcquirePoll(epoch)
		}
		if l.take("a", epoch) {
			t.Fatalf("limit %d: a mutation beside as many polls as may be", limit)
		}
		// Each poll that ends is followed by another.
		for ends := 1; ; ends++ {
			l.ReleasePoll(epoch)
			turns := l.Next(epoch)
			l.AcquirePoll(epoch)
			if len(turns) > 0 {
				break
			}
			if ends > limit {
				t.Fatalf("limit %d: after %d polls the mutation waits still", limit, ends)
			}
		}
		if !l.take("a", epoch) {
			t.Errorf("limit %d: the mutation's turn was given away", limit)
		}
	}
}

func TestPollsTakeAllSlotsThatNoMutationCanUse(t *testing.T) {
	l := New(4, instance.DefaultCredentialRetry)
	l.take("a", epoch)
	l.end(caller("a"), epoch, epoch, &instance.Failure{Class: instance.Quota})
	if l.ask("b", epoch) {
		t.Fatal("b may call though the breaker is open")
	}
	for i := range 4 {
		if l.AcquirePoll(epoch) != nil {
			t.Errorf("poll %d waits for a slot that nobody can use", i)
		}
	}
	if l.AcquirePoll(epoch) == nil {
		t.Error("a poll got a slot beyond the limit")
	}
}

// BenchmarkLongQueue grants turns to 10,000 machines that queue in ten accounts.
func BenchmarkLongQueue(b *testing.B) {
	l := New(64, instance.DefaultCredentialRetry)
	key := func(i int) Key { return Key{Account: uint64(i % 10), Operation: instance.Create} }
	all := make([]Caller, 10_000)
	for i := range all {
		all[i] = caller(fmt.Sprint(i))
		l.queue(all[i], key(i), epoch)
	}
	l.Next(epoch)
	b.ResetTimer()
	for i := range b.N {
		n := i % len(all)
		if !l.Begin(all[n], key(n), epoch) {
			b.Fatalf("%d has no turn", n)
		}
		l.end(all[n], epoch, epoch, nil)
		l.queue(all[n], key(n), epoch)
		l.Next(epoch)
	}
}
