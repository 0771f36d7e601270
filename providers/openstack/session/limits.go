package session

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/sdk"
)

// maxPause is the longest that a cloud's Retry-After is obeyed. Beyond that it is more likely a
// clock that is wrong.
const maxPause = 10 * time.Minute

// slowAnswer is the part of a request's timeout after which an answer is a slow one. With twice as
// many writes under way, which one more after each answer can lead to, it still comes in time.
const slowAnswer = 3

// project is what all sessions of a project share, whichever credential they use.
type project struct {
	services map[string]*bounds
	// used is when a session was last opened. The pool guards it.
	used time.Time
}

func newProject(o Options) *project {
	reads := make(chan struct{}, o.MaxConcurrent)
	p := &project{services: map[string]*bounds{}}
	for _, service := range []string{serviceCompute, serviceNetwork, serviceImage, serviceVolume} {
		p.services[service] = &bounds{reads: reads, writes: newWriteLimiter(o.MaxConcurrent, o.RequestTimeout/slowAnswer)}
	}
	return p
}

// bounds are what the requests of a project to one service keep within. Reads do not wait for
// writes: without the list of all machines nobody would hear what has come of them.
type bounds struct {
	// reads has a place for each read that may be under way, to any service. It and writes are nil
	// where there is no bound.
	reads  chan struct{}
	writes *writeLimiter
	pause  pause
}

// pause is the time for which a service does not want to be asked.
type pause struct {
	mu    sync.Mutex
	until time.Time
}

// left returns how long the pause still lasts; 0 for none.
func (p *pause) left(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.until.Sub(now))
}

// heed starts a pause where an answer asks for one.
func (p *pause) heed(answer *http.Response, now time.Time) {
	if !asksToWait(answer.StatusCode) {
		return
	}
	wait := retryAfter(answer.Header, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(wait); wait > 0 && until.After(p.until) {
		p.until = until
	}
}

// asksToWait says whether Retry-After means something with a status. 413 is what OpenStack had
// before there was 429.
func asksToWait(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestEntityTooLarge || status == http.StatusServiceUnavailable
}

// retryAfter returns what Retry-After asks for, at most maxPause; 0 where it asks for nothing. A
// date is taken by the cloud's own clock, if it tells it.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		// First to its limits: a number of seconds can be more than a duration holds.
		return time.Duration(max(0, min(seconds, int(maxPause/time.Second)))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if told, err := http.ParseTime(header.Get("Date")); err == nil {
		now = told
	}
	return max(0, min(at.Sub(now), maxPause))
}

// admit waits for a place, and returns what gives it back, which is told when the request was sent.
// It fails at once while the service wants a pause.
func (w *wire) admit(request *http.Request) (release func(sent time.Time), err error) {
	if err := w.paused(); err != nil {
		return nil, err
	}
	if release, err = w.acquire(request); err != nil {
		return nil, err
	}
	// Those who were let in before may have been told to wait.
	if err := w.paused(); err != nil {
		release(time.Time{})
		return nil, err
	}
	return release, nil
}

// acquire waits for a place among the reads, or among the writes.
func (w *wire) acquire(request *http.Request) (release func(sent time.Time), err error) {
	switch {
	case w.writes == nil:
		return func(time.Time) {}, nil
	case isRead(request):
		return w.acquireRead(request.Context())
	}
	return w.acquireWrite(request.Context())
}

func (w *wire) acquireRead(ctx context.Context) (release func(sent time.Time), err error) {
	select {
	case w.reads <- struct{}{}:
		return func(time.Time) { <-w.reads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acquireWrite waits for half the time that the caller has: what is left is for the answer.
func (w *wire) acquireWrite(ctx context.Context) (release func(sent time.Time), err error) {
	patient := ctx
	if end, ends := ctx.Deadline(); ends {
		var cancel context.CancelFunc
		patient, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	switch {
	case w.writes.acquire(patient):
		return func(sent time.Time) { w.writes.release(sent, w.options.Clock()) }, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, &verdict{sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED,
		"The cloud's "+w.service+" service answers slowly, and other requests wait for it already.", sdk.WithRetryAfter(w.writes.slow))}
}

// isRead says whether a request changes nothing.
func isRead(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

func (w *wire) paused() error {
	left := w.pause.left(w.options.Clock())
	if left == 0 {
		return nil
	}
	return &verdict{sdk.NewError(driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED,
		"The cloud's "+w.service+" service has asked to wait before the next request.", sdk.WithRetryAfter(left))}
}
