package openstacksim

import (
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// Cloud is a cloud. It is safe for concurrent use.
type Cloud struct {
	options Options
	closed  chan struct{}
	mux     *http.ServeMux
	// upstream is nil where the cloud is in memory.
	upstream *upstream

	// mu guards everything below. Effects take it, waiting never happens under it.
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change that a long poll could wait for
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
	history    history
	buried     []*server          // in the order of their deletion
	gone       map[string]*server // the same by id
	aliveCount map[string]int64
	peak       map[string]int64

	quota    map[string]int64
	quotaSet bool // by a hook: then it is part of the state
	// projectQuotas are what administrators have set, by project and kind.
	projectQuotas map[string]map[string]int64
	calls         ledger
	faults        faults

	// owners remember whose each resource was, also when it is gone; nameOwners whose a name or MAC address is.
	owners, nameOwners map[string]owner
}

// New returns a cloud in memory. It panics where Options name a world that cannot be, or a journal that cannot be read: see Open.
func New(o Options) *Cloud {
	c, err := Open(o)
	if err != nil {
		panic(err)
	}
	return c
}

// Open returns a cloud in the state that its journal holds, a new one where there is none. Errors: a world or a quota that cannot be, a journal
// that cannot be read or written.
func Open(o Options) (*Cloud, error) {
	o = o.withDefaults()
	c := &Cloud{
		options: o, closed: make(chan struct{}), changed: make(chan struct{}), mux: http.NewServeMux(),
		tokens: map[string]*token{}, users: map[string]*account{}, credentials: map[string]*credential{},
		servers: map[int64]*server{}, gone: map[string]*server{}, aliveCount: map[string]int64{}, peak: map[string]int64{},
		quota: map[string]int64{}, projectQuotas: map[string]map[string]int64{}, calls: newLedger(), faults: faults{dice: mathrand.New(mathrand.NewPCG(1, 2)), effects: allEffects},
		owners: map[string]owner{}, nameOwners: map[string]owner{},
	}
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
		return &upstreamHooks{hooks: hooks{cloud: c}, mirror: c.upstream.mirror}
	}
	return &hooks{cloud: c}
}

// Close ends every wait, without the effect of what waited for it, and closes the journal. The second Close does nothing.
func (c *Cloud) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return nil
	}
	close(c.closed)
	if c.journal == nil {
		return nil
	}
	return c.journal.file.Close()
}

func (c *Cloud) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// errClosed is what a write gets that comes after the end of the cloud.
var errClosed = errors.New("the cloud is closed")

// wake lets long polls look again.
func (c *Cloud) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// report logs what went wrong where nobody can be told. That the cloud has ended is no news.
func (c *Cloud) report(err error) {
	if err != nil && !errors.Is(err, errClosed) {
		c.options.Log.Error("cloud could not write its journal", "error", err)
	}
}

// now is the wall clock without its monotonic part, as it comes back from the journal.
func now() time.Time { return time.Now().Round(0).UTC() }

// newRecord numbers a resource.
func (c *Cloud) newRecord(project, name string) record {
	c.seq++
	at := now()
	return record{Seq: c.seq, ID: newID(), Project: project, Name: name, Created: at, Updated: at}
}

// own remembers whose a resource is.
func (c *Cloud) own(id string, o owner) {
	if o != (owner{}) {
		c.owners[id] = o
	}
}
