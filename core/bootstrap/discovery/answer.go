package discovery

import (
	"errors"
	"sync"
	"time"
)

// kept is for how long an answer of an API server holds.
const kept = time.Minute

// Answer is what an API server has said last. It holds for a minute. Then one caller asks again,
// and the others go on with it: a slow API server holds up nobody else. The zero value is none. It
// is safe for concurrent use.
type Answer[T any] struct {
	mu sync.Mutex
	// last is nil while there is none.
	last *T
	// asked is when somebody set out to ask for it.
	asked time.Time
}

// Get returns the answer. Where one is due, ask asks for it, and gets the last one, nil for none.
// An IncompleteError of ask ends the last answer. Any other error leaves it: an API server that is
// away, or has just started and forbids everything, says nothing.
func (a *Answer[T]) Get(now time.Time, ask func(last *T) (T, error)) (T, error) {
	last, isDue := a.recall(now)
	if !isDue {
		return *last, nil
	}
	found, err := ask(last)
	_, isOver := errors.AsType[*IncompleteError](err)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.last = &found
	case isOver:
		a.last = nil
	}
	if a.last == nil {
		return found, err
	}
	return *a.last, nil
}

// recall returns the last answer, and whether the caller is to ask for another.
func (a *Answer[T]) recall(now time.Time) (last *T, isDue bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && now.Sub(a.asked) < kept {
		return a.last, false
	}
	a.asked = now
	return a.last, true
}
