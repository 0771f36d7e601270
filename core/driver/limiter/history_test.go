package limiter

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-dev/millwright/core/instance"
)

// history is a limiter, and what somebody knows of it who only sees what is asked and answered.
type history struct {
	l     *Limiter
	now   time.Time
	limit int
	// arrived is when whoever is in the queue, or has a turn, came; asked counts them. key is what
	// they want, or call.
	arrived map[Caller]int
	asked   int
	key     map[Caller]Key
	// began holds the calls under way.
	began map[Caller]time.Time
	// owed are those who were told to wait, and who have not been woken since.
	owed map[Caller]bool
	// refused is until when each key is closed.
	refused map[Key]time.Time
	// polls are under way, pollWaiters not yet.
	polls       int
	pollWaiters []<-chan struct{}
}

func (h *history) isGranted(who Caller) bool {
	c, known := h.l.calls[who]
	return known && c.state == granted
}

// turned holds what follows from a machine that has a turn now and had none before.
func (h *history) turned(t *rapid.T, who Caller) {
	key := h.key[who]
	if h.now.Before(h.refused[key]) {
		t.Fatalf("%v has a turn while its breaker is open", who)
	}
	for other, arrival := range h.arrived {
		if other != who && h.key[other] == key && arrival < h.arrived[who] && !h.isGranted(other) {
			t.Fatalf("%v came before %v", who, other)
		}
	}
}

// wake takes over what Next returns.
func (h *history) wake(t *rapid.T) {
	before := h.granted()
	woken := map[Caller]bool{}
	for _, who := range h.l.Next(h.now) {
		woken[who] = true
		delete(h.owed, who)
	}
	h.forgetExpired()
	for who := range h.granted() {
		if before[who] {
			continue
		}
		h.turned(t, who)
		if !woken[who] {
			t.Fatalf("%v has a turn, and was not told", who)
		}
	}
}

// forgetExpired forgets those whose turn has expired. They had been told of it.
func (h *history) forgetExpired() {
	for who := range h.arrived {
		if _, known := h.l.calls[who]; !known {
			delete(h.arrived, who)
		}
	}
}

func (h *history) granted() map[Caller]bool {
	all := map[Caller]bool{}
	for c := range h.l.turns {
		all[c.caller] = true
	}
	return all
}

func (h *history) ask(t *rapid.T, who Caller, key Key) {
	if _, calls := h.began[who]; calls {
		if turn, _ := h.l.Ask(who, key, h.now); turn {
			t.Fatalf("%v has a second call", who)
		}
		return
	}
	had := h.isGranted(who) && h.key[who] == key
	turn, refusal := h.l.Ask(who, key, h.now)
	h.forgetExpired()
	if _, queues := h.arrived[who]; !queues || h.key[who] != key {
		h.asked++
		h.arrived[who], h.key[who] = h.asked, key
	}
	if turn && !had {
		h.turned(t, who)
	}
	if h.now.Before(h.refused[key]) && (turn || refusal == nil) {
		t.Fatalf("%v is not told that its breaker is open", who)
	}
	delete(h.owed, who)
	if !turn {
		h.owed[who] = true
	}
	h.wake(t)
}

func (h *history) begin(t *rapid.T, who Caller) {
	if !h.l.Begin(who, h.key[who], h.now) {
		return
	}
	if _, calls := h.began[who]; calls || h.now.Before(h.refused[h.key[who]]) {
		t.Fatalf("%v began a second call, or while its breaker was open", who)
	}
	h.began[who] = h.now
	delete(h.arrived, who)
	// However low the limit has become meanwhile: nobody begins beyond it.
	if len(h.began)+h.polls > h.limit {
		t.Fatalf("%d calls and %d polls are under way, the limit is %d", len(h.began), h.polls, h.limit)
	}
}

func (h *history) done(t *rapid.T, who Caller, failure *instance.Failure) {
	_, is := h.l.Done(who, h.began[who], h.now, failure)
	delete(h.began, who)
	b := h.l.breakers[h.key[who]]
	if is != nil {
		h.refused[h.key[who]] = b.until
	}
	h.wake(t)
}

func (h *history) away(t *rapid.T) {
	h.l.Suspend()
	for who := range h.arrived {
		h.owed[who] = true
	}
	clear(h.arrived)
	h.wake(t)
}

func (h *history) back(t *rapid.T, limit int) {
	h.limit = limit
	h.away(t)
	h.l.Resume(limit)
	h.wake(t)
	if len(h.owed) > 0 {
		t.Fatalf("the driver is back, and nobody tells %v", h.owed)
	}
}

// settle takes over polls that got their slots.
func (h *history) settle() {
	var waiting []<-chan struct{}
	for _, turn := range h.pollWaiters {
		select {
		case <-turn:
			h.polls++
		default:
			waiting = append(waiting, turn)
		}
	}
	h.pollWaiters = waiting
}

