package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of what is kept: bytes of data, of which a parsed template takes dozens of times as many,
// with something for each key; and for how long it is kept when nobody asks for it.
const (
	maxKept     = 4 << 20
	bytesOfAKey = 512
	keptUnasked = 10 * time.Minute
)

// dataKey is a key of a ConfigMap.
type dataKey struct {
	types.NamespacedName
	key string
}

// configMaps reads what is under keys of ConfigMaps, each at most once a minute. It is safe for
// concurrent use.
type configMaps[T any] struct {
	live  client.Reader
	clock clock.PassiveClock
	// parse takes it from a ConfigMap's data. What the user has to mend is an IncompleteError.
	parse func(name dataKey, data map[string]string) (T, error)

	mu    sync.Mutex
	known map[dataKey]*known[T]
	// swept is when unused answers were last looked for.
	swept time.Time
}

// known is the answer for a key.
type known[T any] struct {
	Answer[T]
	bytes  int
	wanted time.Time
}

// read returns what is under a key. A ConfigMap that is not there, or may not be read, is an
// IncompleteError that begins with where it is named.
func (c *configMaps[T]) read(ctx context.Context, name dataKey, namedBy string) (T, error) {
	now := c.clock.Now()
	answer := c.answer(name, now)
	found, err := answer.Get(now, func(last *T) (none T, err error) {
		given := &corev1.ConfigMap{}
		err = c.live.Get(ctx, name.NamespacedName, given)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && last == nil:
			c.makeRoom(answer, 0)
			return none, unreadable(namedBy, err)
		case apierrors.IsForbidden(err):
			return none, err
		case err != nil:
			return none, fmt.Errorf("read ConfigMap %s: %w", name.NamespacedName, err)
		}
		c.makeRoom(answer, len(given.Data[name.key]))
		return c.parse(name, given.Data)
	})
	if apierrors.IsForbidden(err) {
		// The answer of before holds no longer.
		return found, unreadable(namedBy, err)
	}
	return found, err
}

// unreadable says that a ConfigMap cannot be read, and who names it.
func unreadable(namedBy string, err error) *IncompleteError {
	return &IncompleteError{Message: fmt.Sprintf("%s: %s", namedBy, err)}
}

// answer returns the answer for a key. It forgets what nobody has asked for.
func (c *configMaps[T]) answer(name dataKey, now time.Time) *known[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.swept) >= kept {
		c.swept = now
		maps.DeleteFunc(c.known, func(_ dataKey, k *known[T]) bool { return now.Sub(k.wanted) >= keptUnasked })
	}
	if c.known == nil {
		c.known = map[dataKey]*known[T]{}
	}
	answer, is := c.known[name]
	if !is {
		answer = &known[T]{}
		c.known[name] = answer
	}
	answer.wanted = now
	return answer
}

// makeRoom notes how many bytes an answer has from now on. While all have too many, it forgets the
// others that have not been asked for longest.
func (c *configMaps[T]) makeRoom(answer *known[T], bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer.bytes = bytes
	sum := 0
	for _, k := range c.known {
		sum += k.bytes + bytesOfAKey
	}
	if sum <= maxKept {
		return
	}
	oldestFirst := slices.SortedFunc(maps.Keys(c.known), func(a, b dataKey) int {
		return c.known[a].wanted.Compare(c.known[b].wanted)
	})
	for _, name := range oldestFirst {
		if sum > maxKept && c.known[name] != answer {
			sum -= c.known[name].bytes + bytesOfAKey
			delete(c.known, name)
		}
	}
}
