package testcloud

import (
	"cmp"
	"slices"
)

// Change says that what has this key changed, as the Revision-th change of all.
type Change struct {
	Revision, Key int64
}

// History is the order in which things changed last. The zero value is empty.
type History struct {
	last    int64
	changes []Change
}

// Note adds a change of key and returns its revision.
func (h *History) Note(key int64) int64 {
	h.Restore(h.last+1, key)
	return h.last
}

// Restore adds a change that has a revision already. Revisions have to grow.
func (h *History) Restore(revision, key int64) {
	h.last = max(h.last, revision)
	h.changes = append(h.changes, Change{Revision: revision, Key: key})
}

// After returns the changes after a revision, superseded ones among them; after 0 all.
func (h *History) After(revision int64) []Change {
	i, _ := slices.BinarySearchFunc(h.changes, revision+1, func(c Change, r int64) int { return cmp.Compare(c.Revision, r) })
	return h.changes[i:]
}

// Tidy forgets superseded changes once they are the bigger part. The argument live is how many
// things there are. The argument current says whether a change is the last of its key.
func (h *History) Tidy(live int, current func(Change) bool) {
	const slack = 1024
	if len(h.changes) > 2*live+slack {
		h.changes = slices.DeleteFunc(h.changes, func(c Change) bool { return !current(c) })
	}
}
