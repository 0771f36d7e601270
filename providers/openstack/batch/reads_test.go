package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asked collects what is asked for, and holds each question until it is let go.
type asked struct {
	mu     sync.Mutex
	rounds [][]string
	letGo  chan error
}

func (a *asked) load(_ context.Context, scope string, keys []string) (map[string]string, error) {
	a.mu.Lock()
	a.rounds = append(a.rounds, slices.Sorted(slices.Values(keys)))
	a.mu.Unlock()
	err := <-a.letGo
	answer := map[string]string{}
	for _, key := range keys {
		if key != "missing" {
			answer[key] = scope + ":" + key
		}
	}
	return answer, err
}

func TestReadsOfOneRoundShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{letGo: make(chan error)}
		reads := New(2, 0, a.load)
		answers := make(chan string, 10)
		get := func(key string) {
			go func() {
				answer, err := reads.Get(t.Context(), "s", key)
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
				answers <- answer
			}()
			synctest.Wait()
		}
		for _, key := range []string{"a", "b", "missing", "c"} {
			get(key)
		}
		for range 3 {
			a.letGo <- nil
			synctest.Wait()
		}
		want := [][]string{{"a"}, {"b", "missing"}, {"c"}}
		if !slices.EqualFunc(a.rounds, want, slices.Equal) {
			t.Errorf("asked for %v, want %v: the first alone, then two at a time", a.rounds, want)
		}
		var got []string
		for range 4 {
			got = append(got, <-answers)
		}
		if slices.Sort(got); !slices.Equal(got, []string{"", "s:a", "s:b", "s:c"}) {
			t.Errorf("answered %q", got)
		}
		if len(reads.scopes) != 0 {
			t.Errorf("%d scopes stay behind", len(reads.scopes))
		}
	})
}

// Who asks waits for company; a round that is full does not.
func TestReadsAreGatheredIntoRounds(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want [][]string
	}{
		{"alone", []string{"a"}, [][]string{{"a"}}},
		{"a full round", []string{"a", "b"}, [][]string{{"a", "b"}}},
		{"more", []string{"a", "b", "c"}, [][]string{{"a", "b"}, {"c"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &asked{letGo: make(chan error, len(c.keys))}
				for range c.keys {
					a.letGo <- nil
				}
				reads := New(2, time.Second, a.load)
				var all sync.WaitGroup
				began := time.Now()
				for _, key := range c.keys {
					all.Go(func() { _, _ = reads.Get(t.Context(), "s", key) })
					synctest.Wait()
				}
				all.Wait()
				if got := len(slices.Concat(a.rounds...)); len(a.rounds) != len(c.want) || got != len(c.keys) {
					t.Errorf("asked for %v, want %v", a.rounds, c.want)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A question is never answered by an older answer: what comes while one is under way waits for the
// next.
func TestAnswerIsNeverOlderThanItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{letGo: make(chan error)}
		reads := New(10, 0, a.load)
		for range 2 {
			go func() { _, _ = reads.Get(t.Context(), "s", "a") }()
			synctest.Wait()
		}
		a.letGo <- nil
		synctest.Wait()
		a.letGo <- nil
		synctest.Wait()
		if len(a.rounds) != 2 {
			t.Errorf("asked %d times for two questions of which the second came later", len(a.rounds))
		}
	})
}

func TestScopesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{letGo: make(chan error)}
		reads := New(10, 0, a.load)
		for _, scope := range []string{"one", "other"} {
			go func() { _, _ = reads.Get(t.Context(), scope, "a") }()
		}
		synctest.Wait()
		if len(a.rounds) != 2 {
			t.Errorf("%d of 2 scopes are asked for", len(a.rounds))
		}
		a.letGo <- nil
		a.letGo <- nil
	})
}

func TestCallerThatGivesUpDoesNotEndTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{letGo: make(chan error)}
		reads := New(10, 0, a.load)
		ctx, cancel := context.WithCancel(t.Context())
		gone, failed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := reads.Get(ctx, "s", "a"); gone <- err }()
		synctest.Wait()
		go func() { _, err := reads.Get(t.Context(), "s", "b"); failed <- err }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up was told %v", err)
		}
		a.letGo <- nil
		synctest.Wait()
		broken := errors.New("broken")
		a.letGo <- broken
		if err := <-failed; !errors.Is(err, broken) {
			t.Errorf("who stayed was told %v, want %v", err, broken)
		}
	})
}
