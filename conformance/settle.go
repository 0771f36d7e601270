package conformance

import (
	"context"
	"time"

	"github.com/millwright-dev/millwright/proto/contract"
	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

func settleChecks() []Check {
	return []Check{{
		ID: "fault/settle-is-true", Level: Must, Musts: []int{22}, Tier: Fault, Hooks: true, run: settleIsTrue,
		Rule: "A create whose answer was lost shows what it made within limits.create_settle.",
	}, {
		ID: "fault/settle", Level: Must, Musts: []int{22}, Tier: Fault, Hooks: true, run: settle,
		Rule: "What a create makes late, after a DeleteMachine that left nothing, is removed by the next one; a driver of which that can happen does " +
			"not declare a limits.create_settle of 0.",
	}}
}

// settle has each of the cloud's calls of a create land after the create was given up and a delete
// has left nothing.
func settle(ctx context.Context, t *trial) {
	creates, _ := t.cloud.operations(ctx)
	for _, operation := range creates {
		m := t.machine()
		m.intend()
		creating, giveUp := context.WithCancel(ctx)
		defer giveUp()
		wait := t.cloud.hold(creating, m, place{operation, backendv1alpha1.FaultPoint_FAULT_POINT_BEFORE_EFFECT}, m.createOnly)
		giveUp()
		_ = wait() // it was given up
		m.gone(ctx)
		m.intend() // what is held may still come
		t.cloud.removeFaults(ctx)
		t.cloud.awaitFault(ctx, m, ended)
		if n := t.cloud.countResources(ctx, m); n > 0 && contract.CreateSettle(t.capabilities.GetLimits()) == 0 {
			t.errorf("%s made %d resources after a delete had left nothing, and limits.create_settle is 0: declare how long that can take, or "+
				"leave it unset, which means %s", operation, n, contract.DefaultCreateSettle)
		}
		t.nothingLeft(ctx, m, operation+" landed after the delete")
	}
}

// settleIsTrue waits for what a create has made whose answer was lost.
func settleIsTrue(ctx context.Context, t *trial) {
	declared := contract.CreateSettle(t.capabilities.GetLimits())
	creates, _ := t.cloud.operations(ctx)
	m := t.createInVain(ctx, creates[len(creates)-1])
	began := time.Now()
	for {
		_, err := m.get(ctx)
		took := time.Since(began)
		if err == nil {
			if took > declared+accepted {
				t.errorf("what was made shows after %s, and limits.create_settle is %s", took.Round(time.Millisecond), declared)
			}
			return
		}
		if reasonOf(err) != contract.ReasonName(notFound) {
			t.fatalf("a status: %v", err)
		}
		if took > max(2*declared, declared+4*accepted) {
			t.fatalf("what was made has not shown %s after its create, and limits.create_settle is %s", took.Round(time.Millisecond), declared)
		}
		t.watch(ctx)
	}
}
