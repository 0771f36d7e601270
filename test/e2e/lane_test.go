package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/tier"
)

// slots has an element for each stack that runs. Most of a test is waiting, so that several stacks
// keep two cores busy. More of them only make each slower: one that does nothing takes a quarter of
// a core.
var slots = make(chan struct{}, atMost(4))

// starting has one stack start at a time: its control plane keeps both cores busy for ten seconds.
var starting sync.Mutex

// maxSharers is how many tests share a stack at most.
var maxSharers = atMost(6)

// atMost returns n, and fewer with the race detector, which takes time.
func atMost(n int) int {
	if tier.Raced {
		return (n + 2) / 2
	}
	return n
}

// isBroken says that a stack did not end as it should.
var isBroken atomic.Bool

// lane is where tests wait for a stack of one kind. A test has the stack for itself, or shares it
// with others that neither disturb it nor mind it.
//
// Each test calls t.Parallel first. That only has Go start it, and the lane decides when it goes
// on. TestMain sets -parallel to more than there are tests.
type lane struct {
	// start brings up a stack; at most max run at once.
	start func() (*fixture, error)
	max   int

	mu      sync.Mutex
	changed *sync.Cond
	tracks  []*track
}

// track is a stack of a lane, and who uses it.
type track struct {
	// fixture is nil until the stack is up.
	*fixture
	sharers int
	isTaken bool
	// hasFailed says that a test on it has: what it has written is kept.
	hasFailed atomic.Bool
	// uses counts those who came, so that who wants to end an idle stack sees whether it was used
	// meanwhile.
	uses int
}

func (on *track) isIdle() bool { return on.sharers == 0 && !on.isTaken }

// idleFor is how long a stack stays that no test uses.
const idleFor = 3 * time.Second

func newLane(most int, start func() (*fixture, error)) *lane {
	l := &lane{start: start, max: most}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// enter waits until a test may use a stack, and returns that. It is given back when all that the
// test cleans up from now on has been.
func (l *lane) enter(t *testing.T, shares bool) *fixture {
	t.Helper()
	began := time.Now()
	on := l.await(shares)
	if on.fixture == nil {
		slots <- struct{}{}
		starting.Lock()
		started, err := l.start()
		starting.Unlock()
		if err != nil {
			<-slots
			l.drop(on)
			t.Fatalf("start the stack of the test: %v", err)
		}
		l.mu.Lock()
		on.fixture = started
		l.mu.Unlock()
		l.changed.Broadcast()
	}
	entered := time.Now()
	t.Cleanup(func() {
		t.Logf("it waited %.1f s for its stack and used it for %.1f s", entered.Sub(began).Seconds(), time.Since(entered).Seconds())
		if t.Failed() {
			on.hasFailed.Store(true)
		}
		l.leave(on, shares)
	})
	return on.fixture
}

// await waits for a stack that the test may use, and takes it. It may have to be started.
func (l *lane) await(shares bool) *track {
	l.mu.Lock()
	defer l.mu.Unlock()
	on := l.find(shares)
	for on == nil {
		l.changed.Wait()
		on = l.find(shares)
	}
	on.uses++
	if shares {
		on.sharers++
	} else {
		on.isTaken = true
	}
	return on
}

// find returns a stack that a test may use now; nil if it has to wait. Those that share do so on
// one stack.
func (l *lane) find(shares bool) *track {
	for _, on := range l.tracks {
		if shares && on.sharers > 0 {
			if on.fixture != nil && on.sharers < maxSharers {
				return on
			}
			return nil
		}
	}
	for _, on := range l.tracks {
		if on.isIdle() {
			return on
		}
	}
	if len(l.tracks) == l.max {
		return nil
	}
	on := &track{}
	l.tracks = append(l.tracks, on)
	return on
}

// leave gives a stack back. Unless another test uses it soon, it ends.
func (l *lane) leave(on *track, shares bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if shares {
		on.sharers--
	} else {
		on.isTaken = false
	}
	l.changed.Broadcast()
	if uses := on.uses; on.isIdle() {
		time.AfterFunc(idleFor, func() { l.endIdle(on, uses) })
	}
}

// endIdle ends a stack that nobody has used since it had so many uses.
func (l *lane) endIdle(on *track, uses int) {
	l.mu.Lock()
	isIdle := on.isIdle() && on.uses == uses
	on.isTaken = on.isTaken || isIdle
	l.mu.Unlock()
	if isIdle {
		on.finish()
		l.drop(on)
	}
}

// drop has the lane forget a stack.
func (l *lane) drop(on *track) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.tracks {
		if other == on {
			l.tracks = append(l.tracks[:i], l.tracks[i+1:]...)
			break
		}
	}
	l.changed.Broadcast()
}

// end ends all stacks of the lane, once all tests have ended.
func (l *lane) end() {
	for {
		l.mu.Lock()
		var idle *track
		for _, on := range l.tracks {
			if on.isIdle() {
				idle = on
			}
		}
		if idle == nil && len(l.tracks) == 0 {
			l.mu.Unlock()
			return
		}
		if idle == nil {
			l.changed.Wait() // another goroutine ends it
			l.mu.Unlock()
			continue
		}
		idle.isTaken = true
		l.mu.Unlock()
		idle.finish()
		l.drop(idle)
	}
}

// finish ends a stack of which no test is left.
func (on *track) finish() {
	defer func() { <-slots }()
	code := 0
	if on.hasFailed.Load() {
		code = 1
	}
	if code == 0 {
		if err := on.checkNothingLeft(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if on.fixture.end(code) != 0 {
		isBroken.Store(true)
	}
}

// checkNothingLeft returns an error if tests that shared the stack have left something in its
// cloud. A test that shares looks after its own machines only.
func (f *fixture) checkNothingLeft() error {
	listed, err := f.Backend().ListResources(context.Background(), &backendv1alpha1.ListResourcesRequest{})
	if err != nil {
		return fmt.Errorf("list what is left in the cloud: %w", err)
	}
	for _, r := range listed.GetResources() {
		if r.GetClusterUid() != strangersCluster && r.GetMachineUid() != "" {
			return fmt.Errorf("left in the cloud of %s: %v", f.dir, r)
		}
	}
	return nil
}

// takeTurn waits until a test may start a stack of its own.
func takeTurn(t *testing.T) {
	t.Helper()
	began := time.Now()
	slots <- struct{}{}
	entered := time.Now()
	t.Cleanup(func() {
		t.Logf("it waited %.1f s to start a stack of its own, and used it for %.1f s", entered.Sub(began).Seconds(), time.Since(entered).Seconds())
		<-slots
	})
}
