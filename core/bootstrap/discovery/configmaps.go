package discovery

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxConfigMaps bounds of how many keys the answers are kept.
const maxConfigMaps = 1024

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
	known map[dataKey]*Answer[T]
}

// read returns what is under a key. A ConfigMap that is not there, or may not be read, is an
// IncompleteError that begins with where it is named.
func (c *configMaps[T]) read(ctx context.Context, name dataKey, namedBy string) (T, error) {
	found, err := c.answer(name).Get(c.clock.Now(), func(last *T) (none T, err error) {
		given := &corev1.ConfigMap{}
		err = c.live.Get(ctx, name.NamespacedName, given)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && last == nil:
			return none, unreadable(namedBy, err)
		case apierrors.IsForbidden(err):
			return none, err
		case err != nil:
			return none, fmt.Errorf("read ConfigMap %s: %w", name.NamespacedName, err)
		}
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

// answer returns the answer for a key.
func (c *configMaps[T]) answer(name dataKey) *Answer[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, is := c.known[name]; is {
		return known
	}
	if c.known == nil || len(c.known) >= maxConfigMaps {
		c.known = map[dataKey]*Answer[T]{}
	}
	c.known[name] = &Answer[T]{}
	return c.known[name]
}
