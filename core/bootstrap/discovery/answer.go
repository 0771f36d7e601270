package discovery

import (
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kept is for how long an answer of an API server holds.
const kept = time.Minute

// keptIncomplete is for how long an IncompleteError holds. It is less than the minute after which a
// Machine that waits for it is looked at again: that look shows what was mended.
const keptIncomplete = 10 * time.Second

// keptRefused is for how long an answer outlives an API server that refuses to give another. One
// that has just started forbids everything for moments, and machines join all the same. But an
// operator who takes rights away is to see that.
const keptRefused = 10 * time.Minute

// Answer is what an API server has said last. It holds for a minute. Then one caller asks again,
// and the others go on with it: a slow API server holds up nobody else. The zero value is none. It
// is safe for concurrent use.
type Answer[T any] struct {
	mu sync.Mutex
	// last is the latest answer, incomplete the error that holds in its place. At most one of them
	// is set.
	last       *T
	incomplete error
	// asked is when somebody set out to ask for it; asks are how many did.
	asked time.Time
	asks  int
	// heard is the ask of which the API server's word is the latest.
	heard int
	// refused is for how long the API server has refused. Time in which it was away is not counted:
	// refusedAt is zero unless its last word was to refuse.
	refused   time.Duration
	refusedAt time.Time
}

// Get returns the answer. Where one is due, ask asks for it, and gets the last one, nil for none.
// An IncompleteError of ask ends the last answer, and holds for ten seconds itself. Ten minutes of
// refusals end the last answer, too. Any other error leaves it: an API server that is away says
// nothing.
func (a *Answer[T]) Get(now time.Time, ask func(last *T) (T, error)) (T, error) {
	last, number, held := a.recall(now)
	var none T
	switch {
	case held != nil:
		return none, held
	case number == 0:
		return *last, nil
	}
	found, err := ask(last)
	a.mu.Lock()
	defer a.mu.Unlock()
	if number > a.heard {
		a.take(now, number, found, err)
	}
	switch {
	case a.last != nil:
		return *a.last, nil
	case a.incomplete != nil:
		return none, a.incomplete
	}
	return found, err
}

// recall returns the last answer, or the IncompleteError that holds instead. With a number the
// caller is to ask for another: it is that ask's.
func (a *Answer[T]) recall(now time.Time) (last *T, number int, held error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := now.Sub(a.asked)
	if a.last != nil && since < kept || a.incomplete != nil && since < keptIncomplete {
		return a.last, 0, a.incomplete
	}
	a.asked = now
	a.asks++
	return a.last, a.asks, nil
}

// take takes what the ask of this number, which began at that time, has brought.
func (a *Answer[T]) take(began time.Time, number int, found T, err error) {
	_, isOver := errors.AsType[*IncompleteError](err)
	switch {
	case err == nil:
		a.last, a.incomplete = &found, nil
	case isOver:
		a.last, a.incomplete = nil, err
	case isRefusal(err):
		a.heard, a.incomplete = number, nil
		a.refuse(began)
		return
	default:
		a.incomplete, a.refusedAt = nil, time.Time{}
		return
	}
	a.heard, a.refused, a.refusedAt = number, 0, time.Time{}
}

// refuse counts for how long the API server has refused, and ends the last answer in the end.
func (a *Answer[T]) refuse(now time.Time) {
	if !a.refusedAt.IsZero() {
		a.refused += now.Sub(a.refusedAt)
	}
	a.refusedAt = now
	if a.refused >= keptRefused {
		a.last, a.refused = nil, 0
	}
}

// isRefusal says whether an API server has answered that it does not say. One that asks to come
// back later has not: it is as good as away.
func isRefusal(err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is {
		return errors.Is(err, errLostRights)
	}
	code := status.ErrStatus.Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}
