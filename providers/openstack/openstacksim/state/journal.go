package state

import (
	"encoding/json"
	"slices"

	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Entry is a line of the journal: what changed at once, each thing as it is from now on.
type Entry struct {
	Totals *Totals `json:"totals,omitempty"`
	Items  []Item  `json:"items,omitempty"`
	// UserData is that of new servers, by id.
	UserData map[string]string `json:"userData,omitempty"`
	// Tokens are Keystone's, and Credentials its application credentials: package identity says
	// what they hold. Revoked are ids of both.
	Tokens      []json.RawMessage `json:"tokens,omitempty"`
	Credentials []json.RawMessage `json:"credentials,omitempty"`
	Revoked     []string          `json:"revoked,omitempty"`
	Quota       map[string]int64  `json:"quota,omitempty"`
	// ProjectQuotas are by project and kind.
	ProjectQuotas map[string]map[string]int64 `json:"projectQuotas,omitempty"`
	Calls         []*testcloud.Call           `json:"calls,omitempty"`
}

// Item is one resource that has changed, or is gone.
type Item struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	Gone bool   `json:"gone,omitempty"`
	// Now is the resource; Raw is what it was written as.
	Now Resource        `json:"-"`
	Raw json.RawMessage `json:"now,omitempty"`
}

// MarshalJSON writes the resource as it is when the line is written.
func (i Item) MarshalJSON() ([]byte, error) {
	type plain Item
	if !i.Gone {
		raw, err := json.Marshal(i.Now)
		if err != nil {
			return nil, err
		}
		i.Raw = raw
	}
	return json.Marshal(plain(i))
}

// Totals are what cannot be counted again from what is still there.
type Totals struct {
	Seq    int64            `json:"seq"`
	Peak   map[string]int64 `json:"peak"`
	Owners map[string]Owner `json:"owners"`
	testcloud.LedgerTotals
}

// Journal is where a cloud is written down. Until Begin it writes nothing.
type Journal struct {
	file *testcloud.Journal[Entry]
	// next is what has changed since the last line.
	next   Entry
	dirty  bool
	closed bool
}

// Begin puts a file with these entries into the place of an old one, and writes to it from now on.
func (j *Journal) Begin(path string, entries []Entry) (err error) {
	j.file, err = testcloud.NewJournal(path, entries)
	return err
}

// Note has a resource written down, as it will be when the call that changes it has taken effect.
func (j *Journal) Note(kind string, r Resource, gone bool) {
	if j.file == nil {
		return
	}
	j.dirty = true
	at := slices.IndexFunc(j.next.Items, func(i Item) bool { return i.Now == r })
	if at < 0 {
		j.next.Items = append(j.next.Items, Item{Kind: kind, ID: r.Base().ID, Now: r})
		at = len(j.next.Items) - 1
	}
	j.next.Items[at].Gone = gone
}

// Save has what is no resource written down.
func (j *Journal) Save(add func(*Entry)) {
	if j.file == nil {
		return
	}
	j.dirty = true
	add(&j.next)
}

// SaveCall writes a call down, with what it has changed.
func (j *Journal) SaveCall(one *testcloud.Call) error {
	j.Save(func(e *Entry) { e.Calls = append(e.Calls, one) })
	return j.Flush()
}

// Flush appends a line with what has changed, in one write: a process that is killed leaves all of
// it or, at worst, a torn line at the end. After Close it returns testcloud.ErrClosed.
func (j *Journal) Flush() error {
	if j.file == nil || !j.dirty {
		return nil
	}
	if j.closed {
		return testcloud.ErrClosed
	}
	line := j.next
	j.next, j.dirty = Entry{}, false
	return j.file.Append(line)
}

// Close closes the file.
func (j *Journal) Close() error {
	j.closed = true
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
