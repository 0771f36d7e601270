package driver

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/ownership"
	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/providers/openstack/spec"
	"github.com/millwright-dev/millwright/sdk"
)

// ListMachines implements sdk.Lister.
func (d *Driver) ListMachines(ctx context.Context, r *driverv1alpha1.ListMachinesRequest) (*driverv1alpha1.ListMachinesResponse, error) {
	account, err := spec.ReadAccount(r.GetProvider().GetProviderSpec(), r.GetProvider().GetSecrets(), d.options.Environment)
	if err != nil {
		return nil, err
	}
	opened, err := d.sessions.Open(ctx, account, spec.MinComputeAPIVersion)
	if err != nil {
		return nil, err
	}
	where := clusterScope{Session: opened, cluster: r.GetMeta().GetClusterUid()}
	all, known := d.lists.of(where, d.options.Clock())
	if r.GetPageToken() == "" || !known {
		if all, err = d.listCluster(ctx, opened, where.cluster); err != nil {
			return nil, err
		}
	}
	page, err := sdk.Page(r, all)
	d.lists.keep(where, d.options.Clock(), all, page.GetNextPageToken() != "")
	return page, err
}

// listLife is how long the pages of a list may take to be asked for before the rest is looked up
// anew.
const listLife = time.Minute

// lists are those whose pages core is reading. Without them each page would cost all of the list;
// no page depends on them.
type lists struct {
	mu   sync.Mutex
	last map[clusterScope]list
}

type list struct {
	at       time.Time
	machines []*driverv1alpha1.Machine
}

// of returns a list that is being read.
func (l *lists) of(where clusterScope, now time.Time) ([]*driverv1alpha1.Machine, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.last, func(_ clusterScope, one list) bool { return now.Sub(one.at) > listLife })
	found, known := l.last[where]
	return found.machines, known
}

// keep keeps a list for the next page, or forgets it where there is none.
func (l *lists) keep(where clusterScope, now time.Time, machines []*driverv1alpha1.Machine, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !more {
		delete(l.last, where)
		return
	}
	if l.last == nil {
		l.last = map[clusterScope]list{}
	}
	l.last[where] = list{at: now, machines: machines}
}

// listCluster returns every machine of a cluster that owns anything in a project.
func (d *Driver) listCluster(ctx context.Context, in *session.Session, cluster string) ([]*driverv1alpha1.Machine, error) {
	asked := d.options.Clock()
	machines := map[string]*ownedResources{}
	of := func(owner ownership.Owner) *ownedResources {
		if machines[owner.UID] == nil {
			machines[owner.UID] = d.nothingOwned(owner)
		}
		return machines[owner.UID]
	}
	listed, err := d.faults.servers(ctx, in, url.Values{"tags": {ownership.ClusterTag(cluster)}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(listed, server.compareAge)
	for _, s := range listed {
		if owner, marked := s.owner(); marked && owner.Cluster == cluster {
			h := of(owner)
			h.servers = append(h.servers, s)
		}
	}
	// As for one machine, what a server needs is asked for after the servers.
	ports, err := portsListed(ctx, in, url.Values{"description": {ownership.ClusterDescription(cluster)}})
	if err != nil {
		return nil, err
	}
	for _, p := range ports {
		if owner, ours := ownership.FromPort(cluster, p.Name, p.Description); ours {
			h := of(owner)
			h.ports = append(h.ports, p)
		}
	}
	// Neutron finds a description by all of it: a project's floating IPs, which are few, are looked
	// through.
	floatingIPs, err := floatingIPsListed(ctx, in, url.Values{})
	if err != nil {
		return nil, err
	}
	for _, f := range floatingIPs {
		if owner, ours := ownership.FromDescription(cluster, f.Description); ours {
			h := of(owner)
			h.floatingIPs = append(h.floatingIPs, f)
		}
	}
	// While Cinder does not answer, the rest is worth being told: who has a volume has a port, too.
	volumes, withoutCinder := volumesListed(ctx, in, cluster)
	if withoutCinder != nil && status.Code(withoutCinder) != codes.Unavailable {
		return nil, withoutCinder
	}
	for _, v := range volumes {
		if owner, marked := ownership.FromMetadata(v.Metadata); marked && owner.Cluster == cluster {
			h := of(owner)
			h.volumes = append(h.volumes, v)
		}
	}
	var all []*driverv1alpha1.Machine
	for _, uid := range slices.Sorted(maps.Keys(machines)) {
		h := machines[uid]
		if len(h.servers) == 0 {
			if h.servers, err = serversHiddenFromLists(ctx, machineScope{Owner: h.Owner, Session: in}, h.ports); err != nil {
				return nil, err
			}
		}
		all = append(all, h.machine(in))
	}
	if withoutCinder != nil {
		return all, nil
	}
	d.leftovers.listed(clusterScope{Session: in, cluster: cluster}, asked, machines)
	return all, nil
}
