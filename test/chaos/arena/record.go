package arena

import (
	"fmt"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/localcluster/supervisor"
	"github.com/millwright-dev/millwright/test/chaos/judge"
)

// record holds what was done to Millwright and what ended by itself, until it is judged. It is safe
// for concurrent use.
type record struct {
	mu   sync.Mutex
	acts []judge.Act
	ends []judge.End
	lost error
}

// note takes down what chaos or a user did.
func (r *record) note(act judge.Act) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts = append(r.acts, act)
}

// noteNow takes down what was done to target at this instant.
func (r *record) noteNow(do judge.Deed, target string) {
	now := time.Now()
	r.note(judge.Act{At: now, Until: now, Do: do, Target: target})
}

// noteEnd takes down the end of a process that nobody asked to end.
func (r *record) noteEnd(e *supervisor.ExitError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, judge.End{At: time.Now(), Process: e.Process, State: e.State, Tail: e.Tail})
}

// noteLost takes down that etcd can be followed no longer.
func (r *record) noteLost(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = err
}

// complete returns an error when changes of objects are missing.
func (r *record) complete() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return fmt.Errorf("the history of the objects is incomplete: %w", r.lost)
	}
	return nil
}

// take returns what was noted since the last call.
func (r *record) take() ([]judge.Act, []judge.End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	acts, ends := r.acts, r.ends
	r.acts, r.ends = nil, nil
	return acts, ends
}
