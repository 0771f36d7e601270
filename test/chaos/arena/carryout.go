package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// carryOut does all that the plan says, each step at its time, and returns when the last of them is
// over. Volumes that it needs are attached before.
func (a *arena) carryOut(ctx context.Context, p plan.Round) error {
	if err := a.attachVolumes(ctx, p); err != nil {
		return err
	}
	began := time.Now()
	errs := make([]error, len(p.Steps))
	var all sync.WaitGroup
	for i, s := range p.Steps {
		all.Go(func() {
			if wait(ctx, time.Until(began.Add(s.At))) == nil {
				errs[i] = a.do(ctx, s)
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", s, errs[i])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// wait returns after a while, or with an error when ctx ends.
func wait(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// isImpossible says whether a step is a fault that the cloud cannot have: real services are not
// always to be made to fail.
func (a *arena) isImpossible(s plan.Step) bool {
	return s.Do == plan.Break && !slices.Contains(a.cloud.effects, s.Fault.GetEffect())
}

// do hands a step to whoever takes it.
func (a *arena) do(ctx context.Context, s plan.Step) error {
	switch s.Do {
	case plan.Apply, plan.Scale, plan.Delete, plan.DeleteMachine, plan.Mark, plan.DeleteNode, plan.Replace, plan.Pause, plan.Hold:
		return a.users.act(ctx, s)
	case plan.Hook:
		return a.users.holdDeletion(ctx, s)
	case plan.Sicken:
		return a.users.sicken(ctx, s)
	case plan.Detach:
		return a.deleteWithVolumes(ctx, s)
	case plan.Claim:
		return a.users.claimVM(ctx, s)
	case plan.ApplyTeam, plan.DeleteNamespace, plan.DeleteManifest, plan.DeleteSecret, plan.DeleteBinding:
		return a.team.act(ctx, s)
	case plan.Outage:
		return a.drainInOutage(ctx, s)
	case plan.Kill, plan.Stop, plan.Cut, plan.Stall:
		return a.processes.disturb(ctx, s)
	case plan.Break:
		return a.cloud.injectFault(ctx, s.Fault)
	case plan.Limit:
		return a.cloud.limit(ctx, s.Number)
	case plan.Change:
		return a.cloud.changeVM(ctx, s)
	case plan.Stray:
		return a.cloud.makeStray(ctx)
	}
	return fmt.Errorf("nobody knows how to %q", s.Do)
}

// putRight ends what goes wrong and does not end by itself.
func (a *arena) putRight(ctx context.Context) error {
	if err := a.processes.awaitControlPlane(ctx); err != nil {
		return err
	}
	return errors.Join(a.cloud.putRight(ctx), a.pods.stop(ctx), a.team.mend(ctx))
}
