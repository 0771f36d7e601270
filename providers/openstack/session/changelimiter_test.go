package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// slowCloud answers writes to Neutron one after another, as a Neutron of one worker does, and reads
// at once.
type slowCloud struct {
	*cloud
	*session.Session
	// each is how long one takes, in nanoseconds.
	each atomic.Int64
	// under is how many are under way, most how many have been at once.
	under, most atomic.Int32
}

const createPort = "POST /network/v2.0/ports"

func newSlowCloud(t *testing.T, each time.Duration) *slowCloud {
	s := &slowCloud{cloud: newCloud(t)}
	s.each.Store(int64(each))
	worker := make(chan struct{}, 1)
	s.on(createPort, func(w http.ResponseWriter, r *http.Request) {
		n := s.under.Add(1)
		defer s.under.Add(-1)
		for old := s.most.Load(); n > old && !s.most.CompareAndSwap(old, n); {
			old = s.most.Load()
		}
		worker <- struct{}{}
		<-time.After(time.Duration(s.each.Load()))
		<-worker
		say(201, `{"port": {"id": "p"}}`)(w, r)
	})
	s.on(listServers, say(200, `{"servers": []}`))
	pool := session.NewPool(session.Options{Transport: s.cloud})
	var err error
	if s.Session, err = pool.Open(t.Context(), s.account(), ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// createPort makes a port for a machine.
func (s *slowCloud) createPort(ctx context.Context) error {
	ctx, end, err := session.StartChange(ctx, s.Session, false)
	if err != nil {
		return err
	}
	defer end()
	return ports.Create(ctx, s.Network, ports.CreateOpts{NetworkID: "n"}).Err
}

// createPorts makes that many ports at once, for callers who have time.
func (s *slowCloud) createPorts(n int) {
	s.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := s.createPort(s.Context()); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
}

func TestChangesFollowTheService(t *testing.T) {
	for _, test := range []struct {
		each time.Duration
		// most is the most that may be under way at once, least the least that should have been.
		least, most int32
	}{
		{time.Millisecond, 32, 32},
		{500 * time.Millisecond, 16, 32},
		{1500 * time.Millisecond, 6, 14},
		{2500 * time.Millisecond, 4, 8},
		{4 * time.Second, 4, 6},
	} {
		t.Run(fmt.Sprint(test.each), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowCloud(t, test.each)
				s.createPorts(100)
				if most := s.most.Load(); most < test.least || most > test.most {
					t.Errorf("%d writes at once, want %d to %d", most, test.least, test.most)
				}
			})
		})
	}
}

func TestChangesAreMoreAgainOnceTheServiceIsFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowCloud(t, 4*time.Second)
		s.createPorts(20)
		s.each.Store(int64(time.Millisecond))
		s.most.Store(0)
		s.createPorts(700)
		if most := s.most.Load(); most != 32 {
			t.Errorf("%d writes at once, want 32", most)
		}
	})
}

func TestReadsDoNotWaitForASlowService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowCloud(t, 2*time.Second)
		var all sync.WaitGroup
		all.Go(func() { s.createPorts(50) })
		synctest.Wait()
		began := time.Now()
		if err := list(t.Context(), s.Session); err != nil {
			t.Errorf("a read: %v", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it waits for %s", took)
		}
		all.Wait()
	})
}

func TestAChangeWaitsForAThirdOfItsCallersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowCloud(t, 3*time.Second)
		var refused, made atomic.Int32
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				err := s.createPort(ctx)
				if err == nil {
					made.Add(1)
					return
				}
				refused.Add(1)
				took := time.Since(began)
				expect(t, err, "RATE_LIMITED", "The cloud answers slowly")
				if took != 20*time.Second || waitOf(err) != 10*time.Second {
					t.Errorf("after %s: wait %s", took, waitOf(err))
				}
			})
		}
		all.Wait()
		if n := s.count(createPort); n != int(made.Load()) || made.Load() < 10 || refused.Load() < 10 {
			t.Errorf("%d asked for, %d made, %d refused", n, made.Load(), refused.Load())
		}
	})
}

func TestWhoGivesUpTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowCloud(t, time.Second)
		var all sync.WaitGroup
		all.Go(func() { s.createPorts(4) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			all.Go(func() {
				if err := s.createPort(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("given up: %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		s.createPorts(10)
		all.Wait()
		s.expectCount(createPort, 14)
	})
}

// Who refuses because there is too much to do does not ask for more, whatever another service of
// the same machine says.
func TestRefusalsAreNoQuickAnswers(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowCloud(t, time.Millisecond)
				var under, most atomic.Int32
				s.on(createPort, func(w http.ResponseWriter, r *http.Request) {
					if n := under.Add(1); n > most.Load() {
						most.Store(n)
					}
					<-time.After(time.Millisecond)
					under.Add(-1)
					say(status, "")(w, r)
				})
				s.on("DELETE /compute/v2.1/servers/s", say(204, ""))
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						ctx, end, err := session.StartChange(t.Context(), s.Session, false)
						if err != nil {
							t.Error(err)
							return
						}
						defer end()
						if err := servers.Delete(ctx, s.Compute, "s").ExtractErr(); err != nil {
							t.Error(err)
						}
						if ports.Create(ctx, s.Network, ports.CreateOpts{NetworkID: "n"}).Err == nil {
							t.Error("it is no error")
						}
					})
				}
				all.Wait()
				if most.Load() != 4 {
					t.Errorf("%d writes at once, want 4", most.Load())
				}
			})
		})
	}
}

// What is written for no machine in particular, such as the question for a console, neither waits
// nor counts.
func TestOtherWritesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowCloud(t, 20*time.Second)
		if err := ports.Create(t.Context(), s.Network, ports.CreateOpts{NetworkID: "n"}).Err; err != nil {
			t.Fatal(err)
		}
		s.each.Store(int64(time.Millisecond))
		s.createPorts(100)
		if most := s.most.Load(); most != 32 {
			t.Errorf("%d writes at once, want 32", most)
		}
	})
}

func TestMachinesWithVolumesHaveALineOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowCloud(t, time.Second)
		var ends []func()
		for _, withVolumes := range []bool{true, true, true, true, false} {
			_, end, err := session.StartChange(t.Context(), s.Session, withVolumes)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := session.StartChange(ctx, s.Session, true)
		expect(t, err, "RATE_LIMITED")
		for _, end := range ends {
			end()
		}
	})
}
