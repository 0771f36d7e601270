package cloud

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/providers/fake/tags"
)

// record is what every resource has.
type record struct {
	// Seq orders the resources of a kind by their making.
	Seq     int64             `json:"seq"`
	ID      string            `json:"id"`
	Account string            `json:"account"`
	Name    string            `json:"name,omitempty"`
	Token   string            `json:"token,omitempty"`
	Tags    map[string]string `json:"tags,omitempty"`
	Created time.Time         `json:"created"`
}

func (r *record) base() *record      { return r }
func (r *record) clusterUID() string { return r.Tags[tags.Cluster] }
func (r *record) machineUID() string { return r.Tags[tags.Machine] }

type resource interface{ base() *record }

type tag struct{ key, value string }

// inventory holds the resources of a kind that exist, found by id, by tag, and in order.
type inventory[T resource] struct {
	byID  map[string]T
	byTag map[tag]map[string]T
	// ordered is sorted by Seq.
	ordered []T
	// used counts by account.
	used map[string]int64
}

func newInventory[T resource]() *inventory[T] {
	return &inventory[T]{byID: map[string]T{}, byTag: map[tag]map[string]T{}, used: map[string]int64{}}
}

// add takes in a resource that is not there; its Seq may be any.
func (inv *inventory[T]) add(item T) {
	r := item.base()
	inv.byID[r.ID] = item
	inv.used[r.Account]++
	i, _ := inv.position(r.Seq)
	inv.ordered = slices.Insert(inv.ordered, i, item)
	for key, value := range r.Tags {
		set := inv.byTag[tag{key, value}]
		if set == nil {
			set = map[string]T{}
			inv.byTag[tag{key, value}] = set
		}
		set[r.ID] = item
	}
}

// remove drops a resource; what is not there is fine.
func (inv *inventory[T]) remove(id string) {
	item, ok := inv.byID[id]
	if !ok {
		return
	}
	r := item.base()
	delete(inv.byID, id)
	inv.used[r.Account]--
	if i, found := inv.position(r.Seq); found {
		inv.ordered = slices.Delete(inv.ordered, i, i+1)
	}
	for key, value := range r.Tags {
		delete(inv.byTag[tag{key, value}], id)
		if len(inv.byTag[tag{key, value}]) == 0 {
			delete(inv.byTag, tag{key, value})
		}
	}
}

// find returns a resource of the account.
func (inv *inventory[T]) find(account, id string) (T, bool) {
	item, ok := inv.byID[id]
	if !ok || item.base().Account != account {
		var none T
		return none, false
	}
	return item, true
}

func (inv *inventory[T]) position(seq int64) (int, bool) {
	return slices.BinarySearchFunc(inv.ordered, seq, func(item T, seq int64) int { return cmp.Compare(item.base().Seq, seq) })
}

// query says which resources are wanted.
type query struct {
	account string
	tags    map[string]string
	// after is the Seq after which to begin, limit the most to return.
	after int64
	limit int
	// until is the Seq after which to end.
	until int64
}

func (q query) matches(r *record) bool {
	if r.Account != q.account || r.Seq <= q.after || r.Seq > q.until {
		return false
	}
	for key, value := range q.tags {
		if got, ok := r.Tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// list returns what matches, ordered by Seq, and whether there is more.
func (inv *inventory[T]) list(q query) (items []T, more bool) {
	for _, item := range inv.candidates(q) {
		if !q.matches(item.base()) {
			continue
		}
		if len(items) == q.limit {
			return items, true
		}
		items = append(items, item)
	}
	return items, false
}

// candidates returns a superset of what matches, ordered by Seq: those of the rarest tag, or
// everything after q.after.
func (inv *inventory[T]) candidates(q query) []T {
	start, _ := inv.position(q.after + 1)
	rest := inv.ordered[start:]
	for key, value := range q.tags {
		set := inv.byTag[tag{key, value}]
		// Sorting a set costs more than passing over the others, unless it is small.
		if len(set) < len(rest)/16 || len(set) == 0 {
			rest = slices.SortedFunc(maps.Values(set), func(a, b T) int { return cmp.Compare(a.base().Seq, b.base().Seq) })
		}
	}
	return rest
}
