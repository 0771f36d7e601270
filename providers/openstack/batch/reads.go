// Package batch answers many small questions with few big ones.
package batch

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Reads gathers questions about keys that have something in common, a scope. A question waits a
// moment for company; those that come while it is asked wait for that answer and then go together.
// An answer was asked for after the question: it is never older. The zero value is not usable; see
// New. It is safe for concurrent use.
type Reads[S comparable, V any] struct {
	most int
	wait time.Duration
	load func(ctx context.Context, scope S, keys []string) (map[string]V, error)

	mu     sync.Mutex
	scopes map[S]*line[V]
}

// line is who waits for one scope: it exists while anybody does.
type line[V any] struct {
	next []*round[V]
}

// round is one big question.
type round[V any] struct {
	keys []string
	// waiting is how many want its answer; nobody asks for those who have gone.
	waiting int
	done    chan struct{}
	answer  map[string]V
	err     error
}

// New returns a Reads that asks for up to most keys at once, and for fewer after a wait. What load
// does not have in its answer is the zero value. load gets a context of its own, which ends with
// nobody's: many wait for it, so it has to bound itself.
func New[S comparable, V any](
	most int, wait time.Duration, load func(ctx context.Context, scope S, keys []string) (map[string]V, error),
) *Reads[S, V] {
	return &Reads[S, V]{most: most, wait: wait, load: load, scopes: map[S]*line[V]{}}
}

// Get returns what load answers for the key, or the error of ctx once that has ended.
func (r *Reads[S, V]) Get(ctx context.Context, scope S, key string) (V, error) {
	mine := r.join(context.WithoutCancel(ctx), scope, key)
	select {
	case <-mine.done:
		return mine.answer[key], mine.err
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		mine.waiting--
		var none V
		return none, ctx.Err()
	}
}

// join puts the key into the next round that has room, unless a round that was not asked yet has
// it. It begins to ask when nobody does.
func (r *Reads[S, V]) join(ctx context.Context, scope S, key string) *round[V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, asking := r.scopes[scope]
	if !asking {
		waiting = &line[V]{}
		r.scopes[scope] = waiting
		defer func() { go r.ask(ctx, scope, waiting) }()
	}
	for _, already := range waiting.next {
		if slices.Contains(already.keys, key) {
			already.waiting++
			return already
		}
	}
	if n := len(waiting.next); n == 0 || len(waiting.next[n-1].keys) >= r.most {
		waiting.next = append(waiting.next, &round[V]{done: make(chan struct{})})
	}
	last := waiting.next[len(waiting.next)-1]
	last.keys = append(last.keys, key)
	last.waiting++
	return last
}

// gather waits for company, unless the next round is full or there is none.
func (r *Reads[S, V]) gather(waiting *line[V]) {
	r.mu.Lock()
	ready := len(waiting.next) == 0 || len(waiting.next[0].keys) >= r.most
	r.mu.Unlock()
	if !ready && r.wait > 0 {
		<-time.After(r.wait)
	}
}

// ask asks round by round until nobody waits.
func (r *Reads[S, V]) ask(ctx context.Context, scope S, waiting *line[V]) {
	for {
		r.gather(waiting)
		r.mu.Lock()
		if len(waiting.next) == 0 {
			delete(r.scopes, scope)
			r.mu.Unlock()
			return
		}
		now := waiting.next[0]
		waiting.next = waiting.next[1:]
		wanted := now.waiting > 0
		r.mu.Unlock()
		if wanted {
			now.answer, now.err = r.load(ctx, scope, now.keys)
		}
		close(now.done)
	}
}
