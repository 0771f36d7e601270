package driver

import (
	"maps"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

// leftoverLife is how old a list may be by which what is left of a machine is deleted: core asks
// for that as soon as a list has shown it, if the cloud lets it.
const leftoverLife = 10 * time.Second

// leftovers are the machines that have ports and no server, as the last list of a cluster has shown
// them. Of a machine that is being deleted, the ports go next. To ask for them again would cost
// three calls for nearly every machine, since servers go one by one.
//
// A list is older than a question for one machine, so it counts only where nothing can have come
// since. Before the list, this process has ended a call for the machine's deletion. And within the
// time that a create may take to settle, nobody has ended a call for its creation: neither this
// process nor another one, for an earlier leader.
type leftovers struct {
	settle time.Duration
	clock  func() time.Time
	// started is when the process did: what another has asked for before settles, too.
	started time.Time

	mu sync.Mutex
	// terms are the clusters' leaders: what an earlier one has asked for, of another process too,
	// settles as well.
	terms map[string]term
	lists map[clusterScope]leftoverList
	// created and deleted are when calls for machines have ended.
	created, deleted map[ownership.Owner]time.Time
}

// term is who leads a cluster, and since when this process has known.
type term struct {
	epoch int64
	began time.Time
}

// leftoverList are the machines of a list that have ports and no server, by uid.
type leftoverList struct {
	asked    time.Time
	machines map[string]*ownedResources
}

func newLeftovers(o Options) *leftovers {
	return &leftovers{
		settle: o.CreateSettle, clock: o.Clock, started: o.Clock(), terms: map[string]term{},
		lists: map[clusterScope]leftoverList{}, created: map[ownership.Owner]time.Time{}, deleted: map[ownership.Owner]time.Time{},
	}
}

// lead notes by whom a cluster is led.
func (r *leftovers) lead(cluster string, epoch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terms[cluster].epoch != epoch {
		r.terms[cluster] = term{epoch, r.clock()}
	}
}

// listed takes in a list that was asked for at a time.
func (r *leftovers) listed(where clusterScope, asked time.Time, machines map[string]*ownedResources) {
	left := maps.Clone(machines)
	maps.DeleteFunc(left, func(_ string, h *ownedResources) bool { return len(h.servers) > 0 || len(h.ports) == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	maps.DeleteFunc(r.lists, func(_ clusterScope, one leftoverList) bool { return now.Sub(one.asked) > leftoverLife })
	r.lists[where] = leftoverList{asked, left}
}

// noteCreate notes the end of a call for a machine's creation, whatever came of it.
func (r *leftovers) noteCreate(o ownership.Owner) { r.note(r.created, o) }

// noteDelete notes the end of a call for a machine's deletion.
func (r *leftovers) noteDelete(o ownership.Owner) { r.note(r.deleted, o) }

func (r *leftovers) note(ended map[ownership.Owner]time.Time, o ownership.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	maps.DeleteFunc(ended, func(_ ownership.Owner, at time.Time) bool { return now.Sub(at) > remembered*r.settle })
	ended[identity(o)] = now
}

// of returns what is left of a machine; nil where one has to ask.
func (r *leftovers) of(scope machineScope) *ownedResources {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, key := r.lists[scope.clusterScope()], identity(scope.owner)
	left, listed := last.machines[scope.owner.UID]
	asked := last.asked
	deleted, known := r.deleted[key]
	switch {
	case !listed || !known || r.clock().Sub(asked) > leftoverLife, !asked.After(deleted):
		return nil
	case asked.Sub(r.started) < r.settle, asked.Sub(r.terms[scope.owner.Cluster].began) < r.settle, asked.Sub(r.created[key]) < r.settle:
		return nil
	}
	mine := *left
	mine.Owner = scope.owner
	return &mine
}

// identity is what stays of an owner, whatever it is called.
func identity(o ownership.Owner) ownership.Owner {
	return ownership.Owner{Cluster: o.Cluster, UID: o.UID}
}
