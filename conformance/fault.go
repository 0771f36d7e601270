package conformance

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

func faultChecks() []Check {
	return slices.Concat([]Check{
		{
			ID: "fault/killed-create", Level: Must, Musts: []int{28, 43}, Tier: Fault, Hooks: true, Launch: true, run: killedCreate,
			Rule: "A driver that is killed before or after any of the cloud's calls of a create makes no second VM when it is asked again.",
		},
		{
			ID: "fault/no-retry", Level: Must, Musts: []int{32}, Tier: Fault, Hooks: true, run: noRetry,
			Rule: "A driver does not retry a call that changes the cloud, nor has its cloud's SDK do it: not after 429, and not after 5xx.",
		},
		{
			ID: "fault/killed-delete", Level: Must, Musts: []int{28, 55}, Tier: Fault, Hooks: true, Launch: true, run: killedDelete,
			Rule: "A driver that is killed before or after any of the cloud's calls of a delete leaves nothing when it is asked again.",
		},
		{
			ID: "fault/lost-answer", Level: Must, Musts: []int{43}, Tier: Fault, Hooks: true, run: lostAnswer,
			Rule: "Where the cloud's answer to any call of a create or delete is lost, the next create makes no second VM, and the next delete leaves nothing.",
		},
		{
			ID: "fault/failed-half-way", Level: Must, Musts: []int{47, 128}, Tier: Fault, Hooks: true, run: failedHalfWay,
			Rule: "DeleteMachine removes what a create has left that failed at any of the cloud's calls.",
		},
		{
			ID: "fault/account-changed", Level: Must, Musts: []int{127}, Tier: Fault, Hooks: true, run: faultAccountChanged,
			Rule: "Where the cloud's answer to any call of a create was lost, the machine is ACCOUNT_CHANGED with credentials of another account: " +
				"the create's error says, in PartialState, what the driver needs to tell.",
		},
		{
			ID: "fault/cancelled", Level: Must, Musts: []int{31}, Tier: Fault, Hooks: true, run: cancelled,
			Rule: "After cancellation a driver starts no new mutation of the cloud.",
		},
		{
			ID: "fault/deadline", Level: Must, Musts: []int{31}, Tier: Fault, Hooks: true, run: deadline,
			Rule: "A driver lets go of the cloud when the deadline of its caller is over.",
		},
		{
			ID: "fault/sigterm", Level: Should, Tier: Fault, Hooks: true, Launch: true, run: terminated,
			Rule: "A driver that gets SIGTERM lets the calls under way end, and ends.",
		},
		{
			ID: "fault/stale-create", Level: Must, Musts: []int{43}, Tier: Fault, Hooks: true, run: staleCreate,
			Rule: "Where one of the cloud's lists is behind, a create that is repeated makes no second VM.",
		},
		{
			ID: "fault/stale-list", Level: Should, Tier: Fault, Hooks: true, Feature: featureList, run: staleList,
			Rule: "Where one of the cloud's lists is behind, and another shows the machine, ListMachines holds it or is an error.",
		},
	}, loadChecks(), settleChecks(), httpChecks())
}

// points are where a call of the cloud can be struck.
var points = []backendv1alpha1.FaultPoint{backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT, backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT}

// unjudged is ctx for calls whose answers are nobody's fault.
func unjudged(ctx context.Context) context.Context {
	return context.WithValue(ctx, trialKey{}, (*trial)(nil))
}

// place is where a fault strikes.
type place struct {
	operation string
	point     backendv1alpha1.FaultPoint
}

// places are before and after each operation.
func places(operations []string) []place {
	var all []place
	for _, operation := range operations {
		for _, point := range points {
			all = append(all, place{operation, point})
		}
	}
	return all
}

