package openstacksim

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// record is what every resource has.
type record struct {
	// Seq orders all resources by their making.
	Seq         int64     `json:"seq"`
	ID          string    `json:"id"`
	Project     string    `json:"project"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	// Given says that it belongs to the world as it was at the beginning.
	Given bool `json:"given,omitempty"`
}

func (r *record) base() *record { return r }

type resource interface {
	base() *record
	// keys are what the resource is found by, beside its id.
	keys() []key
}

type key struct{ attribute, value string }

// inventory holds the resources of a kind that exist, found by id, by key, and in order.
type inventory[T resource] struct {
	byID  map[string]T
	byKey map[key]map[string]T
	// indexed are the keys under which each resource stands.
	indexed map[string][]key
	// ordered is sorted by Seq.
	ordered []T
	// used counts by project.
	used map[string]int64
	// note is told of all that is put in or removed.
	note func(item resource, gone bool)
}

func newInventory[T resource](note func(item resource, gone bool)) *inventory[T] {
	return &inventory[T]{note: note, byID: map[string]T{}, byKey: map[key]map[string]T{}, indexed: map[string][]key{}, used: map[string]int64{}}
}

// put takes in a resource, or notes that it has changed.
func (inv *inventory[T]) put(item T) {
	r := item.base()
	if _, known := inv.byID[r.ID]; !known {
		i, _ := inv.position(r.Seq)
		inv.ordered = slices.Insert(inv.ordered, i, item)
		inv.used[r.Project]++
	}
	inv.byID[r.ID] = item
	inv.unindex(r.ID)
	inv.indexed[r.ID] = item.keys()
	for _, k := range inv.indexed[r.ID] {
		if inv.byKey[k] == nil {
			inv.byKey[k] = map[string]T{}
		}
		inv.byKey[k][r.ID] = item
	}
	inv.note(item, false)
}

// remove drops a resource; what is not there is fine.
func (inv *inventory[T]) remove(id string) {
	item, ok := inv.byID[id]
	if !ok {
		return
	}
	r := item.base()
	inv.unindex(id)
	delete(inv.byID, id)
	inv.used[r.Project]--
	if i, found := inv.position(r.Seq); found {
		inv.ordered = slices.Delete(inv.ordered, i, i+1)
	}
	inv.note(item, true)
}

func (inv *inventory[T]) unindex(id string) {
	for _, k := range inv.indexed[id] {
		delete(inv.byKey[k], id)
		if len(inv.byKey[k]) == 0 {
			delete(inv.byKey, k)
		}
	}
	delete(inv.indexed, id)
}

func (inv *inventory[T]) position(seq int64) (int, bool) {
	return slices.BinarySearchFunc(inv.ordered, seq, func(item T, seq int64) int { return cmp.Compare(item.base().Seq, seq) })
}

// with returns the resources that have one of the values, ordered by Seq.
func (inv *inventory[T]) with(attribute string, values ...string) []T {
	found := map[string]T{}
	for _, value := range values {
		maps.Copy(found, inv.byKey[key{attribute, value}])
	}
	return slices.SortedFunc(maps.Values(found), func(a, b T) int { return cmp.Compare(a.base().Seq, b.base().Seq) })
}

// count says how many resources with reads, at most.
func (inv *inventory[T]) count(attribute string, values ...string) int {
	n := 0
	for _, value := range values {
		n += len(inv.byKey[key{attribute, value}])
	}
	return n
}

// narrowed returns those with one of the values of the rarest wish, all where there is none: a
// superset of what fulfils all wishes, ordered by Seq.
func (inv *inventory[T]) narrowed(wishes map[string][]string) []T {
	best, rarest := "", len(inv.ordered)
	for attribute, values := range wishes {
		if n := inv.count(attribute, values...); n < rarest || n == 0 {
			best, rarest = attribute, n
		}
	}
	if best == "" {
		return inv.ordered
	}
	return inv.with(best, wishes[best]...)
}
