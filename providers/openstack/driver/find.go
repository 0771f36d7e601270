package driver

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/batch"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
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

// clusterScope is a cluster in a project: what reads of several machines have in common.
type clusterScope struct {
	*session.Session
	cluster string
}

func (s machineScope) clusterScope() clusterScope {
	return clusterScope{Session: s.Session, cluster: s.Cluster}
}

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

// serversOf returns the servers of machines by uid, the oldest first.
func (f *faults) serversOf(ctx context.Context, where clusterScope, uids []string) (map[string][]server, error) {
	var tags []string
	for _, uid := range uids {
		tags = append(tags, ownership.MachineTag(uid))
	}
	found, err := f.servers(ctx, where.Session, url.Values{
		"tags": {ownership.ClusterTag(where.cluster)}, "tags-any": {strings.Join(tags, ",")},
	})
	if err != nil {
		return nil, err
	}
	return grouped(found, func(s server) string {
		if owner, _ := s.owner(); owner.Cluster == where.cluster {
			return owner.UID
		}
		return "" // a Nova that does not obey the filter
	}, server.compareAge), nil
}

func (s server) compareAge(other server) int {
	return cmp.Or(s.Created.Compare(other.Created), cmp.Compare(s.ID, other.ID))
}

// portsOf returns the ports of machines by name, the oldest first.
func portsOf(ctx context.Context, where clusterScope, names []string) (map[string][]port, error) {
	found, err := portsListed(ctx, where.Session, url.Values{"description": {ownership.ClusterDescription(where.cluster)}, "name": names})
	if err != nil {
		return nil, err
	}
	return grouped(found, func(p port) string { return p.Name }, func(a, b port) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}), nil
}

// floatingIPsOf returns the floating IPs of machines by description.
func floatingIPsOf(ctx context.Context, where clusterScope, descriptions []string) (map[string][]floatingIP, error) {
	found, err := floatingIPsListed(ctx, where.Session, url.Values{"description": descriptions})
	if err != nil {
		return nil, err
	}
	return grouped(found, func(f floatingIP) string { return f.Description }, func(a, b floatingIP) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	}), nil
}

// portsListed lists ports of the project. Who owns a network is shown all ports on it, also those
// of machines of another project.
func portsListed(ctx context.Context, in *session.Session, query url.Values) ([]port, error) {
	query.Set("project_id", in.ProjectID)
	return listing[port](ctx, in.Network, "ports", "ports", query)
}

// floatingIPsListed lists floating IPs of the project: an administrator is shown all. A Neutron
// without routers has none.
func floatingIPsListed(ctx context.Context, in *session.Session, query url.Values) ([]floatingIP, error) {
	query.Set("project_id", in.ProjectID)
	found, err := listing[floatingIP](ctx, in.Network, "floatingips", "floatingips", query)
	if session.IsWithout(err) {
		return nil, nil
	}
	return found, err
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
	found := d.nothingOwned(scope.Owner)
	var err error
	if found.servers, err = d.reads.servers.Get(ctx, scope.clusterScope(), scope.UID); err != nil || len(found.servers) > 0 {
		return found, err
	}
	if err = d.findPorts(ctx, scope, found); err != nil || len(found.servers) > 0 {
		return found, err
	}
	if found.floatingIPs, err = d.reads.floatingIPs.Get(ctx, scope.clusterScope(), scope.Description()); err != nil || scope.withoutVolumes {
		return found, err
	}
	found.volumes, err = d.reads.volumes.Get(ctx, scope.clusterScope(), scope.UID)
	return found, err
}

// findPorts adds the machine's ports, and the servers that have one and are not listed.
func (d *Driver) findPorts(ctx context.Context, scope machineScope, found *ownedResources) error {
	var err error
	if found.ports, err = d.reads.ports.Get(ctx, scope.clusterScope(), scope.PortName()); err != nil {
		return err
	}
	found.servers, err = serversHiddenFromLists(ctx, scope, found.ports)
	return err
}

// serversHiddenFromLists returns the machine's servers that Nova leaves out of its lists but whose
// ids are known: those that it has given up for deletion and may still restore, and those in a cell
// that is down. Both keep their ports; a server that is gone has let go of them.
func serversHiddenFromLists(ctx context.Context, scope machineScope, ports []port) ([]server, error) {
	ids := map[string]bool{}
	for _, p := range ports {
		if p.DeviceID != "" {
			ids[p.DeviceID] = true
		}
	}
	if scope.serverID != "" && len(ports) == 0 {
		ids[scope.serverID] = true
	}
	var found []server
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		known, err := getServer(ctx, scope.Session, id)
		if err != nil && !session.IsGone(err) {
			return nil, session.Explain(err)
		}
		if err != nil || known.Status == statusDeleted {
			continue
		}
		if known.Metadata == nil {
			// All that Nova tells of a server in a cell that is down, in its newer versions.
			return nil, sdk.NewUnknownOutcome("Nova cannot say now whose the server " + id + " is.")
		}
		if owner, marked := known.owner(); marked && owner.Cluster == scope.Cluster && owner.UID == scope.UID {
			found = append(found, known)
		}
	}
	slices.SortFunc(found, server.compareAge)
	return found, nil
}

func getServer(ctx context.Context, in *session.Session, id string) (server, error) {
	var answer struct {
		Server server `json:"server"`
	}
	_, err := in.Compute.Get(ctx, in.Compute.ServiceURL("servers", id), &answer, nil) //nolint:bodyclose // gophercloud closes it
	return answer.Server, err
}

// changes finds servers that have come, changed or gone recently.
type changes struct{ Options }

// recentKey names the machine of an owner among those whose servers are looked for.
func recentKey(o ownership.Owner) string { return nameAndDescription(o.ServerName(), o.Description()) }

func nameAndDescription(name, description string) string { return name + "\x00" + description }

// recentOf returns the servers of machines that have come, changed or gone recently, by key. Nova
// lists the deleted ones without metadata and tags, but with name and description. Its filter of
// names is a regular expression without alternatives, and there is none of descriptions for
// ordinary users: so what the names of all have in common is asked for.
func (c changes) recentOf(ctx context.Context, where clusterScope, keys []string) (map[string][]server, error) {
	since := c.Clock().Add(-c.CreateSettle - recentFor)
	name, _, _ := strings.Cut(keys[0], "\x00")
	whole := "$"
	for _, key := range keys[1:] {
		other, _, _ := strings.Cut(key, "\x00")
		name, whole = commonPrefix(name, other), ""
	}
	changed, err := listing[server](ctx, where.Compute, "servers/detail", "servers", url.Values{
		"changes-since": {since.UTC().Format(time.RFC3339)}, "name": {"^" + regexp.QuoteMeta(name) + whole},
	})
	if err != nil {
		return nil, err
	}
	return grouped(changed, func(s server) string { return nameAndDescription(s.Name, s.Description) }, server.compareAge), nil
}

func commonPrefix(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[:i]
		}
	}
	return a[:min(len(a), len(b))]
}

// identity is what stays of an owner, whatever it is called.
func identity(o ownership.Owner) ownership.Owner {
	return ownership.Owner{Cluster: o.Cluster, UID: o.UID}
}
