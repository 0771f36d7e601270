package driver

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/utils/clock"

	"github.com/millwright-dev/millwright/core/driver/connection"
	"github.com/millwright-dev/millwright/core/driver/poller"
	"github.com/millwright-dev/millwright/core/driver/wire"
	"github.com/millwright-dev/millwright/core/instance"
	"github.com/millwright-dev/millwright/proto/contract"
)

// Config is what all drivers have in common. The zero value of every field but ClusterUID is
// usable.
type Config struct {
	// Version is core's own, which drivers are told.
	Version string
	// ClusterUID owns the machines; REQUIRED.
	ClusterUID string
	// LeaderEpoch grows with every change of leader; nil stands for 0, which means unknown.
	LeaderEpoch func() int64
	// MutationBudget returns the instant after which no mutation of this leader may still be under
	// way, and whether it leads at all. nil: no limit, for programs without leader election.
	MutationBudget func() (latest time.Time, leading bool)
	// Everywhere keeps drivers connected also while this process does not lead: for questions about
	// specs alone.
	Everywhere bool
	// LeadershipLost is called when a driver says that it has seen a later leader (STALE_EPOCH):
	// this process must stop leading. It may be called more than once, and must return at once.
	// nil: nobody is told.
	LeadershipLost func()
	// ShutdownGrace is how long mutations under way may go on after Start's context has ended, if
	// leadership lasts so long; 0 cancels them at once.
	ShutdownGrace time.Duration
	// Deadlines of calls, where set they replace the contract's defaults; where a driver sets its
	// own, those count.
	Deadlines connection.Deadlines
	// MaxConcurrentRequests holds for drivers that name no limit; 0 stands for 64.
	MaxConcurrentRequests int
	// Polling says how often tracked machines are polled. Defaults for 0: an interval of 1 s,
	// at most 10 s, 60 s for settled machines, a handful of 4, pages of 500.
	Polling poller.Polling
	// CreateSettle holds for drivers that declare no limits.create_settle; 0 stands for
	// contract.DefaultCreateSettle.
	CreateSettle time.Duration
	// CredentialRetry is how long calls with credentials that the cloud refuses are held back,
	// unless these change; 0 stands for 5 min.
	CredentialRetry time.Duration
	// ReconnectDelay lies between two attempts to reach a driver; 0 stands for 500 ms. A driver on
	// a socket is found within that time, and an attempt costs nothing to speak of.
	ReconnectDelay time.Duration
	// ProbeInterval lies between two Probe calls to a connected driver; 0 stands for 10 s.
	ProbeInterval time.Duration
	Log           logr.Logger
	// Clock measures intervals; nil stands for the real one. Deadlines on the wire always run by
	// the real one.
	Clock clock.WithTicker
	// Registry takes the metrics; nil registers none.
	Registry prometheus.Registerer
	// Tracing makes a span of each call; nil makes none.
	Tracing trace.TracerProvider
}

func (c Config) withDefaults() Config {
	if c.LeaderEpoch == nil {
		c.LeaderEpoch = func() int64 { return 0 }
	}
	if c.LeadershipLost == nil {
		c.LeadershipLost = func() {}
	}
	if c.Tracing == nil {
		c.Tracing = noop.NewTracerProvider()
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	c.Deadlines = c.Deadlines.Or(connection.Deadlines{
		Identity: contract.DefaultIdentityDeadline,
		Status:   contract.DefaultStatusDeadline,
		Mutation: contract.DefaultMutationDeadline,
		ListPage: contract.DefaultListPageDeadline,
	})
	orDefault(&c.MaxConcurrentRequests, contract.DefaultMaxConcurrentRequests)
	orDefault(&c.CreateSettle, contract.DefaultCreateSettle)
	orDefault(&c.CredentialRetry, instance.DefaultCredentialRetry)
	orDefault(&c.ReconnectDelay, 500*time.Millisecond)
	orDefault(&c.ProbeInterval, 10*time.Second)
	orDefault(&c.Polling.Interval, time.Second)
	orDefault(&c.Polling.MaxInterval, 10*time.Second)
	orDefault(&c.Polling.SettledInterval, time.Minute)
	orDefault(&c.Polling.Handful, 4)
	orDefault(&c.Polling.PageSize, 500)
	return c
}

func orDefault[T int | int32 | time.Duration](value *T, fallback T) {
	if *value <= 0 {
		*value = fallback
	}
}

// shortestMutation is the least time that a mutation is given: with less of the Lease left it is
// not sent, for it would most likely end in doubt.
const shortestMutation = 5 * time.Second

// leaseMargin is how much of the Lease must be left after a mutation: as long as it may take from
// looking at the Lease until the call's deadline runs.
const leaseMargin = time.Second

// leaseAllows is how long a mutation that starts now may take, at most timeout, or why none may
// start.
func (c Config) leaseAllows(timeout time.Duration) (time.Duration, *instance.Failure) {
	if c.MutationBudget == nil {
		return timeout, nil
	}
	latest, leading := c.MutationBudget()
	if !leading {
		return 0, wire.Unavailable("NotLeading", "this process does not lead")
	}
	left := latest.Sub(c.Clock.Now()) - leaseMargin
	if left < min(timeout, shortestMutation) {
		return 0, wire.Unavailable("LeaseExpiring", "too little of the leader's Lease is left for a call")
	}
	return min(timeout, left), nil
}
