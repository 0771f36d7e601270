package sdk

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"time"
)

// Clients keeps one client of the cloud for each account, so that calls share its login and its
// connections. What names an account is kept as a hash alone: secrets stand in no key. It remembers
// nothing about machines. The zero value is ready, and safe for concurrent use.
type Clients[C any] struct {
	mu   sync.Mutex
	kept map[accountKey]*keptClient[C]
}

// clientIdle is after how long a client goes that nobody has asked for, such as that of a password
// that was replaced. No call lasts so long.
const clientIdle = time.Hour

// accountKey is a hash of all that names an account.
type accountKey [sha256.Size]byte

// keptClient is a client that is there, or is being opened.
type keptClient[C any] struct {
	// ended is closed when open has ended. client, err and shared are fixed from then on.
	ended  chan struct{}
	client C
	err    error
	// shared says that the outcome is also that of the callers who waited for it.
	shared bool
	// used is when somebody last asked. The lock of Clients guards it.
	used time.Time
}

// Get returns the account's client, which open makes if there is none. account is all that open
// goes by: the secrets and where they are sent, such as endpoint, user and password, always in the
// same order. The context that open gets ends with its caller's call: a client that keeps one needs
// context.WithoutCancel.
//
// Callers for the same account wait for one open, and share its client or its error. An error is
// not kept: the next caller opens again. So does one who waited for an open that panicked, or that
// failed when its own caller's context had ended. One who waits gets the context's error when his
// own ends.
//
// A client that nobody has asked for in an hour is dropped at a later Get, and closed if it is an
// io.Closer. Ask for it in each call.
func (c *Clients[C]) Get(ctx context.Context, open func(context.Context) (C, error), account ...string) (C, error) {
	key := keyOf(account)
	for {
		one, isNew := c.find(key)
		if isNew {
			return c.open(ctx, open, key, one)
		}
		select {
		case <-one.ended:
		case <-ctx.Done():
			var none C
			return none, ctx.Err()
		}
		if one.shared {
			return one.client, one.err
		}
	}
}

// keyOf hashes each part with its length: no part's end can be another's beginning.
func keyOf(account []string) accountKey {
	hash := sha256.New()
	for _, part := range account {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return accountKey(hash.Sum(nil))
}

// find returns what is kept for a key, or a new one, which the caller has to open.
func (c *Clients[C]) find(key accountKey) (_ *keptClient[C], isNew bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropIdle(now)
	one := c.kept[key]
	if isNew = one == nil; isNew {
		one = &keptClient[C]{ended: make(chan struct{})}
		if c.kept == nil {
			c.kept = map[accountKey]*keptClient[C]{}
		}
		c.kept[key] = one
	}
	one.used = now
	return one, isNew
}

// open makes the client. It is forgotten again unless that succeeds.
func (c *Clients[C]) open(ctx context.Context, open func(context.Context) (C, error), key accountKey, one *keptClient[C]) (C, error) {
	defer func() {
		if !one.shared || one.err != nil {
			c.mu.Lock()
			delete(c.kept, key)
			c.mu.Unlock()
		}
		close(one.ended)
	}()
	one.client, one.err = open(ctx)
	one.shared = one.err == nil || ctx.Err() == nil
	return one.client, one.err
}

// dropIdle forgets the clients that nobody has asked for in a long time. The caller has the lock.
func (c *Clients[C]) dropIdle(now time.Time) {
	for key, one := range c.kept {
		select {
		case <-one.ended:
		default:
			continue // it is being opened
		}
		if now.Sub(one.used) < clientIdle {
			continue
		}
		delete(c.kept, key)
		if closer, is := any(one.client).(io.Closer); is {
			go closer.Close() // nobody waits for it
		}
	}
}
