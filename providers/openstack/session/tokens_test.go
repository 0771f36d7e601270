package session_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// A token is renewed at half of its life, while it still serves: nobody waits for that.
func TestTokensAreRenewedBeforeTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, now := newCloud(t), newClock()
		c.expires = now.Now().Add(time.Hour).Format(time.RFC3339)
		pool := c.pool(now)
		open := func(logins int) {
			t.Helper()
			if _, err := pool.Open(t.Context(), c.account(), ""); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			c.expectCount(login, logins)
		}
		open(1)
		now.advance(29 * time.Minute)
		open(1)
		c.on(login, say(503, ""))
		now.advance(time.Minute)
		open(2)
		open(2) // not at once again
		c.expires = now.Now().Add(time.Hour).Format(time.RFC3339)
		c.on(login, c.login)
		now.advance(time.Minute)
		open(3)
		now.advance(29 * time.Minute)
		open(3)
		// A Keystone whose clock is behind does not make each request a login.
		c.expires = now.Now().Format(time.RFC3339)
		now.advance(time.Minute)
		open(4)
		open(4)
	})
}
