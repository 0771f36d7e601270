package cloud

import (
	"slices"

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
		c.restore(e)
		return nil
	})
	if err != nil {
		return err
	}
	c.restoreHistory()
	c.front.Ledger.AbandonOpen()
	c.journal, err = testcloud.NewJournal(c.options.Journal, c.snapshot())
	return err
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
		c.front.Ledger.Restore(e.Call)
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
	c.front.Ledger.RestoreTotals(t.LedgerTotals)
}

// restoreHistory puts the VMs back into the order of their last changes.
func (c *Cloud) restoreHistory() {
	ordered := make([]*vm, 0, len(c.vms))
	for _, v := range c.vms {
		ordered = append(ordered, v)
	}
	slices.SortFunc(ordered, func(a, b *vm) int { return int(a.Revision - b.Revision) })
	for _, v := range ordered {
		c.vmHistory.Restore(v.Revision, v.Seq)
	}
}

// snapshot returns everything as entries, in an order in which they can be replayed.
func (c *Cloud) snapshot() []entry {
	entries := []entry{{Totals: &totals{Seq: c.seq, Peak: c.peak, LedgerTotals: c.front.Ledger.Totals()}}}
	if c.name != "" {
		entries = append(entries, entry{Name: c.name})
	}
	if c.quotaSet {
		entries = append(entries, entry{Quota: c.quota})
	}
	for _, n := range c.nics.ordered {
		entries = append(entries, entry{NIC: n})
	}
	for _, ch := range c.vmHistory.After(0) {
		if v := c.vms[ch.Key]; v.Revision == ch.Revision {
			entries = append(entries, entry{VM: v, UserData: v.userData})
		}
	}
	for _, one := range c.front.Ledger.Ordered() {
		entries = append(entries, entry{Call: one})
	}
	return entries
}
