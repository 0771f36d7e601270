package openstacksim

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// entry is a line of the journal: what changed at once, each thing as it is from now on.
type entry struct {
	Totals *totals `json:"totals,omitempty"`
	Items  []item  `json:"items,omitempty"`
	// UserData is that of new servers, by id.
	UserData map[string]string `json:"userData,omitempty"`
	Tokens   []*token          `json:"tokens,omitempty"`
	// Credentials are application credentials; Revoked are ids of them, and of tokens.
	Credentials []*credential    `json:"credentials,omitempty"`
	Revoked     []string         `json:"revoked,omitempty"`
	Quota       map[string]int64 `json:"quota,omitempty"`
	// ProjectQuotas are by project and kind.
	ProjectQuotas map[string]map[string]int64 `json:"projectQuotas,omitempty"`
	Calls         []*testcloud.Call           `json:"calls,omitempty"`
}

// item is one resource that has changed, or is gone.
type item struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	Gone bool   `json:"gone,omitempty"`
	// Now is the resource; raw is what it was written as.
	Now resource        `json:"-"`
	Raw json.RawMessage `json:"now,omitempty"`
}

// MarshalJSON writes the resource as it is when the line is written.
func (i item) MarshalJSON() ([]byte, error) {
	type plain item
	if !i.Gone {
		raw, err := json.Marshal(i.Now)
		if err != nil {
			return nil, err
		}
		i.Raw = raw
	}
	return json.Marshal(plain(i))
}

// totals are what cannot be counted again from what is still there.
type totals struct {
	Seq    int64            `json:"seq"`
	Peak   map[string]int64 `json:"peak"`
	Owners map[string]owner `json:"owners"`
	testcloud.LedgerTotals
}

// journal is where the cloud is written down.
type journal struct {
	*testcloud.Journal[entry]
	// next is what has changed since the last line.
	next  entry
	dirty bool
}

// note has a resource written down, as it will be when the call that changes it has taken effect.
func (c *Cloud) note(r resource, gone bool) {
	if c.journal == nil {
		return
	}
	_, isServer := r.(*server)
	gone = gone && !isServer // a server that is gone is still told of
	c.journal.dirty = true
	at := slices.IndexFunc(c.journal.next.Items, func(i item) bool { return i.Now == r })
	if at < 0 {
		c.journal.next.Items = append(c.journal.next.Items, item{Kind: kindOf(r), ID: r.base().ID, Now: r})
		at = len(c.journal.next.Items) - 1
	}
	c.journal.next.Items[at].Gone = gone
}

// save has what is no resource written down.
func (c *Cloud) save(add func(*entry)) {
	if c.journal == nil {
		return
	}
	c.journal.dirty = true
	add(&c.journal.next)
}

// saveCall writes a call down, with what it has changed.
func (c *Cloud) saveCall(one *testcloud.Call) error {
	c.save(func(e *entry) { e.Calls = append(e.Calls, one) })
	return c.flush()
}

// saveQuota has the quota outlive the cloud: from now on it is part of the state.
func (c *Cloud) saveQuota() {
	c.quotaSet = true
	c.save(func(e *entry) { e.Quota = c.quota })
}

func (c *Cloud) saveUserData(s *server) {
	c.save(func(e *entry) {
		if e.UserData == nil {
			e.UserData = map[string]string{}
		}
		e.UserData[s.ID] = s.userData
	})
}

// flush appends a line with what has changed, in one write: a process that is killed leaves all of
// it or, at worst, a torn line at the end.
func (c *Cloud) flush() error {
	if c.journal == nil || !c.journal.dirty {
		return nil
	}
	if c.front.IsClosed() {
		return testcloud.ErrClosed
	}
	line := c.journal.next
	c.journal.next, c.journal.dirty = entry{}, false
	return c.journal.Append(line)
}

// openJournal reads the journal, writes it anew without what is superseded, and leaves it open for
// more.
func (c *Cloud) openJournal() error {
	if c.options.Journal == "" {
		return nil
	}
	if err := testcloud.ReadJournal(c.options.Journal, c.restore); err != nil {
		return err
	}
	c.restoreHistory()
	c.restoreAddresses()
	c.front.Ledger.AbandonOpen()
	file, err := testcloud.NewJournal(c.options.Journal, c.snapshot())
	c.journal = &journal{Journal: file}
	return err
}

// snapshot returns everything as entries, in an order in which they can be replayed.
func (c *Cloud) snapshot() []entry {
	first := entry{
		Totals: &totals{
			Seq: c.seq, Peak: c.peak, Owners: c.owners, LedgerTotals: c.front.Ledger.Totals(),
		},
		ProjectQuotas: c.projectQuotas, Tokens: slices.Collect(maps.Values(c.tokens)), Credentials: slices.Collect(maps.Values(c.credentials)),
	}
	if c.quotaSet {
		first.Quota = c.quota
	}
	entries := []entry{first}
	add := func(r resource) {
		entries = append(entries, entry{Items: []item{{Kind: kindOf(r), ID: r.base().ID, Now: r}}})
	}
	c.eachRest(add)
	for _, ch := range c.history.After(0) {
		if s := c.servers[ch.Key]; s.Revision == ch.Revision {
			add(s)
			if s.userData != "" {
				entries[len(entries)-1].UserData = map[string]string{s.ID: s.userData}
			}
		}
	}
	for _, one := range c.front.Ledger.Ordered() {
		entries = append(entries, entry{Calls: []*testcloud.Call{one}})
	}
	return entries
}
