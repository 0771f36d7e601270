package openstacksim

import (
	"cmp"
	"slices"
)

// change says that what has this key changed, as the revision-th change of all.
type change struct {
	revision, key int64
}

// history is the order in which things changed last. The zero value is empty.
type history struct {
	last    int64
	changes []change
}

// note adds a change of key and returns its revision.
func (h *history) note(key int64) int64 {
	h.restore(h.last+1, key)
	return h.last
}

// restore adds a change that has a revision already. Revisions have to grow.
func (h *history) restore(revision, key int64) {
	h.last = max(h.last, revision)
	h.changes = append(h.changes, change{revision: revision, key: key})
}

// after returns the changes after a revision, superseded ones among them.
func (h *history) after(revision int64) []change {
	i, _ := slices.BinarySearchFunc(h.changes, revision+1, func(c change, r int64) int { return cmp.Compare(c.revision, r) })
	return h.changes[i:]
}

// tidy forgets superseded changes once they are the bigger part; live is how many things there are, and
// current says whether a change is the last of its key.
func (h *history) tidy(live int, current func(change) bool) {
	const slack = 1024
	if len(h.changes) > 2*live+slack {
		h.changes = slices.DeleteFunc(h.changes, func(c change) bool { return !current(c) })
	}
}
