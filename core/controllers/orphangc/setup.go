package orphangc

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/orphan"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines;machinesets;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Defaults of Options.
const (
	DefaultInterval = 10 * time.Minute
	DefaultAge      = 30 * time.Minute
	// DefaultMost is few: if a backup comes back in parts, somebody has time to notice.
	DefaultMost = 5
)

// Options are the choices of whoever wires the controllers together. Drivers, ClusterUID and
// Regarding are required.
type Options struct {
	// Drivers list and delete VMs. Whoever adds the collector also starts them.
	Drivers *driver.Drivers
	// ClusterUID marks VMs as this cluster's.
	ClusterUID string
	// Accounts finds the accounts of specs. Default: by a spec's own cloudProvider and
	// cloudProviderSpec, and no secrets.
	Accounts AccountOf
	// Delete is false where orphans are only reported.
	Delete bool
	// Interval lies between two scans. Default: DefaultInterval.
	Interval time.Duration
	// Age is how old an orphan must be to be deleted. Default: DefaultAge. Less than a create may
	// take counts as that.
	Age time.Duration
	// Most is how many orphans of one driver a scan may begin to delete. Default: DefaultMost.
	Most int
	// Regarding is the object that events are about: an orphan has none of its own.
	Regarding *corev1.ObjectReference
	// Clock tells the time. Default: the real one.
	Clock clock.WithTicker
}

func (o Options) withDefaults() Options {
	if o.Accounts == nil {
		o.Accounts = accountAsWritten
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Age == 0 {
		o.Age = DefaultAge
	}
	if o.Most == 0 {
		o.Most = DefaultMost
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Add adds the collector to mgr, whose cache has ownership.Index. It works on the leader only, and
// not before the caches are warm.
func Add(mgr ctrl.Manager, o Options) error {
	c, err := newCollector(mgr, o)
	if err != nil {
		return err
	}
	return mgr.Add(c)
}

func newCollector(mgr ctrl.Manager, o Options) (*collector, error) {
	vectors, err := newMetrics(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return &collector{
		Options:    o.withDefaults(),
		cache:      mgr.GetCache(),
		live:       mgr.GetAPIReader(),
		foreigners: coexistence.NewReader(mgr.GetCache()),
		events:     mgr.GetEventRecorder("orphan"),
		log:        mgr.GetLogger().WithName("orphan"),
		metrics:    vectors,
	}, nil
}

// collector is a controller-runtime Runnable.
type collector struct {
	Options
	cache cache.Cache
	live  client.Reader
	// foreigners knows what another system works on.
	foreigners coexistence.Reader
	events     events.EventRecorder
	log        logr.Logger
	metrics    *vectors
}

// NeedLeaderElection is true: only a leader calls drivers.
func (c *collector) NeedLeaderElection() bool { return true }

// Start scans each driver's accounts until ctx ends.
func (c *collector) Start(ctx context.Context) error {
	if err := c.waitForCaches(ctx); err != nil {
		return err
	}
	var scanners sync.WaitGroup
	for _, name := range c.Drivers.Names() {
		d, err := c.Drivers.For(name)
		if err != nil {
			return err
		}
		s := &scanner{
			collector: c, name: name, driver: d,
			memories: map[uint64]orphan.Memory{}, reported: map[string]string{}, log: c.log.WithValues("driver", name),
		}
		scanners.Go(func() { s.run(ctx) })
	}
	scanners.Wait()
	return nil
}

// waitForCaches waits until the caches show all there is: by a cold one every VM is an orphan.
func (c *collector) waitForCaches(ctx context.Context) error {
	for _, kind := range []client.Object{
		&clusterv1alpha1.Machine{}, &clusterv1alpha1.MachineSet{}, &clusterv1alpha1.MachineDeployment{},
	} {
		// It returns once the cache is in step, or ctx has ended.
		if _, err := c.cache.GetInformer(ctx, kind); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the process is on its way out
			}
			return fmt.Errorf("fill the cache of %T: %w", kind, err)
		}
	}
	return nil
}
