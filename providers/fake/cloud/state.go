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

	store *store
}

// Open returns a cloud in the state that its journal holds, a new one where there is none.
func Open(o Options) (*Cloud, error) {
	quota := maps.Clone(o.Quota)
	if quota == nil {
		quota = map[string]int64{}
	}
	c := &Cloud{options: o.withDefaults(), store: newStore(quota)}
	c.front = testcloud.NewFront(testcloud.Options{
		Operations: operations, Effects: testcloud.AllEffects(), MinLatency: c.options.MinCallLatency, MaxLatency: c.options.MaxCallLatency,
		Save: func(one *testcloud.Call) error { return c.write(entry{Call: one}) }, Newest: func() int64 { return c.store.seq }, Log: c.options.Log,
	})
	if err := c.openJournal(); err != nil {
		return nil, fmt.Errorf("open journal of the cloud: %w", err)
	}
	if c.store.name == "" {
		c.store.name = newName()
		if err := c.write(entry{Name: c.store.name}); err != nil {
			return nil, fmt.Errorf("begin journal of the cloud: %w", err)
		}
	}
	for _, v := range c.store.alive.ordered {
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

// touch gives the VM a new revision, wakes who waits for changes, and returns it.
func (c *Cloud) touch(v *vm) *vm {
	c.store.touch(v)
	c.front.Wake()
	return v
}
