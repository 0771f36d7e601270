package openstacksim

import (
	"fmt"
	"slices"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// journaled are the kinds of resources that the journal has, but for servers.
func (c *Cloud) journaled() []state.Journaled {
	return slices.Concat(c.nova.Journaled(), c.neutron.Journaled(), c.cinder.Journaled())
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
	c.nova.Servers.Restored()
	c.neutron.Restored()
	c.cinder.Restored()
	c.front.Ledger.AbandonOpen()
	return c.store.Journal.Begin(c.options.Journal, c.snapshot())
}

// snapshot returns everything as entries, in an order in which they can be replayed.
func (c *Cloud) snapshot() []state.Entry {
	first := state.Entry{Totals: &state.Totals{
		Seq: c.store.Newest(), Peak: c.nova.Servers.Peak, Owners: c.store.Owners.Snapshot(), LedgerTotals: c.front.Ledger.Totals(),
	}}
	c.keystone.Snapshot(&first)
	c.store.Quotas.Snapshot(&first)
	entries := []state.Entry{first}
	for _, kind := range c.journaled() {
		for _, one := range kind.Items() {
			entries = append(entries, state.Entry{Items: []state.Item{one}})
		}
	}
	entries = append(entries, c.nova.Servers.Entries()...)
	for _, one := range c.front.Ledger.Ordered() {
		entries = append(entries, state.Entry{Calls: []*testcloud.Call{one}})
	}
	return entries
}

// restore takes in one entry.
func (c *Cloud) restore(e state.Entry) error {
	if t := e.Totals; t != nil {
		c.store.Reached(t.Seq)
		c.nova.Servers.RestorePeak(t.Peak)
		c.store.Owners.Restore(t.Owners)
		c.front.Ledger.RestoreTotals(t.LedgerTotals)
	}
	if err := c.restoreItems(e.Items); err != nil {
		return err
	}
	if err := c.nova.Servers.Restore(&e); err != nil {
		return err
	}
	if err := c.keystone.Restore(&e); err != nil {
		return err
	}
	c.store.Quotas.Restore(&e)
	for _, one := range e.Calls {
		c.front.Ledger.Restore(one)
	}
	return nil
}

// restoreItems takes in all items but servers.
func (c *Cloud) restoreItems(items []state.Item) error {
	kinds := c.journaled()
	for _, i := range items {
		for _, kind := range kinds {
			if kind.Kind() != i.Kind {
				continue
			}
			if err := kind.Restore(i); err != nil {
				return fmt.Errorf("%s %s: %w", i.Kind, i.ID, err)
			}
		}
	}
	return nil
}
