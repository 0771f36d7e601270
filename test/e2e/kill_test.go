package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millwright-dev/millwright/localcluster/stack"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// Millwright's processes are killed with SIGKILL while one call to the cloud is held before or
// after its effect. That is done for each mutating call of a create and of a delete. The ledger
// proves that the call was there when they died. With -short both die together, after its effect.
func TestSAFE5_KilledAtEachCall(t *testing.T) {
	t.Parallel()
	f := onFake.enter(t, false)
	info, err := f.Backend().GetBackendInfo(t.Context(), &backendv1alpha1.GetBackendInfoRequest{})
	if err != nil {
		t.Fatalf("ask the cloud for its operations: %v", err)
	}
	if len(info.GetCreateOperations()) == 0 || len(info.GetDeleteOperations()) == 0 {
		t.Fatalf("the cloud names no operations: %v", info)
	}
	points := []backendv1alpha1.FaultPoint{
		backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT, backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT,
	}
	killed := [][]string{{stack.Manager, stack.Driver}, {stack.Manager}, {stack.Driver}}
	if testing.Short() {
		killed, points = killed[:1], points[1:]
	}
	for _, victims := range killed {
		for _, point := range points {
			for _, operation := range info.GetCreateOperations() {
				t.Run(roundName("create", operation, point, victims), func(t *testing.T) {
					killDuringCreate(newUserOf(t, f), operation, point, victims)
				})
			}
			for _, operation := range info.GetDeleteOperations() {
				t.Run(roundName("delete", operation, point, victims), func(t *testing.T) {
					killDuringDelete(newUserOf(t, f), operation, point, victims)
				})
			}
		}
	}
}

func roundName(what, operation string, point backendv1alpha1.FaultPoint, victims []string) string {
	where := "before"
	if point == backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT {
		where = "after"
	}
	return fmt.Sprintf("%s-%s-%s-%s", what, strings.Join(victims, "-and-"), where, operation)
}

func killDuringCreate(u *user, operation string, point backendv1alpha1.FaultPoint, victims []string) {
	u.t.Helper()
	u.delayCalls(100*time.Millisecond, 500*time.Millisecond)
	hold := u.hold(operation, point)
	u.apply(deployment("killed", 1, nil))
	u.killAt(hold, point, victims)
	u.awaitRunning(1)
	u.checkOneVMEach()
	if got, want := u.resources(u.t.Context()), map[string]int{"vm": 1, "nic": 1}; !maps.Equal(got, want) {
		u.t.Errorf("the cloud holds %v, want %v", got, want)
	}
}

func killDuringDelete(u *user, operation string, point backendv1alpha1.FaultPoint, victims []string) {
	u.t.Helper()
	u.apply(deployment("killed", 1, nil))
	u.awaitRunning(1)
	uid := u.uids()[0]
	u.delayCalls(100*time.Millisecond, 500*time.Millisecond)
	hold := u.hold(operation, point)
	u.kubectl("delete", "machinedeployment", "killed", "--wait=false")
	u.killAt(hold, point, victims)
	u.awaitGone()
	if n := u.vmsEver()[uid]; n != 1 {
		u.t.Errorf("machine uid %s had %d VMs, want exactly 1", uid, n)
	}
	if got := u.resources(u.t.Context()); len(got) > 0 {
		u.t.Errorf("the cloud holds %v, want nothing", got)
	}
}

// slowCloud makes each of the cloud's operations take between 0.2 and 2 s.
func (u *user) slowCloud() {
	u.t.Helper()
	u.delayCalls(200*time.Millisecond, 2*time.Second)
}

// delayCalls makes each of the cloud's operations take so long.
func (u *user) delayCalls(atLeast, atMost time.Duration) {
	u.t.Helper()
	u.inject(&backendv1alpha1.Fault{
		Effect:  backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY,
		Latency: &backendv1alpha1.FaultLatency{Min: durationpb.New(atLeast), Max: durationpb.New(atMost)},
		Seed:    1,
	})
}

