package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// flight is one piece of work that any number of callers wait for. It goes on when they stop
// waiting.
type flight[V any] struct {
	done     chan struct{}
	value    V
	err      error
	panicked string
}

func newFlight[V any]() *flight[V] { return &flight[V]{done: make(chan struct{})} }

// launch starts work that does not end with ctx, whose values it keeps. Each request in it has a
// timeout of its own.
func (f *flight[V]) launch(ctx context.Context, work func(context.Context) (V, error)) {
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
func (f *flight[V]) wait(ctx context.Context) (V, error) {
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

	mu      sync.Mutex
	known   map[string]kept[V]
	flights map[string]*flight[V]
}

type kept[V any] struct {
	value V
	until time.Time
}

// rememberFor is how long a lookup is believed. Names are given anew now and then, by people.
const rememberFor = 10 * time.Minute

func newMemory[V any](clock func() time.Time) *memory[V] {
	return &memory[V]{clock: clock, known: map[string]kept[V]{}, flights: map[string]*flight[V]{}}
}

// get returns what is kept for a name, or what ask returns.
func (m *memory[V]) get(ctx context.Context, name string, ask func(context.Context) (V, error)) (V, error) {
	m.mu.Lock()
	if found, is := m.known[name]; is && m.clock().Before(found.until) {
		m.mu.Unlock()
		return found.value, nil
	}
	f := m.flights[name]
	if f == nil {
		f = newFlight[V]()
		m.flights[name] = f
		f.launch(ctx, func(ctx context.Context) (value V, err error) {
			err = errPanicked
			defer func() { m.landed(name, f, value, err) }()
			return ask(ctx)
		})
	}
	m.mu.Unlock()
	return f.wait(ctx)
}

// landed keeps what a flight brought, unless forget was called since it was launched.
func (m *memory[V]) landed(name string, f *flight[V], value V, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.flights[name] != f {
		return
	}
	delete(m.flights, name)
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
	m.known, m.flights = map[string]kept[V]{}, map[string]*flight[V]{}
}
