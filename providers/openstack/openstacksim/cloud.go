package openstacksim

import (
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/grpc"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/api"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/compute"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/identity"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/image"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/network"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/state"
	"github.com/millwright-dev/millwright/providers/openstack/openstacksim/volume"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Cloud is a cloud. It is safe for concurrent use.
type Cloud struct {
	options Options
	mux     *http.ServeMux
	// routes are those of all services.
	routes []api.Route
	// upstream is nil where the cloud is in memory. Where it is not, the services hold nothing.
	upstream *upstream

	// front guards everything below.
	front *testcloud.Front
	store *state.Store

	keystone *identity.Keystone
	glance   *image.Glance
	neutron  *network.Neutron
	cinder   *volume.Cinder
	nova     *compute.Nova
}

// New returns a cloud in memory. It panics where Options name a world that cannot be, or a journal
// that cannot be read: see Open.
func New(o Options) *Cloud {
	c, err := Open(o)
	if err != nil {
		panic(err)
	}
	return c
}

// Open returns a cloud in the state that its journal holds, a new one where there is none. Errors:
// a world or a quota that cannot be, a journal that cannot be read or written.
func Open(o Options) (*Cloud, error) {
	o = o.withDefaults()
	c := &Cloud{options: o, mux: http.NewServeMux(), store: state.NewStore()}
	c.addServices()
	c.front = testcloud.NewFront(testcloud.Options{
		Operations: operations(c.routes), Effects: c.effects(), Aliases: hashes, MinLatency: o.MinCallLatency, MaxLatency: o.MaxCallLatency,
		Save: c.store.Journal.SaveCall, Newest: c.store.Newest, Log: o.Log,
	})
	c.store.Front = c.front
	if o.Upstream != nil {
		return c, c.reach(o.Upstream)
	}
	for kind := range o.Quota {
		if !slices.Contains(state.QuotaKinds(), kind) {
			return nil, fmt.Errorf("limit the quota of the cloud: no kind of resource is called %q; there are %q", kind, state.QuotaKinds())
		}
	}
	c.store.Quotas.Begin(o.Quota)
	if err := c.seed(o.World); err != nil {
		return nil, fmt.Errorf("found the world of the cloud: %w", err)
	}
	if err := c.openJournal(); err != nil {
		return nil, fmt.Errorf("open journal of the cloud: %w", err)
	}
	c.nova.Resume()
	c.serve()
	return c, nil
}

// addServices adds the services, without anything in them.
func (c *Cloud) addServices() {
	o, world := c.options, c.options.World
	c.keystone = identity.New(c.store, identity.Options{
		Regions: world.Regions, Password: Password, TokenLifetime: o.TokenLifetime, WithoutCinder: o.WithoutCinder,
	})
	c.glance = image.New(c.store)
	c.neutron = network.New(c.store, network.Options{LaxPortPolicy: o.LaxPortPolicy})
	c.cinder = volume.New(c.store, c.glance, volume.Options{Zones: world.Zones, Latency: o.VolumeLatency})
	c.nova = compute.New(c.store, c.glance, c.neutron, c.cinder, compute.Options{
		Zones: world.Zones, KeyPairs: world.KeyPairs, BootLatency: o.BootLatency, DeleteLatency: o.DeleteLatency, BindLatency: o.BindLatency,
		HostsPerZone: o.HostsPerZone, MaxVersion: api.Microversion(o.MaxComputeAPIVersion), WithoutCinder: o.WithoutCinder,
	})
	c.routes = slices.Concat(c.keystone.Routes(), c.nova.Routes(), c.neutron.Routes(), c.glance.Routes(), c.cinder.Routes())
}

// Handler serves the APIs of all services.
func (c *Cloud) Handler() http.Handler { return c.mux }

// Register serves the hooks of millwright.backend.v1alpha1 on s.
func (c *Cloud) Register(s grpc.ServiceRegistrar) {
	backendv1alpha1.RegisterBackendServiceServer(s, c.hooks())
}

func (c *Cloud) hooks() backendv1alpha1.BackendServiceServer {
	if c.upstream != nil {
		return &upstreamHooks{hooks: *newHooks(c), mirror: c.upstream.mirror}
	}
	return newHooks(c)
}

// Close ends every wait, without the effect of what waited for it, and closes the journal. The
// second Close does nothing.
func (c *Cloud) Close() error {
	c.front.Lock()
	defer c.front.Unlock()
	if !c.front.Close() {
		return nil
	}
	return c.store.Journal.Close()
}

// effects are those of faults that the cloud supports. What real services do by themselves it
// cannot change.
func (c *Cloud) effects() []backendv1alpha1.FaultEffect {
	return slices.DeleteFunc(testcloud.AllEffects(), func(e backendv1alpha1.FaultEffect) bool {
		return c.options.Upstream != nil &&
			(e == backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE || e == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS)
	})
}
