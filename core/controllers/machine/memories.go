package machine

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// memory is what this process remembers of one Machine. Only the one worker that has the Machine uses it.
type memory struct {
	lifecycle lifecycle.Memory
	// version is the Machine's resourceVersion after our last write to it.
	version string
	// node is the Node as our last write to it left it, until the cache has it.
	node *corev1.Node
	// driver and uid are where the VM is tracked.
	driver *driver.Driver
	uid    string
}

// memories are safe for use by several workers. The zero value is empty.
type memories struct {
	mu    sync.Mutex
	of    map[client.ObjectKey]*memory
	since time.Time
}

// get returns the memory of a Machine, and since when there are memories: since this process took over.
func (m *memories) get(key client.ObjectKey, now time.Time) (*memory, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of, m.since = map[client.ObjectKey]*memory{}, now
	}
	found, known := m.of[key]
	if !known {
		found = &memory{}
		m.of[key] = found
	}
	return found, m.since
}

// forget drops the memory of a Machine that is gone, and with it what its driver knows of it.
func (m *memories) forget(key client.ObjectKey) {
	m.mu.Lock()
	found, known := m.of[key]
	delete(m.of, key)
	m.mu.Unlock()
	if known && found.driver != nil {
		found.driver.Forget(key, found.uid)
	}
}

// behind says whether a cache's object is older than our last write to it.
func behind(cached client.Object, version string) bool {
	if version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), version)
	return err == nil && order < 0
}
