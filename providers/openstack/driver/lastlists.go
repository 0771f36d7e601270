package driver

import (
	"maps"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// lastListLife is how long a list counts. Of a slow cloud a list takes many seconds, and core asks
// for one as soon as the last has ended, if the cloud lets it.
const lastListLife = time.Minute

// lastLists are what the last list of each cluster has shown. Without them, each machine that is
// created would cost a list of ports, since a slow cloud makes servers one by one; and each that is
// deleted four lists, since servers go one by one.
//
// A list is older than a question for one machine, so it counts only where nothing can have come
// since, or where what has come is noticed otherwise.
type lastLists struct {
	settle time.Duration
	clock  func() time.Time
	// started is when the process did: what another has asked for before settles, too.
	started time.Time

	mu sync.Mutex
	// terms are the clusters' leaders: what an earlier one has asked for, of another process too,
	// settles as well.
	terms map[string]term
	lists map[clusterScope]lastList
	// created and deleted are when calls for machines have ended.
	created, deleted map[ownership.Owner]time.Time
}

// term is who leads a cluster, and since when this process has known.
type term struct {
	epoch int64
	began time.Time
}

// lastList is what a list has shown.
type lastList struct {
	asked time.Time
	// machines is what there is of each machine, by uid.
	machines map[string]*ownedResources
}

func newLastLists(o Options) *lastLists {
	return &lastLists{
		settle: o.CreateSettle, clock: o.Clock, started: o.Clock(), terms: map[string]term{},
		lists: map[clusterScope]lastList{}, created: map[ownership.Owner]time.Time{}, deleted: map[ownership.Owner]time.Time{},
	}
}

// lead notes by whom a cluster is led.
func (r *lastLists) lead(cluster string, epoch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terms[cluster].epoch != epoch {
		r.terms[cluster] = term{epoch, r.clock()}
	}
}

// listed takes in a list that was asked for at a time.
func (r *lastLists) listed(where clusterScope, asked time.Time, machines map[string]*ownedResources) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	maps.DeleteFunc(r.lists, func(_ clusterScope, one lastList) bool { return now.Sub(one.asked) > lastListLife })
	r.lists[where] = lastList{asked, machines}
}

// noteCreate notes the end of a call for a machine's creation, whatever came of it.
func (r *lastLists) noteCreate(o ownership.Owner) { r.note(r.created, o) }

// noteDelete notes the end of a call for a machine's deletion.
func (r *lastLists) noteDelete(o ownership.Owner) { r.note(r.deleted, o) }

func (r *lastLists) note(ended map[ownership.Owner]time.Time, o ownership.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, known := r.clock(), max(remembered*r.settle, lastListLife)
	maps.DeleteFunc(ended, func(_ ownership.Owner, at time.Time) bool { return now.Sub(at) > known })
	ended[identity(o)] = now
}

// showNothingOf says that a list has shown nothing of a machine that this process has not worked on
// before. What another process has asked for, for an earlier leader, has settled before the list.
func (r *lastLists) showNothingOf(scope machineScope) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.last(scope)
	_, shown := last.machines[scope.owner.UID]
	key := identity(scope.owner)
	return known && !shown && r.created[key].IsZero() && r.deleted[key].IsZero() && r.othersHaveSettled(scope.owner.Cluster, last)
}

// shownOf returns what a list has shown of a machine that is to be deleted, if that is what goes
// next; nil where one has to ask. The list was asked for after the last call for the machine's
// deletion had ended.
//
// A server can go whatever else there is: the next call looks again. Ports go last, on two
// conditions. No process has ended a call for the machine's creation within the time that a create
// may take to settle. And this process has ended a call for its deletion.
func (r *lastLists) shownOf(scope machineScope) *ownedResources {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, _ := r.last(scope)
	shown, key := last.machines[scope.owner.UID], identity(scope.owner)
	deleted, known := r.deleted[key]
	switch {
	case shown == nil || !last.asked.After(deleted):
		return nil
	case len(shown.servers) > 0:
	case len(shown.ports) == 0 || !known || last.asked.Sub(r.created[key]) < r.settle || !r.othersHaveSettled(scope.owner.Cluster, last):
		return nil
	}
	mine := *shown
	mine.Owner = scope.owner
	return &mine
}

// othersHaveSettled says whether what other processes may have asked for, before this one started
// or for an earlier leader, had settled before a list. The lock is held.
func (r *lastLists) othersHaveSettled(cluster string, before lastList) bool {
	return before.asked.Sub(r.started) >= r.settle && before.asked.Sub(r.terms[cluster].began) >= r.settle
}

// last returns the last list of a machine's cluster, if it counts. The lock is held.
func (r *lastLists) last(scope machineScope) (lastList, bool) {
	last, known := r.lists[scope.clusterScope()]
	if !known || r.clock().Sub(last.asked) > lastListLife {
		return lastList{}, false
	}
	return last, true
}

// identity is what stays of an owner, whatever it is called.
func identity(o ownership.Owner) ownership.Owner {
	return ownership.Owner{Cluster: o.Cluster, UID: o.UID}
}
