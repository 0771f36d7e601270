package cloud

import (
	"github.com/millwright-dev/millwright/sdk/testcloud"
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
	Call     *testcloud.Call  `json:"call,omitempty"`
}

// totals are what cannot be counted again from what is still there.
type totals struct {
	Seq  int64            `json:"seq"`
	Peak map[string]int64 `json:"peak"`
	testcloud.LedgerTotals
}

// write appends entries, in one write.
func (c *Cloud) write(entries ...entry) error {
	if c.journal == nil {
		return nil
	}
	if c.front.IsClosed() {
		return testcloud.ErrClosed
	}
	return c.journal.Append(entries...)
}

// openJournal reads the journal, writes it anew without what is superseded, and leaves it open for
// more.
func (c *Cloud) openJournal() error {
	if c.options.Journal == "" {
		return nil
	}
	err := testcloud.ReadJournal(c.options.Journal, func(e entry) error {
		c.store.restore(e)
		if e.Totals != nil {
			c.front.Ledger.RestoreTotals(e.Totals.LedgerTotals)
		}
		if e.Call != nil {
			c.front.Ledger.Restore(e.Call)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.store.restoreHistory()
	c.front.Ledger.AbandonOpen()
	c.journal, err = testcloud.NewJournal(c.options.Journal, c.snapshot())
	return err
}

// snapshot returns everything as entries, in an order in which they can be replayed.
func (c *Cloud) snapshot() []entry {
	entries := []entry{{Totals: &totals{Seq: c.store.seq, Peak: c.store.peak, LedgerTotals: c.front.Ledger.Totals()}}}
	entries = append(entries, c.store.entries()...)
	for _, one := range c.front.Ledger.Ordered() {
		entries = append(entries, entry{Call: one})
	}
	return entries
}
