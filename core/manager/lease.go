package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/driverstatus"
)

// The leader's Lease, unless the operator chose otherwise. Source: docs/adr/0004 (60 s, renewed
// within 40 s).
const (
	DefaultLeaseDuration = 60 * time.Second
	DefaultRenewDeadline = 40 * time.Second
	DefaultRetryPeriod   = 5 * time.Second
)

// lease is a leader election lock that remembers when it was last renewed and under which
// epoch. So no mutation is sent that could outlive the leadership it was sent under.
type lease struct {
	resourcelock.Interface
	clock    clock.PassiveClock
	duration time.Duration

	mu      sync.Mutex
	renewed time.Time
	epoch   int64
}

// newLease returns a lock on the Lease namespace/name for identity. A process that comes back under
// the identity of the one before takes over at once: whoever starts it must have seen the old one
// end, as a kubelet has for a pod's name.
func newLease(config *rest.Config, o LeaderElection, clk clock.PassiveClock) (*lease, error) {
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = o.RenewDeadline / 2
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client of the leader's Lease: %w", err)
	}
	lock := &resourcelock.LeaseLock{Client: leases, LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity}}
	lock.LeaseMeta.Namespace, lock.LeaseMeta.Name = o.Namespace, driverstatus.LeaseName
	return &lease{Interface: lock, clock: clk, duration: o.LeaseDuration}, nil
}

// Create takes a Lease that nobody has held.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update takes over, renews or releases the Lease.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lease) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	sent := l.clock.Now()
	if err := write(ctx, record); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = sent
	if record.HolderIdentity != l.Identity() {
		l.renewed = time.Time{}
	}
	l.epoch = record.AcquireTime.Unix()
	return nil
}

// Epoch is when the Lease was taken, in seconds since 1970, and so grows with every change of
// leader; 0 before the first renewal. The Lease counts its changes, too, but from the start again
// when it was deleted or restored from a backup.
func (l *lease) Epoch() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// Budget is the instant at which another process may take the Lease unless it is renewed, and
// whether it is held at all. The monotonic clock does not count the time for which a machine
// was suspended. The wall clock loses time when it is set back. Of the two, the clock counts on
// which more time has passed.
func (l *lease) Budget() (latest time.Time, leading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return time.Time{}, false
	}
	now := l.clock.Now()
	passed := max(now.Sub(l.renewed), now.Round(0).Sub(l.renewed.Round(0)))
	return now.Add(l.duration - passed), true
}
