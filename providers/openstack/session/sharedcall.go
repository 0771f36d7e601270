package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// sharedCall is one piece of work that any number of callers wait for. It goes on when they stop
// waiting.
type sharedCall[V any] struct {
	done     chan struct{}
	value    V
	err      error
	panicked string
}

func newSharedCall[V any]() *sharedCall[V] { return &sharedCall[V]{done: make(chan struct{})} }

// start starts work that does not end with ctx, whose values it keeps. Each request in it has a
// timeout of its own.
func (f *sharedCall[V]) start(ctx context.Context, work func(context.Context) (V, error)) {
	go func() {
		defer close(f.done)
		// Those who wait panic in its stead: there is somebody to catch it there, and to log where
		// it came from.
		defer func() {
			if cause := recover(); cause != nil {
				f.panicked = fmt.Sprintf("%v\n%s", cause, debug.Stack())
			}
		}()
		f.value, f.err = work(context.WithoutCancel(ctx))
	}()
}

// wait returns what came of the work, or ctx's error.
func (f *sharedCall[V]) wait(ctx context.Context) (V, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
	if f.panicked != "" {
		panic(f.panicked)
	}
	return f.value, f.err
}

// errPanicked is what came of work that did not come to an end. Nobody sees it.
var errPanicked = errors.New("panicked")

// memory keeps what was looked up, by name. Whoever asks at the same time for the same name shares
// one call. Errors are not kept.
type memory[V any] struct {
	clock func() time.Time

	mu    sync.Mutex
	known map[string]kept[V]
	calls map[string]*sharedCall[V]
}

type kept[V any] struct {
	value V
	until time.Time
}

// rememberFor is how long a lookup is believed. Names are given anew now and then, by people.
const rememberFor = 10 * time.Minute

func newMemory[V any](clock func() time.Time) *memory[V] {
	return &memory[V]{clock: clock, known: map[string]kept[V]{}, calls: map[string]*sharedCall[V]{}}
}

// get returns what is kept for a name, or what ask returns.
func (m *memory[V]) get(ctx context.Context, name string, ask func(context.Context) (V, error)) (V, error) {
	m.mu.Lock()
	if found, is := m.known[name]; is && m.clock().Before(found.until) {
		m.mu.Unlock()
		return found.value, nil
	}
	f := m.calls[name]
	if f == nil {
		f = newSharedCall[V]()
		m.calls[name] = f
		f.start(ctx, func(ctx context.Context) (value V, err error) {
			err = errPanicked
			defer func() { m.finished(name, f, value, err) }()
			return ask(ctx)
		})
	}
	m.mu.Unlock()
	return f.wait(ctx)
}

// finished keeps what a shared call brought, unless forget was called since it was started.
func (m *memory[V]) finished(name string, f *sharedCall[V], value V, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[name] != f {
		return
	}
	delete(m.calls, name)
	if err != nil {
		return
	}
	now := m.clock()
	for other, one := range m.known {
		if !now.Before(one.until) {
			delete(m.known, other)
		}
	}
	m.known[name] = kept[V]{value: value, until: now.Add(rememberFor)}
}

// forget drops everything, also what is on its way.
func (m *memory[V]) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.calls = map[string]kept[V]{}, map[string]*sharedCall[V]{}
}
