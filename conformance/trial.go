package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millwright-dev/millwright/proto/contract"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// trial is one check under way. What it finds it notes; fatalf and notRun end it at once.
type trial struct {
	*session
	cloud    *cloud
	mu       sync.Mutex
	breaches []string
	missing  string
	// inapplicable is why the check is not about this driver.
	inapplicable string
	made         []*machine
	// heard is told of each answer; nil: nobody wants to know.
	heard func(answer any, err error)
}

func newTrial(s *session) *trial {
	t := &trial{session: s}
	t.cloud = &cloud{t: t, backend: s.backend}
	return t
}

type trialKey struct{}

// trialOf returns the check that makes a call; nil when none does.
func trialOf(ctx context.Context) *trial {
	t, _ := ctx.Value(trialKey{}).(*trial)
	return t
}

// errorf notes a breach of the contract, without the config's credentials: the driver may have told
// them. It is safe for concurrent use.
func (t *trial) errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if breach := t.untold.Text(fmt.Sprintf(format, args...)); !slices.Contains(t.breaches, breach) {
		t.breaches = append(t.breaches, breach)
	}
}

// fatalf notes a breach after which the check cannot go on.
func (t *trial) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	runtime.Goexit()
}

// notRun ends the check: what it needs is not there.
func (t *trial) notRun(reason string) {
	t.missing = reason
	runtime.Goexit()
}

// notApplicable ends the check: it is not about a driver like this.
func (t *trial) notApplicable(reason string) {
	t.inapplicable = reason
	runtime.Goexit()
}

// result runs the check and cleans up behind it.
func (t *trial) result(ctx context.Context, c Check) Result {
	began := time.Now()
	ctx = context.WithValue(ctx, trialKey{}, t)
	inGoroutine(func() { c.run(ctx, t) })
	// A check that was cancelled leaves nothing either.
	ctx = context.WithoutCancel(ctx)
	inGoroutine(func() { t.cloud.removeFaults(ctx) })
	if c.Proxy {
		inGoroutine(func() { proxied{t}.breaks(ctx) })
	}
	for _, m := range t.made {
		m.spec, m.secrets, m.epoch = t.config.ProviderSpec, t.secrets, 0
		inGoroutine(func() { m.gone(ctx) })
	}
	r := Result{Outcome: Passed, Duration: time.Since(began), Breaches: t.breaches}
	switch {
	case len(t.breaches) > 0:
		r.Outcome = Failed
	case t.inapplicable != "":
		r.Outcome, r.Reason = NotApplicable, t.inapplicable
	case t.missing != "":
		r.Outcome, r.Reason = NotRun, t.missing
	}
	return r
}

// inGoroutine runs f, which may end itself early, to its end.
func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// expect notes a breach unless err is the driver's own, with that reason.
func (t *trial) expect(what string, err error, want driverv1alpha1.ErrorReason) {
	if err == nil {
		t.errorf("%s: the driver answered OK, want %s", what, contract.ReasonName(want))
		return
	}
	if got := reasonOf(err); got != contract.ReasonName(want) {
		t.errorf("%s: the driver answered %s %s (%s), want %s", what, status.Code(err), got, status.Convert(err).Message(), contract.ReasonName(want))
	}
}

// reasonOf is what the driver gives as the reason; empty when it is none of its errors.
func reasonOf(err error) string {
	return contract.ErrorInfo(status.Convert(err)).GetReason()
}

// pending says whether the driver asks to come back in a moment.
func pending(err error) bool {
	return status.Code(err) == codes.Aborted && reasonOf(err) == contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_OPERATION_PENDING)
}

// rateLimited says whether the driver, for the cloud, asks to be left alone for a while, and how
// long; false where it does not say.
func rateLimited(err error) (time.Duration, bool) {
	if reasonOf(err) != contract.ReasonName(driverv1alpha1.ErrorReason_ERROR_REASON_RATE_LIMITED) {
		return 0, false
	}
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.RetryInfo); is {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// random returns letters and digits that were never there before.
func random() string { return rand.Text() }
