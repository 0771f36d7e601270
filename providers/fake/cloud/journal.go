package cloud

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// entry is a line of the journal: what changed at once, each thing as it is from now on.
type entry struct {
	Name   string  `json:"name,omitempty"`
	Totals *totals `json:"totals,omitempty"`
	VM     *vm     `json:"vm,omitempty"`
	// UserData is the VM's; unset where an earlier entry had it.
	UserData []byte           `json:"userData,omitempty"`
	NIC      *nic             `json:"nic,omitempty"`
	NICGone  string           `json:"nicGone,omitempty"`
	Quota    map[string]int64 `json:"quota,omitempty"`
	Call     *call            `json:"call,omitempty"`
}

// totals are what cannot be counted again from what is still there.
type totals struct {
	Seq   int64                       `json:"seq"`
	Peak  map[string]int64            `json:"peak"`
	Calls map[string]map[string]int64 `json:"calls"`
	// LastCall and LastCallRevision are where the ledger goes on.
	LastCall         int64 `json:"lastCall"`
	LastCallRevision int64 `json:"lastCallRevision"`
}

// journal is an append-only file of entries.
type journal struct {
	file *os.File
}

// write appends entries, in one write: a process that is killed leaves all of them or, at worst, one torn line at the end.
func (c *Cloud) write(entries ...entry) error {
	if c.journal == nil {
		return nil
	}
	if c.isClosed() {
		return errClosed
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, e := range entries {
		if err := encoder.Encode(e); err != nil {
			return fmt.Errorf("encode journal entry: %w", err)
		}
	}
	if _, err := c.journal.file.Write(lines.Bytes()); err != nil {
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
		c.restore(e)
	}
	c.restoreHistory()
	c.calls.abandonOpen()
	return nil
}

// restore takes in one entry.
func (c *Cloud) restore(e entry) {
	if e.Name != "" {
		c.name = e.Name
	}
	if e.Totals != nil {
		c.restoreTotals(e.Totals)
	}
	if e.VM != nil {
		c.restoreVM(e.VM, e.UserData)
	}
	if e.NIC != nil {
		c.nics.remove(e.NIC.ID)
		c.putNIC(e.NIC)
	}
	if e.NICGone != "" {
		c.dropNIC(e.NICGone)
	}
	if e.Quota != nil {
		c.quota, c.quotaSet = e.Quota, true
	}
	if e.Call != nil {
		c.calls.restore(e.Call)
	}
}

func (c *Cloud) restoreVM(v *vm, userData []byte) {
	v.userData = userData
	if old := c.vms[v.Seq]; old != nil {
		v.userData = old.userData
		if old.State != gone {
			c.alive.remove(old.ID)
			c.countAlive(old, -1)
		}
	}
	if v.State == gone {
		v.userData = nil
	}
	c.putVM(v)
}

func (c *Cloud) restoreTotals(t *totals) {
	c.seq = max(c.seq, t.Seq)
	for cluster, n := range t.Peak {
		c.peak[cluster] = max(c.peak[cluster], n)
	}
	c.calls.counts = t.Calls
	c.calls.last, c.calls.history.last = t.LastCall, t.LastCallRevision
}

// restoreHistory puts the VMs back into the order of their last changes.
func (c *Cloud) restoreHistory() {
	ordered := make([]*vm, 0, len(c.vms))
	for _, v := range c.vms {
		ordered = append(ordered, v)
	}
	slices.SortFunc(ordered, func(a, b *vm) int { return int(a.Revision - b.Revision) })
	for _, v := range ordered {
		c.vmHistory.restore(v.Revision, v.Seq)
	}
}

// rewrite puts a journal of what is now into the place of the old one, and opens it.
func (c *Cloud) rewrite(path string) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	c.journal = &journal{file: file}
	if err := c.write(c.snapshot()...); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// snapshot returns everything as entries, in an order in which they can be replayed.
func (c *Cloud) snapshot() []entry {
	entries := []entry{{Totals: &totals{
		Seq: c.seq, Peak: c.peak, Calls: c.calls.counts,
		LastCall: c.calls.last, LastCallRevision: c.calls.history.last,
	}}}
	if c.name != "" {
		entries = append(entries, entry{Name: c.name})
	}
	if c.quotaSet {
		entries = append(entries, entry{Quota: c.quota})
	}
	for _, n := range c.nics.ordered {
		entries = append(entries, entry{NIC: n})
	}
	for _, ch := range c.vmHistory.changes {
		if v := c.vms[ch.key]; v.Revision == ch.revision {
			entries = append(entries, entry{VM: v, UserData: v.userData})
		}
	}
	for _, one := range c.calls.ordered() {
		entries = append(entries, entry{Call: one})
	}
	return entries
}
