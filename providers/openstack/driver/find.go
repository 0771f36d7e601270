package driver

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/batch"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
)

const (
	// most is how many machines are asked for at once: their names have to fit in a URL.
	most = 25
	// waitsPerPoll says for how long who asks about a machine waits for others: that many such
	// waits make a poll interval.
	waitsPerPoll = 10
	// recentFor is how much longer ago than a create may take to settle still counts: clocks
	// differ.
	recentFor = 5 * time.Minute
)

// reads are what the driver asks the cloud about a machine.
type reads struct {
	servers, recent *batch.Reads[clusterScope, []server]
	ports           *batch.Reads[clusterScope, []port]
	floatingIPs     *batch.Reads[clusterScope, []floatingIP]
	volumes         *batch.Reads[clusterScope, []volume]
}

func newReads(o Options, faults *faults) reads {
	wait := o.PollInterval / waitsPerPoll
	return reads{
		servers:     batch.New(most, wait, faults.serversOf),
		recent:      batch.New(most, wait, changes{o}.recentOf),
		ports:       batch.New(most, wait, portsOf),
		floatingIPs: batch.New(most, wait, floatingIPsOf),
		volumes:     batch.New(most, wait, volumesOf),
	}
}

func grouped[T any](all []T, key func(T) string, compare func(a, b T) int) map[string][]T {
	groups := map[string][]T{}
	for _, one := range all {
		groups[key(one)] = append(groups[key(one)], one)
	}
	for _, group := range groups {
		slices.SortFunc(group, compare)
	}
	return groups
}

// nothingOwned returns ownedResources of which none is known yet.
func (d *Driver) nothingOwned(owner ownership.Owner) *ownedResources {
	return &ownedResources{Owner: owner, poll: d.options.PollInterval, regional: d.options.Regional}
}

// find returns the machine's servers, and only without one what else there is of it: until the
// server is gone, nobody needs to know.
func (d *Driver) find(ctx context.Context, scope machineScope) (*ownedResources, error) {
	found, where := d.nothingOwned(scope.owner), scope.clusterScope()
	found.withoutVolumes = scope.withoutVolumes
	var err error
	if found.servers, err = d.reads.servers.Get(ctx, where, scope.owner.UID); err != nil || len(found.servers) > 0 {
		return found, err
	}
	if found.ports, err = d.reads.ports.Get(ctx, where, scope.owner.PortName()); err != nil {
		return found, err
	}
	return found, d.findWithoutServer(ctx, scope, found)
}

// findWithoutServer adds what there is of a machine whose ports are known, and whose server no list
// shows.
func (d *Driver) findWithoutServer(ctx context.Context, scope machineScope, found *ownedResources) (err error) {
	if found.servers, err = serversHiddenFromLists(ctx, scope, found.ports); err != nil || len(found.servers) > 0 {
		return err
	}
	where := scope.clusterScope()
	if !scope.withoutFloatingIP {
		if found.floatingIPs, err = d.reads.floatingIPs.Get(ctx, where, scope.owner.Description()); err != nil {
			return err
		}
	}
	if !scope.withoutVolumes {
		found.volumes, err = d.reads.volumes.Get(ctx, where, scope.owner.UID)
	}
	return err
}