// killAt kills the driver while the cloud holds a call, lets the call go on, and has another driver
// take over.
func (t *trial) killAt(ctx context.Context, m *machine, at place, begin func(context.Context) error) {
	wait := t.cloud.hold(ctx, m, at, begin)
	if err := t.driver.Process().Kill(); err != nil {
		t.fatalf("kill the driver: %v", err)
	}
	_ = wait() // it was killed in the middle
	// The connection may not have noticed yet.
	_ = t.driver.Close()
	t.cloud.removeFaults(ctx)
	t.cloud.awaitFault(ctx, m, ended)
	if err := t.reach(ctx); err != nil {
		t.fatalf("after a kill: %v", err)
	}
}

// createOnly asks once.
func (m *machine) createOnly(ctx context.Context) error {
	_, err := m.send(ctx, m.createRequest())
	return err
}

// removeUntilError asks until nothing is left, or until the first error: a driver need not make all
// of the cloud's calls in one.
func (m *machine) removeUntilError(ctx context.Context) error {
	for {
		now, err := m.remove(ctx)
		if err != nil || now == nil {
			return err
		}
		select {
		case <-time.After(min(max(now.GetOperation().GetPollAfter().AsDuration(), shortestPoll), longestPoll)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func killedCreate(ctx context.Context, t *trial) {
	operations, _ := t.cloud.operations(ctx)
	for _, at := range places(operations) {
		m := t.machine()
		m.intend()
		t.killAt(ctx, m, at, m.createOnly)
		t.exactlyOne(ctx, m, "killed at "+at.operation)
	}
}

// exactlyOne has the machine run, and then be gone.
func (t *trial) exactlyOne(ctx context.Context, m *machine, after string) {
	m.running(ctx)
	if n := len(t.cloud.vmsNamed(ctx, m)); n != 1 {
		t.errorf("%s: the machine has %d VMs", after, n)
	}
	t.nothingLeft(ctx, m, after)
}

// nothingLeft has the machine be gone.
func (t *trial) nothingLeft(ctx context.Context, m *machine, after string) {
	m.gone(ctx)
	if n := t.cloud.countResources(ctx, m); n > 0 {
		t.errorf("%s: %d resources of the machine are left", after, n)
	}
}

func noRetry(ctx context.Context, t *trial) {
	creates, deletes := t.cloud.operations(ctx)
	for _, failure := range []backendv1alpha1.NamedError{
		backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT, backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE, backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL,
	} {
		for _, operation := range creates {
			m := t.machine()
			m.intend()
			t.cloud.failsAlways(ctx, m, operation, failure)
			_ = m.createOnly(unjudged(ctx))
			t.cloud.onceAtMost(ctx, m, operation, failure, 0)
			t.cloud.removeFaults(ctx)
		}
		for _, operation := range deletes {
			m := t.machine()
			m.running(ctx)
			before := t.cloud.countCalls(ctx, m, []string{operation})
			t.cloud.failsAlways(ctx, m, operation, failure)
			_, _ = m.remove(unjudged(ctx))
			t.cloud.onceAtMost(ctx, m, operation, failure, before)
			t.cloud.removeFaults(ctx)
		}
	}
}

// failsAlways has an operation for the machine fail each time.
func (c *cloud) failsAlways(ctx context.Context, m *machine, operation string, failure backendv1alpha1.NamedError) {
	c.inject(ctx, m, &backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: operation},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Error: &backendv1alpha1.FaultError{Name: failure},
	})
}

// onceAtMost notes a breach if one call of the driver has called the operation more than once.
func (c *cloud) onceAtMost(ctx context.Context, m *machine, operation string, failure backendv1alpha1.NamedError, before int) {
	if n := c.countCalls(ctx, m, []string{operation}) - before; n > 1 {
		c.t.errorf("%s answered %s, and one call of the driver called it %d times: switch off the retries of the cloud's SDK", operation, failure, n)
	}
}

func killedDelete(ctx context.Context, t *trial) {
	_, operations := t.cloud.operations(ctx)
	for _, at := range places(operations) {
		m := t.machine()
		m.running(ctx)
		t.killAt(ctx, m, at, m.removeUntilError)
		t.nothingLeft(ctx, m, "killed at "+at.operation)
	}
}

// answerLost is a fault that carries out what was asked for, and does not say so.
func answerLost() *backendv1alpha1.Fault {
	return &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST}
}

// createInVain asks once for a new machine, and has the answer to one of the cloud's calls be lost.
func (t *trial) createInVain(ctx context.Context, operation string) *machine {
	m := t.machine()
	m.intend()
	t.cloud.injectOnce(ctx, m, operation, answerLost())
	_ = m.createOnly(unjudged(ctx))
	t.cloud.awaitFault(ctx, m, (*backendv1alpha1.Call).GetDone)
	return m
}

func lostAnswer(ctx context.Context, t *trial) {
	creates, deletes := t.cloud.operations(ctx)
	for _, operation := range creates {
		m := t.createInVain(ctx, operation)
		t.exactlyOne(ctx, m, "the answer to "+operation+" was lost")
	}
	for _, operation := range deletes {
		m := t.machine()
		m.running(ctx)
		t.cloud.injectOnce(ctx, m, operation, answerLost())
		_ = m.removeUntilError(unjudged(ctx))
		t.nothingLeft(ctx, m, "the answer to "+operation+" was lost")
	}
}

func faultAccountChanged(ctx context.Context, t *trial) {
	if len(t.otherSecrets) == 0 {
		t.notRun(noOtherAccount)
	}
	creates, _ := t.cloud.operations(ctx)
	for _, operation := range creates {
		m := t.createInVain(ctx, operation)
		m.secrets = t.otherSecrets
		_, err := m.create(ctx)
		why := "with credentials of another account, after the answer to " + operation + " was lost"
		t.expect("a create "+why, err, driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED)
		if err == nil {
			// There are two now: each account is left as it was.
			_ = m.removeUntilError(unjudged(ctx))
			m.forget()
			m.secrets = t.secrets
			t.nothingLeft(ctx, m, "made in two accounts")
			return
		}
		m.refused(ctx, why, driverv1alpha1.ErrorReason_ERROR_REASON_ACCOUNT_CHANGED)
		m.secrets = t.secrets
		t.nothingLeft(ctx, m, "back with its own credentials")
	}
}

func failedHalfWay(ctx context.Context, t *trial) {
	creates, _ := t.cloud.operations(ctx)
	for _, operation := range creates {
		m := t.machine()
		m.intend()
		t.cloud.injectOnce(ctx, m, operation, &backendv1alpha1.Fault{
			Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, Error: &backendv1alpha1.FaultError{Name: backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL},
		})
		if err := m.createOnly(ctx); err == nil {
			t.errorf("%s failed, and the create did not", operation)
		}
		m.forget()
		t.nothingLeft(ctx, m, operation+" failed")
	}
}

// quiet is how long the cloud is watched for calls that should not come.
const quiet = 500 * time.Millisecond

func cancelled(ctx context.Context, t *trial) {
	creates, _ := t.cloud.operations(ctx)
	for _, operation := range creates {
		m := t.machine()
		m.intend()
		cancelling, cancel := context.WithCancel(ctx)
		defer cancel()
		wait := t.cloud.hold(cancelling, m, place{operation, backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT}, m.createOnly)
		cancel()
		_ = wait() // it was cancelled in the middle
		// The driver hears of it a little later.
		t.watch(ctx)
		before := t.cloud.countCalls(ctx, m, creates)
		t.cloud.removeFaults(ctx)
		t.watch(ctx)
		if after := t.cloud.countCalls(ctx, m, creates); after > before {
			t.errorf("cancelled at %s: %d more calls that change the cloud were begun", operation, after-before)
		}
		t.exactlyOne(ctx, m, "cancelled at "+operation)
	}
}

// watch lets as much time go by as it takes for calls to come that should not.
func (t *trial) watch(ctx context.Context) {
	select {
	case <-time.After(quiet):
	case <-ctx.Done():
		t.fatalf("stopped")
	}
}

func deadline(ctx context.Context, t *trial) {
	creates, _ := t.cloud.operations(ctx)
	m := t.machine()
	m.intend()
	t.cloud.injectOnce(ctx, m, creates[0], &backendv1alpha1.Fault{Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG})
	limited, cancel := context.WithTimeout(unjudged(ctx), quiet)
	defer cancel()
	if err := m.createOnly(limited); err == nil {
		t.errorf("a create of which the cloud never ends has succeeded")
	}
	began := time.Now()
	t.cloud.awaitFault(ctx, m, func(c *backendv1alpha1.Call) bool {
		return c.GetProgress() == backendv1alpha1.CallProgress_CALL_PROGRESS_ABANDONED
	})
	if took := time.Since(began); took > 5*time.Second {
		t.errorf("the driver let go of the cloud %s after the deadline", took.Round(time.Millisecond))
	}
	t.cloud.removeFaults(ctx)
	t.exactlyOne(ctx, m, "its deadline was over")
}

// endLimit is how long a driver may take to end once it has been asked to and nothing is under way.
const endLimit = 30 * time.Second

// endsInTime waits until a process has ended, and says whether it did in time.
func endsInTime(ctx context.Context, t *trial, process *os.Process) bool {
	for began := time.Now(); time.Since(began) < endLimit; {
		if errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			return true
		}
		select {
		case <-time.After(shortestPoll):
		case <-ctx.Done():
			t.fatalf("stopped while waiting for the driver to end")
		}
	}
	return false
}

