package driver

import (
	"context"
	"maps"
	"net/url"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// faults are why servers failed. For a server in ERROR that no host has had, Nova says it only when
// that server is asked for alone. Such servers stay until somebody deletes them, so each is asked
// for once.
type faults struct {
	clock func() time.Time

	mu   sync.Mutex
	said map[faultKey]saying
}

// faultKey is a server as it failed: what becomes of it later changes when it was updated.
type faultKey struct {
	id      string
	updated time.Time
}

// saying is what Nova said of a server, and when somebody last wanted to know.
type saying struct {
	why   fault
	asked time.Time
}

// faultDelay is how long after a server went to ERROR Nova may yet write down why.
const faultDelay = time.Minute

// faultLife is for how long a saying is known that nobody wants to know.
const faultLife = time.Hour

// servers lists servers, those in ERROR with Nova's words where it has some.
func (f *faults) servers(ctx context.Context, in *session.Session, query url.Values) ([]server, error) {
	found, err := listing[server](ctx, in.Compute, "servers/detail", "servers", query)
	if err != nil {
		return nil, err
	}
	for i, s := range found {
		if s.Status != statusError || s.Fault.Message != "" {
			continue
		}
		if said, known := f.of(s); known {
			found[i].Fault = said
			continue
		}
		whole, err := getServer(ctx, in, s.ID)
		if err != nil && !session.IsGone(err) {
			return nil, session.Explain(err)
		}
		if err == nil {
			found[i] = f.untilSaid(whole)
			f.keep(whole)
		}
	}
	return found, nil
}

// untilSaid has a server whose fault is not written down yet still count as being built, where it
// depends on the words what it is: a request that was refused, or a server that failed.
func (f *faults) untilSaid(s server) server {
	if s.Status == statusError && s.HostID == "" && !s.hasRun() && s.Fault.Message == "" && f.clock().Sub(s.Updated) < faultDelay {
		s.Status = statusBuild
	}
	return s
}

// of returns what Nova has said of a server as it is.
func (f *faults) of(s server) (said fault, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := faultKey{s.ID, s.Updated}
	last, known := f.said[key]
	if known {
		last.asked = f.clock()
		f.said[key] = last
	}
	return last.why, known
}

// keep remembers what Nova has said of a server, if that is why it failed, or that there is no
// reason to be had.
func (f *faults) keep(s server) {
	now := f.clock()
	if s.Status != statusError || s.Fault.Message == "" && now.Sub(s.Updated) < faultDelay {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.said, func(_ faultKey, old saying) bool { return now.Sub(old.asked) > faultLife })
	if f.said == nil {
		f.said = map[faultKey]saying{}
	}
	f.said[faultKey{s.ID, s.Updated}] = saying{s.Fault, now}
}
