package openstacksim

import (
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"slices"

	"google.golang.org/grpc"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Cloud is a cloud. It is safe for concurrent use.
type Cloud struct {
	options Options
	mux     *http.ServeMux
	// upstream is nil where the cloud is in memory.
	upstream *upstream

	// front guards everything below.
	front   *testcloud.Front
	journal *journal

	seq    int64
	given  int64 // how many things the world had
	tokens map[string]*token
	users  map[string]*account // by id

	credentials map[string]*credential

	flavors        *inventory[*flavor]
	images         *inventory[*image]
	serverGroups   *inventory[*serverGroup]
	networks       *inventory[*network]
	subnets        *inventory[*subnet]
	ports          *inventory[*port]
	securityGroups *inventory[*securityGroup]
	floatingIPs    *inventory[*floatingIP]
	trunks         *inventory[*trunk]
	routers        *inventory[*router]
	volumes        *inventory[*volume]
	volumeTypes    []volumeType

	servers    map[int64]*server // by Seq, also those that are gone
	alive      *inventory[*server]
	history    testcloud.History
	buried     []*server          // in the order of their deletion
	gone       map[string]*server // the same by id
	aliveCount map[string]int64
	peak       map[string]int64

	quota    map[string]int64
	quotaSet bool // by a hook: then it is part of the state
	// projectQuotas are what administrators have set, by project and kind.
	projectQuotas map[string]map[string]int64

	// dice draw MAC addresses.
	dice *mathrand.Rand

	// owners remember whose each resource was, also when it is gone; nameOwners whose a name or MAC
	// address is.
	owners, nameOwners map[string]owner
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
	c := &Cloud{
		options: o, mux: http.NewServeMux(),
		tokens: map[string]*token{}, users: map[string]*account{}, credentials: map[string]*credential{},
		servers: map[int64]*server{}, gone: map[string]*server{}, aliveCount: map[string]int64{}, peak: map[string]int64{},
		quota: map[string]int64{}, projectQuotas: map[string]map[string]int64{}, dice: mathrand.New(mathrand.NewPCG(1, 2)),
		owners: map[string]owner{}, nameOwners: map[string]owner{},
	}
	c.front = testcloud.NewFront(testcloud.Options{
		Operations: operationNames(), Effects: c.effects(), Aliases: hashes, MinLatency: o.MinCallLatency, MaxLatency: o.MaxCallLatency,
		Save: c.saveCall, Newest: func() int64 { return c.seq }, Log: o.Log,
	})
	c.inventories()
	if o.Upstream != nil {
		return c, c.reach(o.Upstream)
	}
	for kind := range o.Quota {
		if !slices.Contains(quotaKinds, kind) {
			return nil, fmt.Errorf("limit the quota of the cloud: no kind of resource is called %q; there are %q", kind, quotaKinds)
		}
	}
	maps.Copy(c.quota, o.Quota)
	if err := c.found(o.World); err != nil {
		return nil, fmt.Errorf("found the world of the cloud: %w", err)
	}
	if err := c.openJournal(); err != nil {
		return nil, fmt.Errorf("open journal of the cloud: %w", err)
	}
	for _, s := range c.alive.ordered {
		if !s.Due.IsZero() {
			c.arm(s)
		}
	}
	c.routes()
	return c, nil
}

func (c *Cloud) inventories() {
	c.flavors, c.images = newInventory[*flavor](c.note), newInventory[*image](c.note)
	c.alive, c.serverGroups = newInventory[*server](c.note), newInventory[*serverGroup](c.note)
	c.networks, c.subnets = newInventory[*network](c.note), newInventory[*subnet](c.note)
	c.ports, c.securityGroups = newInventory[*port](c.note), newInventory[*securityGroup](c.note)
	c.floatingIPs, c.trunks = newInventory[*floatingIP](c.note), newInventory[*trunk](c.note)
	c.routers, c.volumes = newInventory[*router](c.note), newInventory[*volume](c.note)
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
	if !c.front.Close() || c.journal == nil {
		return nil
	}
	return c.journal.Close()
}

// effects are those of faults that the cloud supports. What real services do by themselves it
// cannot change.
func (c *Cloud) effects() []backendv1alpha1.FaultEffect {
	return slices.DeleteFunc(testcloud.AllEffects(), func(e backendv1alpha1.FaultEffect) bool {
		return c.options.Upstream != nil &&
			(e == backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE || e == backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS)
	})
}

// newRecord numbers a resource.
func (c *Cloud) newRecord(project, name string) record {
	c.seq++
	at := testcloud.Now()
	return record{Seq: c.seq, ID: newID(), Project: project, Name: name, Created: at, Updated: at}
}

// own remembers whose a resource is.
func (c *Cloud) own(id string, o owner) {
	if o != (owner{}) {
		c.owners[id] = o
	}
}
