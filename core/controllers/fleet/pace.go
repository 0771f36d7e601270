package fleet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An owner with many objects rests after each reconcile, restPerObject for each of them and longestRest at most: looking at
// all of them takes some 20 µs each, and they change all the time while there is much to do. Up to a few hundred
// objects the moment for which changes are gathered is rest enough.
const (
	restPerObject = 200 * time.Microsecond
	longestRest   = time.Second
)

// Pace is when owners of many objects are reconciled again. A change of the owner itself waits for nothing. It is safe for
// concurrent use; the zero value is ready.
type Pace struct {
	mu    sync.Mutex
	rests map[types.NamespacedName]rest
}

type rest struct {
	generation int64
	until      time.Time
}

// Wait is how long the owner has to rest yet; 0 when it may be reconciled.
func (p *Pace) Wait(owner client.Object, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, rests := p.rests[client.ObjectKeyFromObject(owner)]
	if !rests || r.generation != owner.GetGeneration() {
		return 0
	}
	return max(r.until.Sub(now), 0)
}

// Note says that the owner, which has this many objects, is being reconciled.
func (p *Pace) Note(owner client.Object, objects int, now time.Time) {
	key := client.ObjectKeyFromObject(owner)
	wanted := min(time.Duration(objects)*restPerObject, longestRest) - gather
	p.mu.Lock()
	defer p.mu.Unlock()
	if wanted <= 0 {
		delete(p.rests, key)
		return
	}
	if p.rests == nil {
		p.rests = map[types.NamespacedName]rest{}
	}
	p.rests[key] = rest{generation: owner.GetGeneration(), until: now.Add(wanted)}
}

// Forget drops an owner that is gone.
func (p *Pace) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rests, key)
}
