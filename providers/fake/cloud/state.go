package cloud

import (
	"crypto/rand"
	"fmt"
	"maps"

	"google.golang.org/grpc"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
	"github.com/millwright-dev/millwright/sdk/testcloud"
)

// Cloud is a cloud. It is safe for concurrent use.
type Cloud struct {
	options Options

	// front guards everything below.
	front   *testcloud.Front
	journal *testcloud.Journal[entry]

	name       string // tells this cloud's ids from another's
	seq        int64
	vms        map[int64]*vm // by Seq, also those that are gone
	vmTokens   map[string]int64
	vmHistory  testcloud.History
	alive      *inventory[*vm]
	nics       *inventory[*nic]
	nicTokens  map[string]string
	quota      map[string]int64
	quotaSet   bool             // by a hook: then it is part of the state
	aliveCount map[string]int64 // by cluster; "" counts all
	peak       map[string]int64 // likewise
}

// Open returns a cloud in the state that its journal holds, a new one where there is none.
func Open(o Options) (*Cloud, error) {
	c := &Cloud{
		options: o.withDefaults(),
		vms:     map[int64]*vm{}, vmTokens: map[string]int64{}, nicTokens: map[string]string{},
		alive: newInventory[*vm](), nics: newInventory[*nic](),
		quota: maps.Clone(o.Quota), aliveCount: map[string]int64{}, peak: map[string]int64{},
	}
	c.front = testcloud.NewFront(testcloud.Options{
		Operations: operations, Effects: testcloud.AllEffects(), MinLatency: c.options.MinCallLatency, MaxLatency: c.options.MaxCallLatency,
		Save: func(one *testcloud.Call) error { return c.write(entry{Call: one}) }, Newest: func() int64 { return c.seq }, Log: c.options.Log,
	})
	if c.quota == nil {
		c.quota = map[string]int64{}
	}
	if err := c.openJournal(); err != nil {
		return nil, fmt.Errorf("open journal of the cloud: %w", err)
	}
	if c.name == "" {
		c.name = newName()
		if err := c.write(entry{Name: c.name}); err != nil {
			return nil, fmt.Errorf("begin journal of the cloud: %w", err)
		}
	}
	for _, v := range c.alive.ordered {
		if !v.Due.IsZero() {
			c.arm(v)
		}
	}
	return c, nil
}

func newName() string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x", b)
}

// Register serves the cloud's own API and its hooks on s.
func (c *Cloud) Register(s grpc.ServiceRegistrar) {
	fakecloudv1alpha1.RegisterCloudServiceServer(s, &api{cloud: c})
	c.RegisterHooks(s)
}

// RegisterHooks serves only the hooks on s.
func (c *Cloud) RegisterHooks(s grpc.ServiceRegistrar) {
	backendv1alpha1.RegisterBackendServiceServer(s, newHooks(c))
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

// putVM takes in a VM that is new, here or in the journal.
func (c *Cloud) putVM(v *vm) {
	c.vms[v.Seq] = v
	if v.Token != "" {
		c.vmTokens[v.tokenKey()] = v.Seq
	}
	c.seq = max(c.seq, v.Seq)
	if v.State == gone {
		return
	}
	c.alive.add(v)
	c.countAlive(v, 1)
}

func (c *Cloud) putNIC(n *nic) {
	c.nics.add(n)
	if n.Token != "" {
		c.nicTokens[n.tokenKey()] = n.ID
	}
	c.seq = max(c.seq, n.Seq)
}

func (c *Cloud) dropNIC(id string) {
	if n := c.nics.byID[id]; n != nil {
		delete(c.nicTokens, n.tokenKey())
		c.nics.remove(id)
	}
}

// countAlive keeps the counts of VMs, and their peaks.
func (c *Cloud) countAlive(v *vm, by int64) {
	clusters := []string{""}
	if cluster := v.clusterUID(); cluster != "" {
		clusters = append(clusters, cluster)
	}
	for _, cluster := range clusters {
		c.aliveCount[cluster] += by
		c.peak[cluster] = max(c.peak[cluster], c.aliveCount[cluster])
	}
}

// touch gives the VM a new revision, and returns it.
func (c *Cloud) touch(v *vm) *vm {
	v.Revision = c.vmHistory.Note(v.Seq)
	c.vmHistory.Tidy(len(c.vms), c.currentVM)
	c.front.Wake()
	return v
}

func (c *Cloud) currentVM(ch testcloud.Change) bool { return c.vms[ch.Key].Revision == ch.Revision }
