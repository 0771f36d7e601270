package instance

import (
	"hash/fnv"
	"slices"
	"time"
)

// Backoff is a wait that doubles from First to Last.
type Backoff struct{ First, Last time.Duration }

// Nth is the wait after the n-th failure in a row, n from 1.
func (b Backoff) Nth(n int) time.Duration {
	wait := b.First
	for i := 1; i < n && wait < b.Last; i++ {
		wait *= 2
	}
	return min(wait, b.Last)
}

// DefaultCredentialRetry is how long calls with refused credentials are held back where nothing
// else is configured. A person has to renew the credentials; changed ones are tried at once.
// Source: docs/operating.md, flag --credential-retry.
const DefaultCredentialRetry = 5 * time.Minute

// waits are the two backoffs of a class. The field machine is how long one machine waits before
// its next mutation. The field breaker is how long the open circuit breaker of an account and
// an operation waits before its next probe. It is zero for classes that open no breaker.
type waits struct{ machine, breaker Backoff }

// backoffs holds the waits of each class. Classes that concern a whole account have short waits per
// machine, because the breaker lets only one machine probe. Nobody can say when a quota or a
// shortage ends: one probe in 30 s is bearable for any cloud. What only a person can repair is
// retried rarely.
//
// Not by class: a failed poll backs off from 1 s (pause, core/driver/poller); answers about a spec
// hold 10, 30 or 2 s (core/driver/spec.go). A lack of Lease is looked at after 1 s (leaseCheck),
// Secrets after 30 s (--secret-recheck), API errors after 20 ms to 10 s (core/requeue).
//
// Sources: the codes' meanings are those of errors.proto in
// proto/millwright/driver/v1alpha1; the waits that operators see are in docs/drivers.md.
var backoffs = map[Class]waits{
	OutcomeUnknown: {machine: Backoff{time.Second, 30 * time.Second}},
	Unavailable:    {machine: Backoff{time.Second, 10 * time.Second}},
	NotFound:       {machine: Backoff{2 * time.Second, time.Minute}},
	Credentials: {
		machine: Backoff{10 * time.Second, 30 * time.Second},
		breaker: Backoff{DefaultCredentialRetry, DefaultCredentialRetry},
	},
	// Quota is QUOTA_EXCEEDED, or RESOURCE_EXHAUSTED with a driver's reason that core does not
	// interpret.
	Quota: {
		machine: Backoff{5 * time.Second, 30 * time.Second},
		breaker: Backoff{5 * time.Second, 30 * time.Second},
	},
	Capacity: {
		machine: Backoff{5 * time.Second, 30 * time.Second},
		breaker: Backoff{5 * time.Second, 30 * time.Second},
	},
	RateLimited: {
		machine: Backoff{time.Second, 30 * time.Second},
		breaker: Backoff{time.Second, 30 * time.Second},
	},
	Precondition:   {machine: Backoff{10 * time.Second, 2 * time.Minute}},
	AccountChanged: {machine: Backoff{time.Minute, 5 * time.Minute}},
	StaleEpoch:     {machine: Backoff{30 * time.Second, 5 * time.Minute}},
	// Source: errors.proto, ABORTED: "ask again in 1 to 5 s".
	Pending:       {machine: Backoff{time.Second, 5 * time.Second}},
	Unimplemented: {machine: Backoff{time.Minute, 5 * time.Minute}},
	Internal:      {machine: Backoff{2 * time.Second, 2 * time.Minute}},
	SpecInvalid:   {machine: Backoff{30 * time.Second, 5 * time.Minute}},
	Conflict:      {machine: Backoff{30 * time.Second, 5 * time.Minute}},
	DataLoss:      {machine: Backoff{5 * time.Minute, 5 * time.Minute}},
}

// RetryAfterNth is how long a machine waits after the n-th failure of this class in a row, n from
// 1. A driver's RetryAfter can only make it longer. uid spreads machines that failed together over
// a fifth of the wait.
func (f *Failure) RetryAfterNth(n int, uid string) time.Duration {
	wait := backoffs[f.Class].machine.Nth(n)
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	wait -= wait / 5 * time.Duration(h.Sum32()%64) / 64
	return max(wait, f.RetryAfter)
}

// BreakerBackoff is how long an open circuit breaker waits before each probe after failures of this
// class. The result ok is false for a class that opens no breaker.
func (c Class) BreakerBackoff() (wait Backoff, ok bool) {
	wait = backoffs[c].breaker
	return wait, wait != Backoff{}
}

// BreakerClasses are the classes that open a circuit breaker, sorted.
func BreakerClasses() []Class {
	var classes []Class
	for c := range backoffs {
		if _, opens := c.BreakerBackoff(); opens {
			classes = append(classes, c)
		}
	}
	slices.Sort(classes)
	return classes
}

// IsTerminal says whether a create that failed with this class will never succeed.
func (c Class) IsTerminal() bool {
	return c == SpecInvalid || c == Conflict
}

// IsUnverifiable says whether polls keep failing with this class until a person repairs the cause.
// Such a failure tells nothing of the VM.
func (c Class) IsUnverifiable() bool {
	return c == AccountChanged || c == Credentials || c == DataLoss || c == SpecInvalid
}

// IsUncertain says whether a mutation that failed with this class may have taken effect, or may
// yet.
func (c Class) IsUncertain() bool {
	switch c {
	case OutcomeUnknown, Internal, DataLoss, Pending, StaleEpoch, NotFound:
		return true
	case Unavailable, SpecInvalid, Conflict, Credentials, Quota, Capacity, RateLimited, Precondition,
		AccountChanged, Unimplemented:
	}
	return false
}