// check holds what is true at any time.
func (h *history) check(t *rapid.T) {
	h.settle()
	l := h.l
	if l.underWay != len(h.began)+h.polls || l.polls != h.polls {
		t.Fatalf("%d requests and %d polls are said to be under way, %d and %d are", l.underWay, l.polls, len(h.began)+h.polls, h.polls)
	}
	if len(l.turns) > 0 && l.underWay+len(l.turns) > l.limit {
		t.Fatalf("%d turns beside %d requests, the limit is %d", len(l.turns), l.underWay, l.limit)
	}
	active, queues := map[*breaker]int{}, map[*breaker]int{}
	for _, c := range l.calls {
		if c.state == queued {
			queues[c.breaker]++
			continue
		}
		active[c.breaker]++
	}
	for key, b := range l.breakers {
		if _, isQueued := l.queued[b]; b.active != active[b] || len(b.queue) != queues[b] || isQueued != (queues[b] > 0) {
			t.Fatalf("%v: %d active of %d, %d queue of %d", key, b.active, active[b], len(b.queue), queues[b])
		}
	}
	if c := l.first(h.now); c != nil && l.isFree() {
		t.Fatalf("a slot is free, and %v waits", c.caller)
	}
}

// drain lets all calls succeed and time pass, only as far as Due says, and expects that all who
// wait are woken and may call.
func (h *history) drain(t *rapid.T) {
	h.back(t, h.limit)
	for range 10_000 {
		for who := range h.granted() {
			h.begin(t, who)
		}
		for who := range h.began {
			h.done(t, who, nil)
		}
		h.settle()
		for ; h.polls > 0; h.polls-- {
			h.l.ReleasePoll(h.now)
		}
		h.wake(t)
		h.check(t)
		if len(h.arrived)+len(h.pollWaiters)+h.polls == 0 {
			return
		}
		if due := h.l.Due(h.now); due.After(h.now) {
			h.now = due
		}
		h.wake(t)
	}
	t.Fatalf("%v and %d polls wait for ever", h.arrived, len(h.pollWaiters))
}

func TestLimiterHoldsInEveryHistory(t *testing.T) {
	who := rapid.Custom(func(t *rapid.T) Caller { return caller(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "who"))) })
	key := rapid.Custom(func(t *rapid.T) Key {
		return Key{Account: uint64(rapid.IntRange(0, 1).Draw(t, "account")), Operation: rapid.SampledFrom([]instance.Operation{instance.Create, instance.Delete}).Draw(t, "operation")}
	})
	failures := rapid.SampledFrom([]*instance.Failure{
		nil, nil, nil, {Class: instance.Quota}, {Class: instance.Credentials}, {Class: instance.RateLimited},
		{Class: instance.RateLimited, RetryAfter: time.Minute}, {Class: instance.SpecInvalid},
	})
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		h := &history{
			l: New(limit, instance.DefaultCredentialRetry), now: epoch, limit: limit,
			arrived: map[Caller]int{}, key: map[Caller]Key{}, began: map[Caller]time.Time{},
			owed: map[Caller]bool{}, refused: map[Key]time.Time{},
		}
		under := func(t *rapid.T) Caller {
			var all []Caller
			for i := range 10 {
				if _, calls := h.began[caller(fmt.Sprint(i))]; calls {
					all = append(all, caller(fmt.Sprint(i)))
				}
			}
			if len(all) == 0 {
				t.Skip("no call is under way")
			}
			return rapid.SampledFrom(all).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask":   func(t *rapid.T) { h.ask(t, who.Draw(t, "who"), key.Draw(t, "key")) },
			"again": func(t *rapid.T) { w := who.Draw(t, "who"); h.ask(t, w, h.key[w]) },
			"begin": func(t *rapid.T) { h.begin(t, who.Draw(t, "who")) },
			"done":  func(t *rapid.T) { h.done(t, under(t), failures.Draw(t, "failure")) },
			"drop": func(t *rapid.T) {
				w := who.Draw(t, "who")
				h.l.Drop(w)
				delete(h.arrived, w)
				delete(h.owed, w)
				h.wake(t)
			},
			"waitForever": func(t *rapid.T) {
				w := who.Draw(t, "who")
				h.l.Wait(w, time.Time{})
				h.owed[w] = true
				h.wake(t)
			},
			"waitUntil": func(t *rapid.T) {
				w := who.Draw(t, "who")
				h.l.Wait(w, h.now.Add(time.Second))
				h.owed[w] = true
				h.now = h.now.Add(time.Second)
				h.wake(t)
				if h.owed[w] {
					t.Fatalf("%v was not woken in time", w)
				}
			},
			"away": h.away,
			"back": func(t *rapid.T) { h.back(t, rapid.IntRange(1, 6).Draw(t, "limit")) },
			"poll": func(*rapid.T) {
				if turn := h.l.AcquirePoll(h.now); turn != nil {
					h.pollWaiters = append(h.pollWaiters, turn)
					return
				}
				h.polls++
			},
			"releasePoll": func(t *rapid.T) {
				if h.polls == 0 {
					t.Skip("no poll is under way")
				}
				h.polls--
				h.l.ReleasePoll(h.now)
				h.wake(t)
			},
			"abandon": func(t *rapid.T) {
				if len(h.pollWaiters) == 0 {
					t.Skip("no poll waits")
				}
				h.l.AbandonPoll(h.pollWaiters[0], h.now)
				h.pollWaiters = h.pollWaiters[1:]
				h.wake(t)
			},
			"pass": func(t *rapid.T) {
				h.now = h.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
				h.wake(t)
			},
			"": h.check,
		})
		h.drain(t)
	})
}
