package network

import (
	mathrand "math/rand/v2"

	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
)

// Options say how Neutron behaves.
type Options struct {
	// LaxPortPolicy lets everybody choose MAC and IP addresses in networks of other projects, as
	// few clouds do.
	LaxPortPolicy bool
}

// Notifier hears of ports, as Nova does by external events.
type Notifier interface {
	// PortDeleted says that a port has gone: the event network-vif-deleted.
	PortDeleted(p *Port)
}

// Neutron is the network service. The lock of its store's Front guards it.
type Neutron struct {
	store    *state.Store
	options  Options
	notifier Notifier
	// dice draw MAC addresses.
	dice *mathrand.Rand

	Networks       *state.Inventory[*Network]
	Subnets        *state.Inventory[*Subnet]
	Ports          *state.Inventory[*Port]
	SecurityGroups *state.Inventory[*SecurityGroup]
	FloatingIPs    *state.Inventory[*FloatingIP]
	Trunks         *state.Inventory[*Trunk]
	Routers        *state.Inventory[*Router]
}

// New returns a Neutron without networks.
func New(store *state.Store, o Options) *Neutron {
	return &Neutron{
		store: store, options: o, dice: mathrand.New(mathrand.NewPCG(1, 2)),
		Networks: state.NewInventory[Network]("network", store), Subnets: state.NewInventory[Subnet]("subnet", store),
		Ports: state.NewInventory[Port]("port", store), SecurityGroups: state.NewInventory[SecurityGroup]("securityGroup", store),
		FloatingIPs: state.NewInventory[FloatingIP]("floatingIP", store), Trunks: state.NewInventory[Trunk]("trunk", store),
		Routers: state.NewInventory[Router]("router", store),
	}
}

// Notify has Neutron tell somebody of its ports.
func (neutron *Neutron) Notify(n Notifier) { neutron.notifier = n }

// Journaled are the kinds of resources that Neutron has in the journal.
func (neutron *Neutron) Journaled() []state.Journaled {
	return []state.Journaled{
		neutron.Networks, neutron.Subnets, neutron.Ports, neutron.SecurityGroups, neutron.FloatingIPs, neutron.Trunks, neutron.Routers,
	}
}

// Restored is told that the journal has been read: it marks what addresses are in use, and
// remembers whose everything is.
func (neutron *Neutron) Restored() {
	mark := func(subnet, address string) {
		if s := neutron.Subnets.ByID[subnet]; s != nil {
			s.mark(address)
		}
	}
	for _, p := range neutron.Ports.Ordered {
		for _, ip := range p.FixedIPs {
			mark(ip.Subnet, ip.Address)
		}
		rememberPort(neutron, p)
	}
	for _, r := range neutron.Routers.Ordered {
		for _, ip := range r.Gateway {
			mark(ip.Subnet, ip.Address)
		}
	}
	for _, f := range neutron.FloatingIPs.Ordered {
		mark(f.Subnet, f.Address)
		neutron.store.Owners.Set(f.ID, f.Owner)
	}
	for _, k := range neutron.Trunks.Ordered {
		neutron.store.Owners.Set(k.ID, k.Owner)
	}
}
