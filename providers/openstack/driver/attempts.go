package driver

import (
	"maps"
	"sync"
	"time"
)

// attempts are the requests for servers that this process has sent, by the ports that they named.
//
// Nova takes two requests for one port at the same time, and in failing the second takes the port
// away from the first. So a server is asked for again only once an earlier request must have been
// answered. Only the process that sent a request knows of it. For a port that this process has not
// made, or that another leader may have used since, a request may have been sent until now.
type attempts struct {
	settle time.Duration
	clock  func() time.Time

	mu   sync.Mutex
	last map[string]attempt
}

// attempt is a request for a server, or that there was none so far.
type attempt struct {
	at      time.Time
	pending bool
	// epoch is the leader's for whom it was.
	epoch int64
}

// remembered is for how many times as long as a request may be on its way an attempt is known. One
// that is forgotten only costs a wait.
const remembered = 10

// wait returns how long a request for a server on any of these ports may still be on its way.
func (a *attempts) wait(ports []string, epoch int64) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, longest := a.clock(), time.Duration(0)
	for _, id := range ports {
		last, known := a.last[id]
		if !known || last.epoch != epoch {
			last = attempt{at: now, pending: true, epoch: epoch}
			a.keep(id, last)
		}
		if last.pending {
			longest = max(longest, a.settle-now.Sub(last.at))
		}
	}
	return longest
}

// note notes that a request for a server on these ports is on its way, or that none is.
func (a *attempts) note(ports []string, epoch int64, pending bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ports {
		a.keep(id, attempt{at: a.clock(), pending: pending, epoch: epoch})
	}
}

// keep remembers an attempt. The lock is held.
func (a *attempts) keep(port string, now attempt) {
	maps.DeleteFunc(a.last, func(_ string, old attempt) bool { return now.at.Sub(old.at) > remembered*a.settle })
	if a.last == nil {
		a.last = map[string]attempt{}
	}
	a.last[port] = now
}
