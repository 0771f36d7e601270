package state

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// Inventory holds the resources of a kind that exist, found by id, by key, and in order. What is
// put in or removed is noted in the journal.
type Inventory[T Resource] struct {
	ByID map[string]T
	// Ordered is sorted by Seq.
	Ordered []T
	// Used counts by project.
	Used map[string]int64

	// kind is how the journal calls the kind.
	kind  string
	store *Store
	blank func() T
	byKey map[Key]map[string]T
	// indexed are the keys under which each resource stands.
	indexed map[string][]Key
}

// NewInventory returns an inventory without resources; kind is how the journal calls them.
func NewInventory[V any, T interface {
	*V
	Resource
}](kind string, s *Store) *Inventory[T] {
	return &Inventory[T]{
		ByID: map[string]T{}, Used: map[string]int64{}, kind: kind, store: s, blank: func() T { return new(V) },
		byKey: map[Key]map[string]T{}, indexed: map[string][]Key{},
	}
}

// Put takes in a resource, or notes that it has changed.
func (inv *Inventory[T]) Put(item T) {
	r := item.Base()
	if _, known := inv.ByID[r.ID]; !known {
		i, _ := inv.position(r.Seq)
		inv.Ordered = slices.Insert(inv.Ordered, i, item)
		inv.Used[r.Project]++
	}
	inv.ByID[r.ID] = item
	inv.unindex(r.ID)
	inv.indexed[r.ID] = item.Keys()
	for _, k := range inv.indexed[r.ID] {
		if inv.byKey[k] == nil {
			inv.byKey[k] = map[string]T{}
		}
		inv.byKey[k][r.ID] = item
	}
	inv.store.Journal.Note(inv.kind, item, false)
}

// Remove drops a resource; what is not there is fine.
func (inv *Inventory[T]) Remove(id string) {
	item, ok := inv.ByID[id]
	if !ok {
		return
	}
	r := item.Base()
	inv.unindex(id)
	delete(inv.ByID, id)
	inv.Used[r.Project]--
	if i, found := inv.position(r.Seq); found {
		inv.Ordered = slices.Delete(inv.Ordered, i, i+1)
	}
	inv.store.Journal.Note(inv.kind, item, true)
}

func (inv *Inventory[T]) unindex(id string) {
	for _, k := range inv.indexed[id] {
		delete(inv.byKey[k], id)
		if len(inv.byKey[k]) == 0 {
			delete(inv.byKey, k)
		}
	}
	delete(inv.indexed, id)
}

// After returns the resources that were made after the one of this number, ordered by Seq.
func (inv *Inventory[T]) After(seq int64) []T {
	at, _ := inv.position(seq + 1)
	return inv.Ordered[at:]
}

func (inv *Inventory[T]) position(seq int64) (int, bool) {
	return slices.BinarySearchFunc(inv.Ordered, seq, func(item T, seq int64) int { return cmp.Compare(item.Base().Seq, seq) })
}

// With returns the resources that have one of the values, ordered by Seq.
func (inv *Inventory[T]) With(attribute string, values ...string) []T {
	found := map[string]T{}
	for _, value := range values {
		maps.Copy(found, inv.byKey[Key{attribute, value}])
	}
	return slices.SortedFunc(maps.Values(found), func(a, b T) int { return cmp.Compare(a.Base().Seq, b.Base().Seq) })
}

// Count says how many resources With reads, at most.
func (inv *Inventory[T]) Count(attribute string, values ...string) int {
	n := 0
	for _, value := range values {
		n += len(inv.byKey[Key{attribute, value}])
	}
	return n
}

// Narrowed returns those with one of the values of the rarest wish, all where there is none: a
// superset of what fulfils all wishes, ordered by Seq.
func (inv *Inventory[T]) Narrowed(wishes map[string][]string) []T {
	best, rarest := "", len(inv.Ordered)
	for attribute, values := range wishes {
		if n := inv.Count(attribute, values...); n < rarest || n == 0 {
			best, rarest = attribute, n
		}
	}
	if best == "" {
		return inv.Ordered
	}
	return inv.With(best, wishes[best]...)
}

// Journaled is a kind of resources as the journal knows it: an Inventory.
type Journaled interface {
	// Kind is how the journal calls the kind.
	Kind() string
	// Items are all resources as an entry has them, ordered by Seq.
	Items() []Item
	// Restore takes in a resource as it was written, in the place of what it was before.
	Restore(i Item) error
}

// Kind implements Journaled.
func (inv *Inventory[T]) Kind() string { return inv.kind }

// Items implements Journaled.
func (inv *Inventory[T]) Items() []Item {
	var items []Item
	for _, one := range inv.Ordered {
		items = append(items, Item{Kind: inv.kind, ID: one.Base().ID, Now: one})
	}
	return items
}

// Restore implements Journaled.
func (inv *Inventory[T]) Restore(i Item) error {
	if i.Gone {
		inv.Remove(i.ID)
		return nil
	}
	one := inv.blank()
	if err := json.Unmarshal(i.Raw, one); err != nil {
		return err
	}
	inv.Remove(i.ID)
	inv.Put(one)
	inv.store.Reached(one.Base().Seq)
	return nil
}
