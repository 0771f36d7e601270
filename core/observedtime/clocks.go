package observedtime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/lifecycle"
	"github.com/millwright-dev/millwright/core/metrics"
)

// askInterval is how often the API server and the drivers are asked whether they are there.
const askInterval = 2 * time.Second

// Options are the choices of whoever wires the clocks. Drivers and Clock are required.
type Options struct {
	// Drivers make and delete the VMs.
	Drivers *driver.Drivers
	// Workload is the cluster of the Nodes; nil where there are none.
	Workload cluster.Cluster
	// Settle is for how long after this process began, or the API server came back, no clock runs:
	// kubelets have to report again first.
	Settle time.Duration
	// Clock tells the time. It must be the drivers' clock.
	Clock clock.WithTicker
}

// Clocks keep the three clocks of lifecycle.Clock, which says when each runs. They run on the
// leader only, so what they count begins when that begins. They are safe for concurrent use.
type Clocks struct {
	Options

	// ask asks each API server that matters whether it is there.
	ask []func(context.Context) error
	// paused counts, for each driver, the time in which its machines' clock stood still.
	paused *prometheus.CounterVec
	log    logr.Logger

	// heartbeats tell whether Nodes report; nil where there are none.
	heartbeats *heartbeats

	mu             sync.Mutex
	cluster, nodes stopwatch
	cloud          map[string]*stopwatch
}

// Add adds the clocks to the manager, which starts and stops them.
func Add(mgr ctrl.Manager, o Options) (*Clocks, error) {
	paused, err := newPaused(crmetrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	c := &Clocks{
		Options: o, paused: paused, log: mgr.GetLogger().WithName("observedtime"), cloud: map[string]*stopwatch{},
	}
	clusters := []cluster.Cluster{mgr}
	if o.Workload != nil {
		c.heartbeats = newHeartbeats(o.Workload.GetClient(), o.Workload.GetAPIReader())
	}
	if o.Workload != nil && o.Workload != cluster.Cluster(mgr) {
		clusters = append(clusters, o.Workload)
	}
	for _, each := range clusters {
		server, err := discovery.NewDiscoveryClientForConfigAndClient(each.GetConfig(), each.GetHTTPClient())
		if err != nil {
			return nil, fmt.Errorf("make a client that asks whether an API server is there: %w", err)
		}
		c.ask = append(c.ask, pings(server.RESTClient()))
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("add the clocks of timeouts: %w", err)
	}
	return c, nil
}

// newPaused registers the metric, or takes the one that is registered already.
func newPaused(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	all := &metrics.Registration{Registry: registry}
	paused := metrics.Register(all, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_machine_timeouts_paused_seconds_total",
		Help: "Time in which the timeouts of a driver's Machines stood still, because nobody could have seen them get on.",
	}, []string{"driver"}))
	return paused, all.Err
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
func (c *Clocks) Start(ctx context.Context) error {
	tick := c.Clock.NewTicker(askInterval)
	defer tick.Stop()
	for {
		c.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// NeedLeaderElection is true: what a process sees that does not lead helps nobody.
func (c *Clocks) NeedLeaderElection() bool { return true }

// look takes one reading of everything.
func (c *Clocks) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, askInterval)
	defer cancel()
	var missing error
	for _, ask := range c.ask {
		if err := ask(asked); err != nil {
			missing = err
		}
	}
	if ctx.Err() != nil {
		return
	}
	reporting := missing == nil && c.heartbeats != nil && c.heartbeats.look(asked, c.Clock.Now())
	now := c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	// What settles it is that Nodes are seen to report.
	c.nodes.read(now, reporting, 0)
	was := c.cluster.runs()
	c.cluster.read(now, missing == nil, c.Settle)
	if was && !c.cluster.runs() {
		c.log.Info("The API server does not answer: timeouts of Machines stand still", "error", missing)
	}
	for _, name := range c.Drivers.Names() {
		c.readDriver(name, now)
	}
}

// readDriver takes a reading of one driver.
func (c *Clocks) readDriver(name string, now time.Time) {
	watch, known := c.cloud[name]
	if !known {
		watch = &stopwatch{}
		c.cloud[name] = watch
	}
	d, err := c.Drivers.For(name)
	watch.read(now, err == nil && c.cluster.runs() && d.Unready() == "", 0)
	if !watch.runs() {
		c.paused.WithLabelValues(name).Add(askInterval.Seconds())
	}
}

// Reading is what the clocks of a driver's machines show.
func (c *Clocks) Reading(d *driver.Driver) lifecycle.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	reading := lifecycle.Clock{Cluster: c.cluster.ran(), Nodes: c.nodes.ran()}
	if d == nil {
		return reading
	}
	if watch, known := c.cloud[d.Name()]; known {
		reading.Cloud, reading.Runs = watch.ran(), watch.runs()
	}
	if !reading.Runs && c.cluster.runs() {
		reading.Away = d.Unready()
	}
	return reading
}

// Cluster is for how long Nodes could be observed, as in lifecycle.Clock, and whether that counts
// now.
func (c *Clocks) Cluster() (ran time.Duration, runs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cluster.ran(), c.cluster.runs()
}

// DriverRuns says whether the clock of a driver's machines counts now.
func (c *Clocks) DriverRuns(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	watch, known := c.cloud[name]
	return known && watch.runs()
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

// ReadHeartbeat finds out for a drain whether the kubelet of a silent Node can be heard after
// all. It also asks for a look at whether those of other Nodes are heard.
func (c *Clocks) ReadHeartbeat(ctx context.Context, node string, found *lifecycle.Drain) {
	c.heartbeats.want(c.Clock.Now())
	lease, err := c.heartbeats.leaseOf(ctx, node)
	found.Silent, found.RenewTime = true, renewedAt(lease)
	if err != nil {
		found.LeaseError = err.Error()
	}
}
