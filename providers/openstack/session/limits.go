package session

import (
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

// project is what all sessions of a project share, whichever credential they use.
type project struct {
	// changes is the line of machines without volumes, volumeChanges of those with.
	changes, volumeChanges *changeLimiter
	services               map[string]*bounds
	// used is when a session was last opened. The pool guards it.
	used time.Time
}

func newProject(o Options) *project {
	reads := make(chan struct{}, o.MaxConcurrent)
	p := &project{changes: newChangeLimiter(o), volumeChanges: newChangeLimiter(o), services: map[string]*bounds{}}
	for _, service := range []string{serviceCompute, serviceNetwork, serviceImage, serviceVolume} {
		p.services[service] = &bounds{reads: reads}
	}
	return p
}

// bounds are what the requests of a project to one service keep within. Reads do not wait for
// changes: without the list of all machines nobody would hear what has come of them.
type bounds struct {
	// reads has a place for each read that may be under way, to any service; nil where there is no
	// bound.
	reads chan struct{}
	pause pause
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

// admit has a read wait for a place, and returns what gives it back. It fails at once while the
// service wants a pause.
func (w *wire) admit(request *http.Request) (release func(), err error) {
	release = func() {}
	if err := w.paused(); err != nil {
		return nil, err
	}
	if w.reads == nil || !isRead(request) {
		return release, nil
	}
	select {
	case w.reads <- struct{}{}:
		release = func() { <-w.reads }
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	// Those who were let in before may have been told to wait.
	if err := w.paused(); err != nil {
		release()
		return nil, err
	}
	return release, nil
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
