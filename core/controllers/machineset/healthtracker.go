package machineset

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/apiserver"
	"github.com/millwright-dev/millwright/core/health"
)

// healthTracker knows how each Machine of the fleet stands, in all namespaces that the cache shows.
// Each event of a Machine updates it before the event enqueues a set. It is safe for concurrent
// use.
type healthTracker struct {
	clock clock.PassiveClock
	limit intstr.IntOrString
	gauge gauges

	mu       sync.Mutex
	machines map[types.UID]entry
	fleet    health.Fleet
	// seen is the version of the latest Machine. It cannot be compared with those of other kinds.
	seen string
	// held are the sets that wait for the fleet to get better.
	held map[reconcile.Request]bool
}

// entry is one Machine's.
type entry struct {
	standing health.Standing
	// failed is since when it is known to have failed; zero while it has not.
	failed time.Time
}

func newHealthTracker(c clock.PassiveClock, limit intstr.IntOrString, g gauges) *healthTracker {
	t := &healthTracker{clock: c, limit: limit, gauge: g, machines: map[types.UID]entry{}, held: map[reconcile.Request]bool{}}
	t.show()
	return t
}

// queue is where requests of sets go.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// before returns a handler that records each Machine, and then hands the event on.
func (t *healthTracker) before(next handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			t.record(e.Object, q)
			next.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			t.record(e.ObjectNew, q)
			next.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			t.forget(e.Object.GetUID(), q)
			next.Delete(ctx, e, q)
		},
	}
}

func (t *healthTracker) record(object client.Object, q queue) {
	m, ok := object.(*clusterv1alpha1.Machine)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == "" || apiserver.IsNewer(m.ResourceVersion, t.seen) {
		t.seen = m.ResourceVersion
	}
	was := t.machines[m.UID]
	now := entry{standing: health.SignsOf(m).Standing()}
	if health.IsToBeReplaced(m) {
		now.failed = was.failed
		if now.failed.IsZero() {
			now.failed = t.clock.Now()
		}
	}
	t.machines[m.UID] = now
	t.count(was.standing, -1)
	t.count(now.standing, 1)
	t.wakeHeld(q)
}

// forget forgets a Machine that is gone.
func (t *healthTracker) forget(uid types.UID, q queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(t.machines[uid].standing, -1)
	delete(t.machines, uid)
	t.wakeHeld(q)
}

func (t *healthTracker) count(s health.Standing, by int) {
	switch s {
	case health.Unhealthy:
		t.fleet.Unhealthy += by
		t.fleet.Machines += by
	case health.Healthy:
		t.fleet.Machines += by
	case health.Uncounted:
	}
}

// wakeHeld shows the fleet as it is now, and enqueues the sets that waited for it to get better.
func (t *healthTracker) wakeHeld(q queue) {
	t.show()
	if len(t.held) == 0 || t.fleet.Meltdown(t.limit) {
		return
	}
	for request := range t.held {
		q.Add(request)
	}
	clear(t.held)
}

func (t *healthTracker) show() {
	t.gauge.machines.Set(float64(t.fleet.Machines))
	t.gauge.unhealthy.Set(float64(t.fleet.Unhealthy))
	meltdown := 0.0
	if t.fleet.Meltdown(t.limit) {
		meltdown = 1
	}
	t.gauge.meltdown.Set(meltdown)
}

// latest is the version of the latest Machine that the cache has shown; empty before the first.
func (t *healthTracker) latest() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}

// fleetHealth is how many Machines of the fleet are unhealthy.
func (t *healthTracker) fleetHealth() health.Fleet {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fleet
}

// failedSince is since when the Machine is known to have failed; zero if it is not.
func (t *healthTracker) failedSince(uid types.UID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machines[uid].failed
}

// hold has the set enqueued when the fleet gets better. It is false if it has got better already.
func (t *healthTracker) hold(set client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.fleet.Meltdown(t.limit) {
		return false
	}
	t.held[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}] = true
	return true
}
