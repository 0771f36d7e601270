package driver

import (
	"context"
	"maps"
	"net/url"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// verdicts are why servers failed. Of those in ERROR that no host has had, Nova tells it only when they are asked for alone, and they stay
// for as long as nobody deletes them: each is asked for once.
type verdicts struct {
	clock func() time.Time

	mu   sync.Mutex
	said map[verdictKey]verdict
}

// verdictKey is a server as it failed: what becomes of it later changes when it was updated.
type verdictKey struct {
	id      string
	updated time.Time
}

// verdict is what Nova said, and when somebody last wanted to know.
type verdict struct {
	fault fault
	asked time.Time
}

// verdictLife is for how long a verdict is known that nobody wants to know.
const verdictLife = time.Hour

// servers lists servers, those in ERROR with Nova's words where it has some.
func (v *verdicts) servers(ctx context.Context, in *session.Session, query url.Values) ([]server, error) {
	found, err := listing[server](ctx, in.Compute, "servers/detail", "servers", query)
	if err != nil {
		return nil, err
	}
	for i, s := range found {
		if s.Status != statusError || s.Fault.Message != "" {
			continue
		}
		if said, known := v.of(s); known {
			found[i].Fault = said
			continue
		}
		whole, err := getServer(ctx, in, s.ID)
		if err != nil && !session.IsGone(err) {
			return nil, session.Explain(err)
		}
		if err == nil {
			found[i] = whole
			v.keep(whole)
		}
	}
	return found, nil
}

// of returns what Nova has said of a server as it is.
func (v *verdicts) of(s server) (said fault, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := verdictKey{s.ID, s.Updated}
	last, known := v.said[key]
	if known {
		last.asked = v.clock()
		v.said[key] = last
	}
	return last.fault, known
}

// keep remembers what Nova has said of a server, if that is why it failed.
func (v *verdicts) keep(s server) {
	if s.Status != statusError || s.Fault.Message == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock()
	maps.DeleteFunc(v.said, func(_ verdictKey, old verdict) bool { return now.Sub(old.asked) > verdictLife })
	if v.said == nil {
		v.said = map[verdictKey]verdict{}
	}
	v.said[verdictKey{s.ID, s.Updated}] = verdict{s.Fault, now}
}