func terminated(ctx context.Context, t *trial) {
	creates, _ := t.cloud.operations(ctx)
	m := t.machine()
	m.intend()
	wait := t.cloud.hold(ctx, m, place{creates[0], backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT}, m.createOnly)
	process := t.driver.Process()
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.fatalf("signal the driver: %v", err)
	}
	t.watch(ctx)
	t.cloud.removeFaults(ctx)
	if err := wait(); err != nil {
		t.errorf("the call under way did not end: %v", err)
	}
	if !endsInTime(ctx, t, process) {
		t.errorf("the driver's process had not ended %s after its last call", endLimit)
		_ = process.Kill() // it may end just now
	}
	_ = t.driver.Close() // nobody answers on it
	if err := t.reach(ctx); err != nil {
		t.fatalf("after SIGTERM: %v", err)
	}
	t.exactlyOne(ctx, m, "after SIGTERM")
}

// needEffect ends the check where the cloud's hooks cannot have things misbehave like that.
func needEffect(ctx context.Context, t *trial, effect backendv1alpha1.FaultEffect) *backendv1alpha1.GetBackendInfoResponse {
	info := t.cloud.info(ctx)
	if !slices.Contains(info.GetEffects(), effect) {
		t.notRun("the cloud's hooks do not support " + effect.String())
	}
	return info
}

