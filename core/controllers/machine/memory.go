package machine

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/apiserver"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// memory is what this process remembers of one Machine. Only the one worker that has the Machine
// uses it.
type memory struct {
	// object is the Machine's metadata.uid: another Machine of the same name has nothing to do with
	// it.
	object    types.UID
	lifecycle lifecycle.Memory
	// version is the Machine's resourceVersion after our last write to it.
	version string
	// released: our finalizer is removed.
	released bool
	// behindSince is since when the cache has been seen to be behind; zero while it is not.
	behindSince time.Time
	// undecided counts how often in a row the Machine could not go for its set's sake.
	undecided int
	// node is the Node as our last write to it left it, until the cache has it.
	node *corev1.Node
	// outdatedSince is since when the Machine's set has been seen to be outdated; zero while it is
	// not.
	outdatedSince time.Time
	// token is what is known of the bootstrap token.
	token lifecycle.Token
	// driver and uid are where the VM is tracked.
	driver *driver.Driver
	uid    string
}

// machineMemories are safe for use by several workers. The zero value is empty.
type machineMemories struct {
	mu    sync.Mutex
	of    map[client.ObjectKey]*memory
	since time.Time
}

// get returns the memory of a Machine, and since when there are memories: since this process took
// over.
func (m *machineMemories) get(machine *clusterv1alpha1.Machine, now time.Time) (*memory, time.Time) {
	key := client.ObjectKeyFromObject(machine)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of, m.since = map[client.ObjectKey]*memory{}, now
	}
	found, known := m.of[key]
	if known && found.object != machine.UID {
		found.leave(key)
		known = false
	}
	if !known {
		found = &memory{object: machine.UID}
		m.of[key] = found
	}
	return found, m.since
}

// forget drops the memory of a Machine that is gone, and with it what its driver knows of it.
func (m *machineMemories) forget(key client.ObjectKey) {
	m.mu.Lock()
	found, known := m.of[key]
	delete(m.of, key)
	m.mu.Unlock()
	if known {
		found.leave(key)
	}
}

// leave drops what the Machine's driver knows of it.
func (m *memory) leave(key client.ObjectKey) {
	if m.driver != nil {
		m.driver.Forget(key, m.uid)
	}
}

// startOver makes it that of a process that has not seen the Machine yet.
func (m *memory) startOver() {
	*m = memory{object: m.object, driver: m.driver, uid: m.uid}
}

// ahead says whether we have written to the Machine since it was as shown.
func (m *memory) ahead(shown *clusterv1alpha1.Machine) bool {
	return apiserver.IsNewer(m.version, shown.ResourceVersion) || m.released && controllerutil.ContainsFinalizer(shown, clusterv1alpha1.MachineFinalizer)
}

// staleAfter is how long the cache may be behind before the API server itself is asked.
const staleAfter = 10 * time.Second

// behind returns how long to wait for the cache to show our last write to the Machine; zero when it
// does. The event that brings the cache up to date reconciles earlier. After a restore from a
// backup the API server itself may not have the write any more. Then nothing that was
// remembered of the Machine holds.
func (r *reconciler) behind(ctx context.Context, m *clusterv1alpha1.Machine, mem *memory) (time.Duration, error) {
	now := r.Clock.Now()
	if !mem.ahead(m) {
		mem.behindSince = time.Time{}
		return 0, nil
	}
	if mem.behindSince.IsZero() {
		mem.behindSince = now
	}
	if wait := mem.behindSince.Add(staleAfter).Sub(now); wait > 0 {
		return wait, nil
	}
	actual := &clusterv1alpha1.Machine{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(m), actual); err != nil {
		return staleAfter, client.IgnoreNotFound(err)
	}
	if actual.UID != m.UID || !mem.ahead(actual) {
		return staleAfter, nil
	}
	log.FromContext(ctx).Info("The API server has an older Machine than the one written last; starting over with it")
	mem.startOver()
	return 0, nil
}
