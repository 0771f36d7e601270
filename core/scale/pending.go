package scale

import (
	"maps"
	"slices"
)

// Pending is what one process created and deleted of a set and its cache does not show yet. The
// zero value is empty. It is not safe for concurrent use.
type Pending struct {
	// created holds Machines by uid.
	created map[string]Machine
	// deleted holds uids.
	deleted map[string]bool
}

// Created notes a Machine that exists, whether the cache shows it or not.
func (p *Pending) Created(m Machine) {
	if p.created == nil {
		p.created = map[string]Machine{}
	}
	p.created[m.UID] = m
}

// Deleted notes that the deletion of the Machine with that uid was accepted.
func (p *Pending) Deleted(uid string) {
	if p.deleted == nil {
		p.deleted = map[string]bool{}
	}
	p.deleted[uid] = true
}

// Gone notes that the Machine with that uid does not exist any more.
func (p *Pending) Gone(uid string) {
	delete(p.created, uid)
	delete(p.deleted, uid)
}

// View returns the set's Machines: the cached ones, and those noted that are not among them; and
// those whose deletion is noted as being deleted. It forgets what the cache shows by now. With
// nothing noted that is cached itself.
func (p *Pending) View(cached []Machine) []Machine {
	if p.Settled() {
		return cached
	}
	view := slices.Clone(cached)
	seen := map[string]bool{}
	for i, m := range view {
		seen[m.UID] = true
		delete(p.created, m.UID)
		if m.Deleting {
			delete(p.deleted, m.UID)
		}
		view[i].Deleting = m.Deleting || p.deleted[m.UID]
	}
	for _, uid := range slices.Sorted(maps.Keys(p.created)) {
		m := p.created[uid]
		m.Deleting = m.Deleting || p.deleted[uid]
		view = append(view, m)
		seen[uid] = true
	}
	// What was seen and is no longer is gone; so is its deletion.
	maps.DeleteFunc(p.deleted, func(uid string, _ bool) bool { return !seen[uid] })
	if p.Settled() {
		// An empty map keeps the memory of all that was ever in it.
		p.created, p.deleted = nil, nil
	}
	return view
}

// Unseen returns the noted Machines that the last View's cache did not have, in the order of their
// uids.
func (p *Pending) Unseen() []Machine {
	var unseen []Machine
	for _, uid := range slices.Sorted(maps.Keys(p.created)) {
		unseen = append(unseen, p.created[uid])
	}
	return unseen
}

// Settled says that the last View's cache showed everything noted.
func (p *Pending) Settled() bool { return len(p.created) == 0 && len(p.deleted) == 0 }