func (u *user) hold(operation string, point backendv1alpha1.FaultPoint) string {
	u.t.Helper()
	return u.inject(&backendv1alpha1.Fault{
		Match:  &backendv1alpha1.FaultMatch{Operation: operation},
		Effect: backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD,
		Point:  point,
		Times:  1,
	})
}

func (u *user) inject(fault *backendv1alpha1.Fault) string {
	u.t.Helper()
	injected, err := u.Backend().InjectFault(u.t.Context(), &backendv1alpha1.InjectFaultRequest{Fault: fault})
	if err != nil {
		u.t.Fatalf("inject a fault into the cloud: %v", err)
	}
	return injected.GetId()
}

// removeFaults takes these faults, or all, from the cloud. Calls that they hold go on.
func (u *user) removeFaults(ids ...string) {
	u.t.Helper()
	if _, err := u.Backend().RemoveFaults(u.t.Context(), &backendv1alpha1.RemoveFaultsRequest{Ids: ids}); err != nil {
		u.t.Fatalf("remove the cloud's faults %v: %v", ids, err)
	}
}

// killAt waits until a call is held, kills the victims, lets the call go on, and starts the victims
// again. That the call was held when they died, the ledger shows: it had come this far, and it
// ended only after they were gone. Whether the cloud notices before it answers that nobody listens
// any more is left to chance.
func (u *user) killAt(hold string, point backendv1alpha1.FaultPoint, victims []string) {
	u.t.Helper()
	reached := backendv1alpha1.CallProgress_CALL_PROGRESS_RECEIVED
	if point == backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT {
		reached = backendv1alpha1.CallProgress_CALL_PROGRESS_DONE
	}
	call := u.awaitCall(hold, reached)
	u.kill(victims)
	killed := time.Now()
	u.removeFaults(hold)
	ended := u.awaitCall(hold, backendv1alpha1.CallProgress_CALL_PROGRESS_ABANDONED, backendv1alpha1.CallProgress_CALL_PROGRESS_ANSWERED)
	answered := ended.GetAnswerTime()
	if ended.GetSequence() != call.GetSequence() || answered != nil && answered.AsTime().Before(killed) {
		u.t.Fatalf("call %d was held, call %d ended; it was answered at %v, the kill was at %s",
			call.GetSequence(), ended.GetSequence(), answered, killed)
	}
	u.revive(victims)
}

// kill ends processes with SIGKILL. If the test does not start them again, its end does.
func (u *user) kill(victims []string) {
	u.t.Helper()
	u.t.Cleanup(func() { u.revive(victims) })
	for _, name := range victims {
		if err := u.Process(name).Kill(); err != nil {
			u.t.Fatalf("kill %s: %v", name, err)
		}
	}
}

func (u *user) revive(victims []string) {
	u.t.Helper()
	for _, name := range victims {
		if err := u.Process(name).Start(); err != nil {
			u.t.Fatalf("start %s again: %v", name, err)
		}
	}
}

// awaitCall waits until the ledger has a call that met the fault and has come as far as one of
// these.
func (u *user) awaitCall(fault string, progress ...backendv1alpha1.CallProgress) *backendv1alpha1.Call {
	u.t.Helper()
	var found *backendv1alpha1.Call
	eventually(u.t, fmt.Sprintf("a call held by fault %s to be %s", fault, progress), func(ctx context.Context) error {
		calls, err := u.calls(ctx)
		if err != nil {
			return err
		}
		for _, call := range calls {
			if slices.Contains(call.GetFaultIds(), fault) && slices.Contains(progress, call.GetProgress()) {
				found = call
				return nil
			}
		}
		return errors.New("the ledger has none")
	})
	return found
}

// calls reads the whole ledger.
func (u *user) calls(ctx context.Context) ([]*backendv1alpha1.Call, error) {
	var calls []*backendv1alpha1.Call
	var after int64
	for {
		page, err := u.Backend().ListCalls(ctx, &backendv1alpha1.ListCallsRequest{AfterRevision: after})
		if err != nil {
			return nil, fmt.Errorf("read the cloud's ledger: %w", err)
		}
		for _, call := range page.GetCalls() {
			calls = append(calls, call)
			after = max(after, call.GetRevision())
		}
		if !page.GetMore() {
			return calls, nil
		}
	}
}
