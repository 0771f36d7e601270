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
	where := clusterScope{cloud: opened, cluster: r.GetMeta().GetClusterUid()}
	d.lastLists.lead(where.cluster, r.GetMeta().GetLeaderEpoch())
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
	found := &inventory{driver: d, in: in, cluster: cluster, machines: map[string]*ownedResources{}}
	// As for one machine, what a server needs is asked for after the servers.
	for _, list := range []func(context.Context) error{found.servers, found.ports, found.floatingIPs, found.volumes} {
		if err := list(ctx); err != nil {
			return nil, err
		}
	}
	var all []*driverv1alpha1.Machine
	for _, uid := range slices.Sorted(maps.Keys(found.machines)) {
		h := found.machines[uid]
		if len(h.servers) == 0 {
			var err error
			if h.servers, err = serversHiddenFromLists(ctx, machineScope{owner: h.Owner, cloud: in}, h.ports); err != nil {
				return nil, err
			}
		}
		all = append(all, h.machine(in))
	}
	if !found.withoutVolumes {
		d.lastLists.listed(clusterScope{cloud: in, cluster: cluster}, asked, found.machines)
	}
	return all, nil
}

// inventory is what a cluster owns in a project, by the uids of its machines.
type inventory struct {
	driver   *Driver
	in       *session.Session
	cluster  string
	machines map[string]*ownedResources
	// withoutVolumes says that Cinder did not answer.
	withoutVolumes bool
}

// of returns what is known of a machine.
func (i *inventory) of(owner ownership.Owner) *ownedResources {
	if i.machines[owner.UID] == nil {
		i.machines[owner.UID] = i.driver.nothingOwned(owner)
	}
	return i.machines[owner.UID]
}

func (i *inventory) servers(ctx context.Context) error {
	listed, err := i.driver.faults.servers(ctx, i.in, url.Values{"tags": {ownership.ClusterTag(i.cluster)}})
	slices.SortFunc(listed, server.compareAge)
	for _, s := range listed {
		if owner, marked := s.owner(); marked && owner.Cluster == i.cluster {
			h := i.of(owner)
			h.servers = append(h.servers, s)
		}
	}
	return err
}

func (i *inventory) ports(ctx context.Context) error {
	listed, err := portsListed(ctx, i.in, url.Values{"description": {ownership.ClusterDescription(i.cluster)}})
	for _, p := range listed {
		if owner, ours := ownership.FromPort(i.cluster, p.Name, p.Description); ours {
			h := i.of(owner)
			h.ports = append(h.ports, p)
		}
	}
	return err
}

// floatingIPs looks through those of the project, which are few: Neutron finds a description only
// by all of it.
func (i *inventory) floatingIPs(ctx context.Context) error {
	listed, err := floatingIPsListed(ctx, i.in, url.Values{})
	for _, f := range listed {
		if owner, ours := ownership.FromDescription(i.cluster, f.Description); ours {
			h := i.of(owner)
			h.floatingIPs = append(h.floatingIPs, f)
		}
	}
	return err
}

// volumes does without while Cinder does not answer: who has a volume has a port, too, and the rest
// is worth being told.
func (i *inventory) volumes(ctx context.Context) error {
	listed, err := volumesListed(ctx, i.in, i.cluster)
	for _, v := range listed {
		if owner, marked := ownership.FromMetadata(v.Metadata); marked && owner.Cluster == i.cluster {
			h := i.of(owner)
			h.volumes = append(h.volumes, v)
		}
	}
	if status.Code(err) == codes.Unavailable {
		i.withoutVolumes, err = true, nil
	}
	return err
}
