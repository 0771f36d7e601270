package openstacksim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
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
	Calls         []*call                     `json:"calls,omitempty"`
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

// totals are what cannot be counted again from what is still there.
type totals struct {
	Seq    int64                       `json:"seq"`
	Peak   map[string]int64            `json:"peak"`
	Calls  map[string]map[string]int64 `json:"calls"`
	Owners map[string]owner            `json:"owners"`
	// LastCall and LastCallRevision are where the ledger goes on.
	LastCall         int64 `json:"lastCall"`
	LastCallRevision int64 `json:"lastCallRevision"`
}

// journal is an append-only file of entries.
type journal struct {
	file *os.File
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

func (c *Cloud) saveCall(one *call) {
	c.save(func(e *entry) { e.Calls = append(e.Calls, one) })
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

// flush appends a line with what has changed, in one write: a process that is killed leaves all of it or, at worst, a torn line at the end.
func (c *Cloud) flush() error {
	if c.journal == nil || !c.journal.dirty {
		return nil
	}
	if c.isClosed() {
		return errClosed
	}
	line := c.journal.next
	c.journal.next, c.journal.dirty = entry{}, false
	return c.append(line)
}

func (c *Cloud) append(line entry) error {
	for n := range line.Items {
		if line.Items[n].Gone {
			continue
		}
		raw, err := json.Marshal(line.Items[n].Now)
		if err != nil {
			return fmt.Errorf("encode journal entry: %w", err)
		}
		line.Items[n].Raw = raw
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode journal entry: %w", err)
	}
	if _, err := c.journal.file.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// openJournal reads the journal, writes it anew without what is superseded, and leaves it open for more.
func (c *Cloud) openJournal() error {
	path := c.options.Journal
	if path == "" {
		return nil
	}
	old, err := os.Open(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		defer old.Close()
		if err := c.replay(old); err != nil {
			return err
		}
	}
	return c.rewrite(path)
}

func (c *Cloud) replay(r io.Reader) error {
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// Without its end of line the last entry was torn: it has had no effect that anybody saw.
			break
		}
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := c.restore(e); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	c.restoreHistory()
	c.restoreAddresses()
	c.calls.abandonOpen()
	return nil
}

// rewrite puts a journal of what is now into the place of the old one, and opens it.
func (c *Cloud) rewrite(path string) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	c.journal = &journal{file: file}
	for _, line := range c.snapshot() {
		if err := c.append(line); err != nil {
			return err
		}
	}
	return os.Rename(path+".new", path)
}

// snapshot returns everything as entries, in an order in which they can be replayed.
func (c *Cloud) snapshot() []entry {
	first := entry{
		Totals: &totals{
			Seq: c.seq, Peak: c.peak, Calls: c.calls.counts, Owners: c.owners,
			LastCall: c.calls.last, LastCallRevision: c.calls.history.last,
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
	for _, ch := range c.history.changes {
		if s := c.servers[ch.key]; s.Revision == ch.revision {
			add(s)
			if s.userData != "" {
				entries[len(entries)-1].UserData = map[string]string{s.ID: s.userData}
			}
		}
	}
	for _, one := range c.calls.ordered() {
		entries = append(entries, entry{Calls: []*call{one}})
	}
	return entries
}
