package machineset

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
)

// healthTracker knows how each Machine of the fleet stands, in all namespaces that the cache shows.
// It is kept up to date by the events of Machines, each before the sets hear of it. It is safe for
// concurrent use.
type healthTracker struct {
	clock clock.PassiveClock
	limit intstr.IntOrString
	gauge gauges

	mu    sync.Mutex
	of    map[types.UID]entry
	fleet health.Fleet
	// seen is the version of the latest Machine.
	seen machineVersion
	// held are the sets that wait for the fleet to get better.
	held map[reconcile.Request]bool
}

// machineVersion is the resourceVersion of a Machine, or of a list of them. It cannot be compared
// with those of other kinds.
type machineVersion string

// isNewerThan is false if one of the versions cannot be read.
func (v machineVersion) isNewerThan(other machineVersion) bool {
	order, err := resourceversion.CompareResourceVersion(string(v), string(other))
	return err == nil && order > 0
}

// entry is one Machine's.
type entry struct {
	standing health.Standing
	// failed is since when it is known to have failed; zero while it has not.
	failed time.Time
}

func newHealthTracker(c clock.PassiveClock, limit intstr.IntOrString, g gauges) *healthTracker {
	r := &healthTracker{clock: c, limit: limit, gauge: g, of: map[types.UID]entry{}, held: map[reconcile.Request]bool{}}
	r.show()
	return r
}

// queue is where requests of sets go.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// before returns a handler that enters each Machine and then hands the event on. It wakes the sets
// that waited for the fleet to get better.
func (r *healthTracker) before(next handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			r.enter(e.Object, q)
			next.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.enter(e.ObjectNew, q)
			next.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.forgetMachine(e.Object.GetUID(), q)
			next.Delete(ctx, e, q)
		},
	}
}

func (r *healthTracker) enter(object client.Object, q queue) {
	m, ok := object.(*clusterv1alpha1.Machine)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if version := machineVersion(m.ResourceVersion); r.seen == "" || version.isNewerThan(r.seen) {
		r.seen = version
	}
	was := r.of[m.UID]
	now := entry{standing: health.SignsOf(m).Standing()}
	if health.HasFailed(m) {
		now.failed = was.failed
		if now.failed.IsZero() {
			now.failed = r.clock.Now()
		}
	}
	r.of[m.UID] = now
	r.count(was.standing, -1)
	r.count(now.standing, 1)
	r.changed(q)
}

// forgetMachine forgets a Machine that is gone.
func (r *healthTracker) forgetMachine(uid types.UID, q queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(r.of[uid].standing, -1)
	delete(r.of, uid)
	r.changed(q)
}

func (r *healthTracker) count(s health.Standing, by int) {
	switch s {
	case health.Unhealthy:
		r.fleet.Unhealthy += by
		r.fleet.Machines += by
	case health.Healthy:
		r.fleet.Machines += by
	case health.Uncounted:
	}
}

// changed shows the fleet as it is now, and wakes those that waited for that.
func (r *healthTracker) changed(q queue) {
	r.show()
	if len(r.held) == 0 || r.fleet.Meltdown(r.limit) {
		return
	}
	for request := range r.held {
		q.Add(request)
	}
	clear(r.held)
}

func (r *healthTracker) show() {
	r.gauge.machines.Set(float64(r.fleet.Machines))
	r.gauge.unhealthy.Set(float64(r.fleet.Unhealthy))
	meltdown := 0.0
	if r.fleet.Meltdown(r.limit) {
		meltdown = 1
	}
	r.gauge.meltdown.Set(meltdown)
}

// latest is the version of the latest Machine that the cache has shown; empty before the first.
func (r *healthTracker) latest() machineVersion {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// now is how the fleet stands.
func (r *healthTracker) now() health.Fleet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fleet
}

// failedSince is since when the Machine is known to have failed; zero if it is not.
func (r *healthTracker) failedSince(uid types.UID) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[uid].failed
}

// hold has the set woken when the fleet gets better. It is false if it has already.
func (r *healthTracker) hold(set client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fleet.Meltdown(r.limit) {
		return false
	}
	r.held[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}] = true
	return true
}

// verdict says in words that do not change from one Machine to the next why nothing is replaced.
func (r *healthTracker) verdict() string {
	return fmt.Sprintf("More than %s of all Machines that should be healthy are not: no failed Machine is replaced until fewer are", r.limit.String())
}
