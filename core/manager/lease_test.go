package manager

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testingclock "k8s.io/utils/clock/testing"
)

// lock stands for the Lease on the API server.
type lock struct {
	resourcelock.Interface
	fail error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.fail }

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.fail }

func TestTheLeasesBudget(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := testingclock.NewFakePassiveClock(start)
	server := &lock{}
	const leaseDuration = DefaultLeaseDuration
	l := &lease{Interface: server, clock: clock, duration: leaseDuration}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me", AcquireTime: metav1.NewTime(start)}

	if _, leading := l.Budget(); leading || l.Epoch() != 0 {
		t.Error("before it was ever taken, the Lease is held")
	}
	if err := l.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if latest, leading := l.Budget(); !leading || !latest.Equal(start.Add(leaseDuration)) || l.Epoch() != start.Unix() {
		t.Errorf("taken: Budget() = %s, %t, Epoch() = %d; want the Lease's duration from the request on, the instant it was taken as epoch", latest, leading, l.Epoch())
	}
	clock.SetTime(start.Add(10 * time.Second))
	server.fail = errors.New("conflict")
	if err := l.Update(t.Context(), mine); err == nil {
		t.Error("a renewal that failed is no error")
	}
	if latest, _ := l.Budget(); !latest.Equal(start.Add(leaseDuration)) {
		t.Errorf("a renewal that failed moved the budget to %s", latest)
	}
	server.fail = nil
	if err := l.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if latest, _ := l.Budget(); !latest.Equal(start.Add(10*time.Second + leaseDuration)) {
		t.Errorf("renewed: the budget ends at %s", latest)
	}
	released := resourcelock.LeaderElectionRecord{AcquireTime: metav1.NewTime(start)}
	if err := l.Update(t.Context(), released); err != nil {
		t.Fatal(err)
	}
	if _, leading := l.Budget(); leading {
		t.Error("released, the Lease is held still")
	}
}

func TestOptionsNameTheFlagThatIsWrong(t *testing.T) {
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"negative workers":                  {func(o *Options) { o.Workers = -1 }, "--workers"},
		"negative settled interval":         {func(o *Options) { o.SettledInterval = -time.Second }, "--settled-interval"},
		"negative timeout":                  {func(o *Options) { o.DrainTimeout = -time.Second }, "--drain-timeout"},
		"negative retry":                    {func(o *Options) { o.CredentialRetry = -time.Second }, "--credential-retry"},
		"negative interval":                 {func(o *Options) { o.Orphans.Interval = -time.Second }, "--orphan-interval"},
		"negative age":                      {func(o *Options) { o.Orphans.Age = -time.Second }, "--orphan-age"},
		"a Lease too short for its renewal": {func(o *Options) { o.LeaderElection.RenewDeadline = o.LeaderElection.LeaseDuration }, "--leader-election-lease-duration"},
		"a renewal too short for a retry":   {func(o *Options) { o.LeaderElection.RetryPeriod = o.LeaderElection.RenewDeadline }, "--leader-election-renew-deadline"},
		"a Lease too short for a call": {func(o *Options) {
			o.LeaderElection.LeaseDuration = 7 * time.Second
			o.LeaderElection.RenewDeadline = 4 * time.Second
			o.LeaderElection.RetryPeriod = time.Second
		}, "--leader-election-lease-duration"},
		"no namespace for a Lease": {func(o *Options) { o.LeaderElection.Namespace = "" }, "--leader-election-namespace"},
		"no identity for a Lease":  {func(o *Options) { o.LeaderElection.Identity = "" }, "--leader-election-identity"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{LeaderElection: LeaderElection{Enabled: true, Namespace: "n", Identity: "i"}}.withDefaults()
			if err := o.validate(); err != nil {
				t.Fatalf("good options are refused: %v", err)
			}
			tc.change(&o)
			if err := o.validate(); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("validate() = %v, want an error that begins with %s", err, tc.want)
			}
		})
	}
}
