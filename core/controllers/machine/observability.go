package machine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/lifecycle"
)

// askInterval is how often the API server and the drivers are asked whether they are there.
const askInterval = 2 * time.Second

// observability keeps the clocks that timeouts run by: they run while this process leads, the API
// server answers and has done so for the settle period, and the driver takes calls. It runs as the
// leader only, so what it counts begins when that begins.
type observability struct {
	clock   clock.WithTicker
	settle  time.Duration
	drivers *driver.Drivers
	// ask asks each API server that matters whether it is there.
	ask      []func(context.Context) error
	measures *measures
	log      logr.Logger

	// heartbeats tell whether Nodes report.
	heartbeats *heartbeats

	mu             sync.Mutex
	cluster, nodes stopwatch
	cloud          map[string]*stopwatch
}

// newObservability adds the clocks that timeouts run by to the manager. nodes is the API server of
// the Nodes.
func newObservability(mgr ctrl.Manager, o Options, m *measures, nodes rest.Interface) (*observability, error) {
	watch := &observability{
		clock: o.Clock, settle: o.Settle, drivers: o.Drivers, ask: []func(context.Context) error{pings(nodes)}, measures: m,
		log: mgr.GetLogger().WithName("machine"), cloud: map[string]*stopwatch{},
		heartbeats: newHeartbeats(o.Workload.GetClient(), o.Workload.GetAPIReader()),
	}
	if o.Workload != cluster.Cluster(mgr) {
		own, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("make a client for the manager's API server: %w", err)
		}
		watch.ask = append(watch.ask, pings(own.RESTClient()))
	}
	if err := mgr.Add(watch); err != nil {
		return nil, fmt.Errorf("add the clocks of timeouts: %w", err)
	}
	return watch, nil
}

// stopwatch adds up time that is known to have been good: that between two good readings of which
// the second follows the first without a gap. The zero value stands still.
type stopwatch struct {
	total time.Duration
	// from is when it began to run, which may be yet to come; zero while it stands still.
	from time.Time
	last time.Time
}

// read takes a reading. Where it began to run anew it counts only after settle.
func (s *stopwatch) read(now time.Time, good bool, settle time.Duration) {
	if gap := now.Sub(s.last) > 3*askInterval; !s.from.IsZero() && (!good || gap) {
		s.total, s.from = s.ran(), time.Time{}
	}
	if !good {
		return
	}
	if s.from.IsZero() {
		s.from = now.Add(settle)
	}
	s.last = now
}

// ran is how long it has run, up to the last good reading.
func (s *stopwatch) ran() time.Duration {
	if s.from.IsZero() {
		return s.total
	}
	return s.total + max(s.last.Sub(s.from), 0)
}

// runs says whether it counted at the last reading.
func (s *stopwatch) runs() bool {
	return !s.from.IsZero() && !s.last.Before(s.from)
}

// Start asks until ctx ends. It is a controller-runtime Runnable.
func (o *observability) Start(ctx context.Context) error {
	tick := o.clock.NewTicker(askInterval)
	defer tick.Stop()
	for {
		o.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// NeedLeaderElection is true: what a process sees that does not lead helps nobody.
func (o *observability) NeedLeaderElection() bool { return true }

// look takes one reading of everything.
func (o *observability) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, askInterval)
	defer cancel()
	var missing error
	for _, ask := range o.ask {
		if err := ask(asked); err != nil {
			missing = err
		}
	}
	if ctx.Err() != nil {
		return
	}
	reporting := missing == nil && o.heartbeats.look(asked, o.clock.Now())
	now := o.clock.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	// What settles it is that Nodes are seen to report.
	o.nodes.read(now, reporting, 0)
	was := o.cluster.runs()
	o.cluster.read(now, missing == nil, o.settle)
	if was && !o.cluster.runs() {
		o.log.Info("The API server does not answer: timeouts of Machines stand still", "error", missing)
	}
	for _, name := range o.drivers.Names() {
		o.readDriver(name, now)
	}
}

// readDriver takes a reading of one driver.
func (o *observability) readDriver(name string, now time.Time) {
	watch, known := o.cloud[name]
	if !known {
		watch = &stopwatch{}
		o.cloud[name] = watch
	}
	d, err := o.drivers.For(name)
	watch.read(now, err == nil && o.cluster.runs() && d.Unready() == "", 0)
	if !watch.runs() {
		o.measures.paused.WithLabelValues(name).Add(askInterval.Seconds())
	}
}

// reading is what the clocks of a driver's machines show.
func (o *observability) reading(d *driver.Driver) lifecycle.Clock {
	o.mu.Lock()
	defer o.mu.Unlock()
	reading := lifecycle.Clock{Cluster: o.cluster.ran(), Nodes: o.nodes.ran()}
	if d == nil {
		return reading
	}
	if watch, known := o.cloud[d.Name()]; known {
		reading.Cloud, reading.Runs = watch.ran(), watch.runs()
	}
	if !reading.Runs && o.cluster.runs() {
		reading.Away = d.Unready()
	}
	return reading
}

// pings returns a function that asks an API server whether it, and what it stores things in, is
// there.
func pings(client rest.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		err := client.Get().AbsPath("/readyz").Do(ctx).Error()
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			// It is there to say so.
			return nil
		}
		return err
	}
}

// readHeartbeat finds out for a drain whether the kubelet of a silent Node can be heard after
// all. It also asks for a look at whether those of other Nodes are heard.
func (o *observability) readHeartbeat(ctx context.Context, node string, found *lifecycle.Drain) {
	o.heartbeats.want(o.clock.Now())
	lease, err := o.heartbeats.leaseOf(ctx, node)
	found.Silent, found.RenewTime = true, renewedAt(lease)
	if err != nil {
		found.LeaseError = err.Error()
	}
}
