package session_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

func TestRetryAfterIsObeyed(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		answer       http.HandlerFunc
		wait         time.Duration
	}{
		{"429", "RATE_LIMITED", say(429, "", "Retry-After", "30"), 30 * time.Second},
		{"413", "RATE_LIMITED", say(413, "", "Retry-After", "30"), 30 * time.Second},
		{"503", "OUTCOME_UNKNOWN", say(503, "", "Retry-After", "30"), 30 * time.Second},
		{"a date", "RATE_LIMITED", say(429, "", "Retry-After", "Sun, 22 Nov 2026 12:00:40 GMT", "Date", "Sun, 22 Nov 2026 12:00:10 GMT"), 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, now := newCloud(t), newClock()
			c.on(listServers, test.answer)
			c.on(listPorts, say(200, `{"ports": []}`))
			pool := c.pool(now)
			s, err := pool.Open(t.Context(), c.account(), "")
			if err != nil {
				t.Fatal(err)
			}
			colleague := c.account()
			colleague.Password = "another one"
			other, err := pool.Open(t.Context(), colleague, "2.79")
			if err != nil {
				t.Fatal(err)
			}
			err = list(t.Context(), s)
			expect(t, err, test.reason)
			if waitOf(err) != test.wait {
				t.Errorf("wait %s", waitOf(err))
			}
			c.on(listServers, say(200, `{"servers": []}`))
			now.advance(test.wait - time.Second)
			for _, one := range []*session.Session{s, other} {
				for range 3 {
					err := list(t.Context(), one)
					expect(t, err, "RATE_LIMITED", "compute")
					if waitOf(err) != time.Second {
						t.Errorf("wait %s", waitOf(err))
					}
				}
			}
			c.expectCount(listServers, 1)
			if err := get(t.Context(), s.Network, s.Network.ServiceURL("ports")); err != nil {
				t.Errorf("the other services suffer: %v", err)
			}
			now.advance(time.Second)
			if err := list(t.Context(), s); err != nil {
				t.Error(err)
			}
			c.expectCount(listServers, 2)
		})
	}
}

func TestTheLongestPauseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, now := newCloud(t), newClock()
		waits := make(chan string)
		c.on(listServers, func(w http.ResponseWriter, r *http.Request) { say(429, "", "Retry-After", <-waits)(w, r) })
		s := c.open(now)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { expect(t, list(t.Context(), s), "RATE_LIMITED") })
		}
		synctest.Wait()
		for _, wait := range []string{"5", "30", "5"} {
			waits <- wait
			synctest.Wait()
		}
		all.Wait()
		if got := waitOf(list(t.Context(), s)); got != 30*time.Second {
			t.Errorf("wait %s", got)
		}
	})
}

func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		var under, most atomic.Int32
		open := make(chan struct{})
		c.on(listServers, func(w http.ResponseWriter, r *http.Request) {
			if n := under.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-open
			under.Add(-1)
			say(200, `{"servers": []}`)(w, r)
		})
		pool := session.NewPool(session.Options{Transport: c, MaxConcurrent: 3})
		s, err := pool.Open(t.Context(), c.account(), "")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := list(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := list(ctx, s); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(open)
		all.Wait()
		if most.Load() != 3 {
			t.Errorf("%d requests at once, want 3", most.Load())
		}
		c.expectCount(listServers, 20)
	})
}

func TestThoseWhoWaitForAPlaceHearOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		open := make(chan struct{})
		c.on(listServers, func(w http.ResponseWriter, r *http.Request) {
			<-open
			say(429, "", "Retry-After", "30")(w, r)
		})
		pool := session.NewPool(session.Options{Transport: c, MaxConcurrent: 1})
		s, err := pool.Open(t.Context(), c.account(), "")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { expect(t, list(t.Context(), s), "RATE_LIMITED") })
		}
		synctest.Wait()
		close(open)
		all.Wait()
		c.expectCount(listServers, 1)
	})
}
