package compute

import (
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/image"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
)

// Options say how Nova behaves.
type Options struct {
	// Zones are the availability zones; the first is the default.
	Zones []string
	// KeyPairs are the names of those that each user has.
	KeyPairs []string
	// BootLatency is how long a server stays in BUILD; DeleteLatency how long one is deleting.
	BootLatency, DeleteLatency time.Duration
	// BindLatency is how long after POST /servers the ports' device_id is set.
	BindLatency time.Duration
	// HostsPerZone is how many hosts each zone has.
	HostsPerZone int
	// MaxVersion is the highest microversion.
	MaxVersion api.Microversion
	// WithoutCinder says that there is no block storage.
	WithoutCinder bool
}

// Nova is the compute service. The lock of its store's Front guards it.
type Nova struct {
	store   *state.Store
	options Options
	// The services that servers need.
	glance  *image.Glance
	neutron *network.Neutron
	cinder  *volume.Cinder

	Flavors      *state.Inventory[*Flavor]
	ServerGroups *state.Inventory[*ServerGroup]
	Servers      *Servers
}

// New returns a Nova without servers, flavors and server groups, which is told of ports by neutron.
func New(store *state.Store, glance *image.Glance, neutron *network.Neutron, cinder *volume.Cinder, o Options) *Nova {
	nova := &Nova{
		store: store, options: o, glance: glance, neutron: neutron, cinder: cinder, Flavors: state.NewInventory[Flavor]("flavor", store),
		ServerGroups: state.NewInventory[ServerGroup]("serverGroup", store), Servers: newServers(store),
	}
	neutron.Notify(nova)
	return nova
}

// ReadVersion reads which microversion a call speaks.
func (nova *Nova) ReadVersion(call *api.Call) error {
	return call.ReadMicroversion(nova.options.MaxVersion)
}

// Journaled are the kinds of resources that Nova has in the journal, but for its servers.
func (nova *Nova) Journaled() []state.Journaled { return []state.Journaled{nova.ServerGroups} }

// Resume has go on what servers were waiting for when the journal ended.
func (nova *Nova) Resume() {
	for _, s := range nova.Servers.Alive.Ordered {
		if !s.Due.IsZero() {
			nova.arm(s)
		}
	}
}

// PortDeleted implements network.Notifier: a server that is being built fails without its port.
func (nova *Nova) PortDeleted(p *network.Port) {
	if s := nova.Servers.Alive.ByID[p.DeviceID]; s != nil && s.VMState == VMBuilding && !s.deleting() {
		nova.abort(s, s.unconnected())
		nova.Servers.touch(s)
	}
}