// stale does something with a machine that is made while one of the cloud's lists is behind, for
// each of them.
func (t *trial) stale(ctx context.Context, do func(m *machine, operation string)) {
	info := needEffect(ctx, t, backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE)
	for _, operation := range reads(info) {
		_, err := t.backend.InjectFault(ctx, &backendv1alpha1.InjectFaultRequest{Fault: &backendv1alpha1.Fault{
			Match: &backendv1alpha1.FaultMatch{Operation: operation}, Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE,
		}})
		if err != nil {
			t.fatalf("the cloud's hooks: inject a fault: %v", err)
		}
		m := t.machine()
		m.running(ctx)
		do(m, operation)
		t.cloud.removeFaults(ctx)
		t.exactlyOne(ctx, m, operation+" was behind")
	}
}

func staleCreate(ctx context.Context, t *trial) {
	t.stale(ctx, func(m *machine, operation string) {
		m.forget()
		if _, err := m.create(ctx); err != nil && !pending(err) {
			t.errorf("a create again while %s is behind: %v", operation, err)
		}
	})
}

func staleList(ctx context.Context, t *trial) {
	t.stale(ctx, func(m *machine, operation string) {
		if found, err := t.list(ctx, t.clusterUID); err == nil && found[m.ref.GetUid()] == nil {
			t.errorf("while %s is behind the list lacks a machine", operation)
		}
	})
}
