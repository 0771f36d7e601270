package driver

import (
	"slices"
	"time"

	"github.com/millwright-dev/millwright/core/instance"
)

// gate is the circuit breaker of one operation in one account: it keeps machines from hammering a cloud that refuses them all
// for one cause that no machine can help. It is pure: no lock, no clock.
//
// Open, it lets a handful of calls through at once, and one more after each that succeeds. A refusal closes it: nobody calls
// before a pause is over, which grows from refusal to refusal; then one call tries it, and opens it again by succeeding. Who
// asks in vain queues, and is told when its turn has come.
type gate struct {
	// window is how many calls may be under way at once.
	window int
	// turns are the uids that may call: until when, or zero for one whose call is under way.
	turns  map[string]time.Time
	queue  []string
	queued map[string]struct{}
	// why is the refusal that closed the gate, nil while it is open; closed is since when, until how long nobody may call.
	why           *instance.Failure
	closed, until time.Time
	// refusals counts them in a row.
	refusals int
	used     time.Time
	// patience is how long refused credentials are left alone.
	patience time.Duration
}

const (
	// firstWindow is how many calls of an account are under way before the first has succeeded: with credentials that are
	// refused it is all there is.
	firstWindow = 4
	maxWindow   = 1 << 12
	// windowMemory is how long successes count: what worked a while ago may be refused by now.
	windowMemory = 5 * time.Second
	// gateTurn is how long a machine whose turn has come may take to call.
	gateTurn = 10 * time.Second
)

func newGate(patience time.Duration) *gate {
	return &gate{window: firstWindow, patience: patience, turns: map[string]time.Time{}, queued: map[string]struct{}{}}
}

// ask gives uid its turn, if it may call now. If not, it queues; held says how others were refused, nil where it is only too
// many.
func (g *gate) ask(uid string, now time.Time) (held *instance.Failure, ok bool) {
	if len(g.turns) == 0 && now.Sub(g.used) > windowMemory {
		g.window = min(g.window, firstWindow)
	}
	g.used = now
	_, mine := g.turns[uid]
	if g.shut(now) {
		delete(g.turns, uid)
		g.enqueue(uid)
		return g.why, false
	}
	if mine || len(g.turns) < g.room() && len(g.queue) == 0 {
		g.turns[uid] = now.Add(gateTurn)
		return nil, true
	}
	g.enqueue(uid)
	return g.why, false
}

// shut says whether nobody may call now.
func (g *gate) shut(now time.Time) bool { return g.why != nil && now.Before(g.until) }

// room is how many may call at once.
func (g *gate) room() int {
	if g.why != nil && g.why.Class != instance.RateLimited {
		return 1
	}
	return g.window
}

func (g *gate) enqueue(uid string) {
	if _, waits := g.queued[uid]; !waits {
		g.queued[uid] = struct{}{}
		g.queue = append(g.queue, uid)
	}
}

// began marks uid's call as under way.
func (g *gate) began(uid string) { g.turns[uid] = time.Time{} }

// ended learns from a call that began at an instant; failure is nil for a success. Calls that began before the gate was closed
// tell nothing that it does not know.
func (g *gate) ended(uid string, began, now time.Time, failure *instance.Failure) {
	delete(g.turns, uid)
	g.used = now
	if g.why != nil && !began.After(g.closed) {
		return
	}
	if failure == nil {
		if g.why != nil {
			g.why, g.refusals = nil, 0
		}
		g.window = min(g.window+1, maxWindow)
		return
	}
	pause, opens := failure.Class.BreakerBackoff()
	if !opens {
		return
	}
	if failure.Class == instance.Credentials {
		pause = instance.Backoff{First: g.patience, Last: g.patience}
	}
	if g.why == nil || g.why.Class != failure.Class {
		g.refusals = 0
	}
	wait := max(pause.Nth(g.refusals+1), failure.RetryAfter)
	g.refusals++
	g.closed, g.until = now, now.Add(wait)
	// What else came with the failure is the business of the machine whose it was.
	g.why = &instance.Failure{Class: failure.Class, Reason: failure.Reason, Message: failure.Message}
	g.window = 1
	if failure.Class == instance.RateLimited {
		g.window = max(1, (len(g.turns)+1)/2)
	}
}

// next returns those of the queue whose turn it is now. Turns that were not used in time are gone, unless wanted says that
// the machine waits for something else.
func (g *gate) next(now time.Time, wanted func(uid string) bool) []string {
	for uid, until := range g.turns {
		if !until.IsZero() && !now.Before(until) {
			delete(g.turns, uid)
			if wanted(uid) {
				g.turns[uid] = now.Add(gateTurn)
			}
		}
	}
	if g.shut(now) {
		return nil
	}
	var next []string
	for len(g.queue) > 0 && len(g.turns) < g.room() {
		uid := g.queue[0]
		g.queue = g.queue[1:]
		delete(g.queued, uid)
		g.turns[uid] = now.Add(gateTurn)
		next = append(next, uid)
	}
	return next
}

// due is when next has to be asked again though no call ends before; zero for never. Ask next first.
func (g *gate) due(now time.Time) time.Time {
	if len(g.queue) == 0 {
		return time.Time{}
	}
	if g.shut(now) {
		return g.until
	}
	var due time.Time
	for _, until := range g.turns {
		due = earlier(due, until)
	}
	return due
}

// drop forgets uid, unless its call is under way.
func (g *gate) drop(uid string) {
	if until, has := g.turns[uid]; has && !until.IsZero() {
		delete(g.turns, uid)
	}
	if _, waits := g.queued[uid]; !waits {
		return
	}
	delete(g.queued, uid)
	g.queue = slices.DeleteFunc(g.queue, func(one string) bool { return one == uid })
}

// idle says whether nothing is lost with the gate.
func (g *gate) idle(now time.Time) bool {
	return len(g.turns) == 0 && len(g.queue) == 0 && !g.shut(now) && now.Sub(g.used) > gateMemory
}

// gateMemory is how long an account that nobody uses is remembered.
const gateMemory = time.Hour
