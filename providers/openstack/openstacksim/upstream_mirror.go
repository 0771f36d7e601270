package openstacksim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"google.golang.org/protobuf/proto"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

const (
	// mirrorInterval is how often the servers are looked at, for those who wait for news of them.
	mirrorInterval = 2 * time.Second
	// overlap is how much of the past each look takes in again: clocks, and writes under way.
	overlap = 5 * time.Second
	// mirrorVersion is the first of Nova's with all that is read here: description, tags, the
	// flavor's name, volumes that go with a server.
	mirrorVersion = "2.67"
)

// mirror is what an administrator sees of a project of real services, and of its servers what he
// has seen of them.
type mirror struct {
	project, region string
	// compute, network and volumes are an administrator's; member are Nova and Neutron of one of
	// the project.
	compute, network, volumes *gophercloud.ServiceClient
	member                    struct{ compute, network, image *gophercloud.ServiceClient }

	// looking is held by who looks, and guards looked: up to when it is known which servers have
	// gone.
	looking sync.Mutex
	looked  time.Time

	// The cloud's lock guards these: all VMs in the order in which they were seen first, and the
	// numbers of them by id.
	vms     []*backendv1alpha1.VM
	numbers map[string]int64
	// history has the changes of VMs, by number; peak is the most that there were at once of a
	// cluster, and of all under "".
	history testcloud.History
	peak    map[string]int64

	front  *testcloud.Front
	owners *state.Owners
}

// reach makes the cloud stand before real services.
func (c *Cloud) reach(o *Upstream) (err error) {
	if c.upstream, err = reachUpstream(context.Background(), o); err != nil {
		return fmt.Errorf("reach the real services: %w", err)
	}
	c.upstream.front, c.upstream.owners, c.upstream.log = c.front, c.store.Owners, c.options.Log
	c.upstream.mirror.front, c.upstream.mirror.owners = c.front, c.store.Owners
	c.serve()
	go c.upstream.mirror.keepLooking(c.options.Log)
	return nil
}

func newMirror(ctx context.Context, o *Upstream, administrator *gophercloud.ProviderClient) (*mirror, error) {
	m := &mirror{region: o.Region, numbers: map[string]int64{}, peak: map[string]int64{}, looked: time.Now()}
	member, err := o.logIn(ctx, o.Member)
	if err != nil {
		return nil, err
	}
	in := gophercloud.EndpointOpts{Region: o.Region, Availability: gophercloud.AvailabilityInternal}
	for _, service := range []struct {
		user *gophercloud.ProviderClient
		open func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
		into **gophercloud.ServiceClient
	}{
		{administrator, openstack.NewComputeV2, &m.compute}, {administrator, openstack.NewNetworkV2, &m.network},
		{administrator, openstack.NewBlockStorageV3, &m.volumes},
		{member, openstack.NewComputeV2, &m.member.compute}, {member, openstack.NewNetworkV2, &m.member.network},
		{member, openstack.NewImageV2, &m.member.image},
	} {
		if *service.into, err = service.open(service.user, in); err != nil {
			return nil, fmt.Errorf("find a service: %w", err)
		}
	}
	m.compute.Microversion, m.member.compute.Microversion = mirrorVersion, mirrorVersion
	m.project, err = projectOf(member)
	return m, err
}

// keepLooking looks at the servers until the cloud is closed.
func (m *mirror) keepLooking(log *slog.Logger) {
	tick := time.NewTicker(mirrorInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-m.front.Closed():
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), upstreamLimit)
		if err := m.look(ctx); err != nil {
			log.Info("the servers could not be looked at", "error", err)
		}
		cancel()
	}
}

// look takes note of what has become of the servers.
func (m *mirror) look(ctx context.Context) error {
	m.looking.Lock()
	defer m.looking.Unlock()
	began := time.Now()
	alive, err := m.list(ctx, servers.ListOpts{})
	if err != nil {
		return err
	}
	changed, err := m.list(ctx, servers.ListOpts{ChangesSince: m.looked.Add(-overlap).UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	m.looked = began
	m.front.Lock()
	defer m.front.Unlock()
	seen := map[string]bool{}
	for _, s := range slices.Concat(changed, alive) {
		seen[s.ID] = true
		m.see(s.vm(m.region))
	}
	for id, number := range m.numbers {
		if vm := m.vms[number]; !seen[id] && vm.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
			vm = proto.CloneOf(vm)
			vm.State, vm.UserData = backendv1alpha1.VMState_VM_STATE_GONE, nil
			m.see(vm)
		}
	}
	return nil
}

// list returns servers of the project, of all users.
func (m *mirror) list(ctx context.Context, o servers.ListOpts) ([]realServer, error) {
	o.AllTenants, o.TenantID = true, m.project
	pages, err := servers.List(m.compute, o).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list servers: %w", err)
	}
	var found []realServer
	return found, servers.ExtractServersInto(pages, &found)
}

// see takes note of a VM as it is now. One that is gone stays gone: lists do not tell the same at
// one time.
func (m *mirror) see(vm *backendv1alpha1.VM) {
	number, known := m.numbers[vm.GetId()]
	if known {
		before := m.vms[number]
		vm.Revision = before.GetRevision()
		inherit(vm, before)
		if proto.Equal(before, vm) || before.GetState() == backendv1alpha1.VMState_VM_STATE_GONE {
			return
		}
	} else {
		number = int64(len(m.vms))
		m.numbers[vm.GetId()] = number
		m.vms = append(m.vms, vm)
	}
	m.owners.Set(vm.GetId(), state.Owner{Cluster: vm.GetClusterUid(), Machine: vm.GetMachineUid()})
	vm.Revision = m.history.Note(number)
	m.vms[number] = vm
	m.notePeak(vm.GetClusterUid())
	m.front.Wake()
}

// notePeak keeps the most VMs that were there at once, of the cluster and of all.
func (m *mirror) notePeak(cluster string) {
	count := map[string]int64{}
	for _, vm := range m.vms {
		if vm.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
			count[""]++
			if vm.GetClusterUid() != "" {
				count[vm.GetClusterUid()]++
			}
		}
	}
	for _, of := range []string{"", cluster} {
		m.peak[of] = max(m.peak[of], count[of])
	}
}
