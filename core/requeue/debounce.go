package requeue

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EventDelay is how long changes of what an object owns are collected before the owner is
// reconciled once for all of them.
const EventDelay = 50 * time.Millisecond

// An owner of many objects rests after each reconcile. A look at one object takes some 20 µs, and
// all of them change all the time while there is much to do. Up to a few hundred objects,
// EventDelay is rest enough.
const (
	restPerObject = 200 * time.Microsecond
	longestRest   = time.Second
)

// Debounce bounds how often owners of many objects are reconciled. A change of the owner's own spec
// does not wait. It is safe for concurrent use; the zero value is ready.
type Debounce struct {
	mu    sync.Mutex
	rests map[types.NamespacedName]rest
}

type rest struct {
	generation int64
	until      time.Time
}

// Wait is how long the owner has to rest yet; 0 when it may be reconciled.
func (d *Debounce) Wait(owner client.Object, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, rests := d.rests[client.ObjectKeyFromObject(owner)]
	if !rests || r.generation != owner.GetGeneration() {
		return 0
	}
	return max(r.until.Sub(now), 0)
}

// Record says that the owner of so many objects is being reconciled now.
func (d *Debounce) Record(owner client.Object, objects int, now time.Time) {
	key := client.ObjectKeyFromObject(owner)
	wanted := min(time.Duration(objects)*restPerObject, longestRest) - EventDelay
	d.mu.Lock()
	defer d.mu.Unlock()
	if wanted <= 0 {
		delete(d.rests, key)
		return
	}
	if d.rests == nil {
		d.rests = map[types.NamespacedName]rest{}
	}
	d.rests[key] = rest{generation: owner.GetGeneration(), until: now.Add(wanted)}
}

// Forget drops an owner that is gone.
func (d *Debounce) Forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rests, key)
}
