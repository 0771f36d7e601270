package orphangc

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-dev/millwright/core/coexistence"
	"github.com/millwright-dev/millwright/core/driver"
	"github.com/millwright-dev/millwright/core/orphan"
	"github.com/millwright-dev/millwright/core/specresolver"
)

// +kubebuilder:rbac:groups=cluster.k8s.io,resources=machines;machinesets;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Defaults of Options.
const (
	DefaultInterval = 10 * time.Minute
	DefaultAge      = 30 * time.Minute
)

// maxDeletes is how many orphans of one driver a scan may begin to delete. It is few: if a backup
// comes back in parts, somebody has time to notice.
const maxDeletes = 5

// Options are the choices of whoever wires the controllers together. Drivers, Specs, ClusterUID and
// Regarding are required.
type Options struct {
	// Drivers list and delete VMs. Whoever adds the collector also starts them.
	Drivers *driver.Drivers
	// Specs finds the secrets of accounts.
	Specs *specresolver.Resolver
	// ClusterUID marks VMs as this cluster's.
	ClusterUID string
	// Delete is false where orphans are only reported.
	Delete bool
	// Interval lies between two scans. Default: DefaultInterval.
	Interval time.Duration
	// Age is how old an orphan must be to be deleted. Default: DefaultAge. Less than a create may
	// take counts as that.
	Age time.Duration
	// Regarding is the object that events are about: an orphan has none of its own.
	Regarding *corev1.ObjectReference
}

// Add adds the collector to mgr, whose cache has ownership's indexes.
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
	o.Interval, o.Age = cmp.Or(o.Interval, DefaultInterval), cmp.Or(o.Age, DefaultAge)
	c := &collector{
		Options:    o,
		most:       maxDeletes,
		cache:      mgr.GetCache(),
		live:       mgr.GetAPIReader(),
		clock:      clock.RealClock{},
		foreigners: coexistence.NewReader(mgr.GetCache()),
		events:     mgr.GetEventRecorder("orphan"),
		log:        mgr.GetLogger().WithName("orphan"),
		metrics:    vectors,
	}
	c.account = c.accountOf
	return c, nil
}

// collector is a controller-runtime Runnable, which works on the leader only.
type collector struct {
	Options
	most int
	// account is accountOf, but for tests.
	account accountFinder
	// cache waits for the first answer of the API server: by an empty one every VM is an orphan.
	cache, live client.Reader
	clock       clock.PassiveClock
	// foreigners knows what another system works on.
	foreigners coexistence.Reader
	events     events.EventRecorder
	log        logr.Logger
	metrics    *vectors
}

// Start scans each driver's accounts until ctx ends.
func (c *collector) Start(ctx context.Context) error {
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
		scanners.Go(func() { wait.UntilWithContext(ctx, s.run, c.Interval) })
	}
	scanners.Wait()
	return nil
}
