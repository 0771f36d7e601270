package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millwright-dev/millwright/sdk"
)

// session is a client of a cloud.
type session struct{ closed atomic.Bool }

func (s *session) Close() error {
	s.closed.Store(true)
	return nil
}

// logins opens sessions, and counts how often.
type logins struct {
	clients sdk.Clients[*session]
	opened  atomic.Int32
}

func (l *logins) open(context.Context) (*session, error) {
	l.opened.Add(1)
	return &session{}, nil
}

// get returns the session of an account.
func (l *logins) get(t *testing.T, account ...string) *session {
	t.Helper()
	s, err := l.clients.Get(t.Context(), l.open, account...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEachAccountHasAClientOfItsOwn(t *testing.T) {
	var l logins
	first := l.get(t, "https://cloud", "opens all")
	if l.get(t, "https://cloud", "opens all") != first || l.opened.Load() != 1 {
		t.Errorf("the same account was opened %d times", l.opened.Load())
	}
	for _, other := range [][]string{{"https://cloud", "opens else"}, {"https://other", "opens all"}, {"https://cloudopens all"}, {"https://cloudo", "pens all"}, {}} {
		if l.get(t, other...) == first {
			t.Errorf("%q has the client of another account", other)
		}
	}
	if held := fmt.Sprintf("%+v", &l.clients); strings.Contains(held, "opens") {
		t.Errorf("a secret is kept in the clear: %s", held)
	}
}

func TestManyCallersOpenOnce(t *testing.T) {
	for name, want := range map[string]error{"a client": nil, "an error": errors.New("refused")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l logins
				answer := make(chan struct{})
				slow := func(ctx context.Context) (*session, error) {
					<-answer
					s, _ := l.open(ctx)
					return s, want
				}
				var all sync.WaitGroup
				got := make([]*session, 50)
				for i := range got {
					all.Go(func() {
						s, err := l.clients.Get(t.Context(), slow, "token")
						if !errors.Is(err, want) {
							t.Errorf("got %v, want %v", err, want)
						}
						got[i] = s
					})
				}
				synctest.Wait()
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := l.clients.Get(gone, slow, "token"); !errors.Is(err, context.Canceled) {
					t.Errorf("one who does not wait: %v", err)
				}
				close(answer)
				all.Wait()
				for i, s := range got {
					if s != got[0] {
						t.Errorf("caller %d has another client", i)
					}
				}
				if l.opened.Load() != 1 {
					t.Errorf("opened %d times", l.opened.Load())
				}
			})
		})
	}
}

func TestErrorsAreNotKept(t *testing.T) {
	var l logins
	refused := errors.New("refused")
	_, err := l.clients.Get(t.Context(), func(context.Context) (*session, error) { return nil, refused }, "token")
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if l.get(t, "token") == nil || l.opened.Load() != 1 {
		t.Errorf("after an error the account was opened %d times", l.opened.Load())
	}
}

// A caller who gives up, or whose open panics, takes nobody along who waits for it.
func TestWhoWaitedOpensAgain(t *testing.T) {
	for name, fail := range map[string]func(giveUp func()) error{
		"after a panic":           func(func()) error { panic("a bug") },
		"after its caller's end":  func(giveUp func()) error { giveUp(); return context.Canceled },
		"after its caller's exit": func(func()) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l logins
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				failing := make(chan struct{})
				go func() {
					defer func() { _ = recover() }()
					_, _ = l.clients.Get(ctx, func(context.Context) (*session, error) {
						<-failing
						return nil, fail(giveUp)
					}, "token")
				}()
				synctest.Wait()
				var waiting sync.WaitGroup
				for range 10 {
					waiting.Go(func() {
						if s, err := l.clients.Get(t.Context(), l.open, "token"); s == nil || err != nil {
							t.Errorf("got %v, %v", s, err)
						}
					})
				}
				synctest.Wait()
				close(failing)
				waiting.Wait()
				if l.opened.Load() != 1 {
					t.Errorf("opened %d times again", l.opened.Load())
				}
			})
		})
	}
}

func TestClientsThatNobodyUsesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logins
		used, idle := l.get(t, "used"), l.get(t, "idle")
		for range 2 {
			<-time.After(30 * time.Minute)
			if l.get(t, "used") != used {
				t.Error("a client that is used was dropped")
			}
		}
		synctest.Wait()
		if used.closed.Load() || !idle.closed.Load() {
			t.Errorf("closed: used %t, idle %t", used.closed.Load(), idle.closed.Load())
		}
		if l.get(t, "idle") == idle {
			t.Error("a client that was closed is still kept")
		}
	})
}
