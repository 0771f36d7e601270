package arena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// carryOut does all that the plan says, each step at its time, and returns when the last of them is
// over.
func (a *arena) carryOut(ctx context.Context, p plan.Round) error {
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

// impossible says whether a step is a fault that the cloud cannot have: real services are not
// always to be made to fail.
func (a *arena) impossible(s plan.Step) bool {
	return s.Do == plan.Break && !slices.Contains(a.effects, s.Fault.GetEffect())
}

func (a *arena) do(ctx context.Context, s plan.Step) error {
	switch s.Do {
	case plan.Apply, plan.Scale, plan.Delete, plan.DeleteMachine, plan.Mark, plan.DeleteNode, plan.Replace, plan.Pause, plan.Hold:
		return a.use(ctx, s)
	case plan.ApplyTeam, plan.DeleteNamespace, plan.DeleteManifest, plan.DeleteSecret, plan.DeleteBinding:
		return a.useTeam(ctx, s)
	case plan.Claim:
		return a.claim(ctx, s)
	case plan.Outage:
		return a.outage(ctx, s)
	case plan.Kill, plan.Stop, plan.Cut, plan.Stall:
		return a.disturb(ctx, s)
	case plan.Break:
		_, err := a.stack.Backend().InjectFault(ctx, &backendv1alpha1.InjectFaultRequest{Fault: s.Fault})
		return err
	case plan.Limit:
		held, err := a.vms(ctx)
		if err != nil {
			return err
		}
		return a.quota(ctx, int64(len(held)+s.Number))
	case plan.Change:
		return a.changeVM(ctx, s)
	case plan.Stray:
		return a.stray(ctx)
	}
	return fmt.Errorf("nobody knows how to %q", s.Do)
}

// disturb has a process or link do nothing for a while.
func (a *arena) disturb(ctx context.Context, s plan.Step) error {
	name := s.Target
	if s.Do == plan.Cut || s.Do == plan.Stall {
		name = linkTurn(s.Target)
	}
	a.turns[name].Lock()
	defer a.turns[name].Unlock()
	act := judge.Act{At: time.Now(), Do: judge.Hindered, Target: name}
	if s.Do == plan.Kill {
		act.Do = judge.Killed
	}
	err := a.hinder(s)
	err = errors.Join(err, wait(ctx, s.Lasts), a.relieve(s))
	if s.Do == plan.Kill && (s.Target == plan.APIServer || s.Target == plan.Etcd) {
		err = errors.Join(err, a.awaitControlPlane(ctx))
	}
	act.Until = time.Now()
	if s.Target == plan.APIServer || s.Target == plan.Etcd {
		act.Until = act.Until.Add(rewatch)
	}
	a.note(act)
	return err
}

// rewatch is what a client may take to see the world again after it has lost its watches: it does
// not ask at once.
const rewatch = 5 * time.Second

func (a *arena) note(act judge.Act) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acts = append(a.acts, act)
}

func (a *arena) hinder(s plan.Step) error {
	switch s.Do {
	case plan.Kill:
		return a.stack.Process(s.Target).Kill()
	case plan.Stop:
		return ignoreDone(a.stack.Process(s.Target).Signal(syscall.SIGSTOP))
	case plan.Cut:
		a.links[s.Target].Cut()
	case plan.Stall:
		a.links[s.Target].Stall()
	}
	return nil
}

func (a *arena) relieve(s plan.Step) error {
	switch s.Do {
	case plan.Kill:
		return a.stack.Process(s.Target).Start()
	case plan.Stop:
		return ignoreDone(a.stack.Process(s.Target).Signal(syscall.SIGCONT))
	case plan.Cut, plan.Stall:
		a.links[s.Target].Mend()
	}
	return nil
}

// ignoreDone: a process that ended by itself is started again by the stack.
func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// putRight ends what goes wrong and does not end by itself.
func (a *arena) putRight(ctx context.Context) error {
	if err := a.awaitControlPlane(ctx); err != nil {
		return err
	}
	if _, err := a.stack.Backend().RemoveFaults(ctx, &backendv1alpha1.RemoveFaultsRequest{}); err != nil {
		return fmt.Errorf("end the cloud's faults: %w", err)
	}
	if err := a.quota(ctx, -1); err != nil {
		return err
	}
	if err := errors.Join(a.stopPods(ctx), a.mendTeam(ctx)); err != nil {
		return err
	}
	// Somebody switches on what was switched off.
	vms, err := a.vms(ctx)
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if vm.GetState() == backendv1alpha1.VMState_VM_STATE_STOPPED {
			if err := a.change(ctx, vm, backendv1alpha1.VMChange_VM_CHANGE_START); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitControlPlane waits until the API server serves again. Others of the control plane may have
// ended with it, and are being started again.
func (a *arena) awaitControlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.options.patiently(settleLimit))
	defer cancel()
	for {
		err := a.stack.WaitReady(ctx)
		if err == nil {
			return nil
		}
		if wait(ctx, lookInterval) != nil {
			return fmt.Errorf("the control plane does not come up again: %w", err)
		}
	}
}

// vms returns those of this cluster that there are, by name.
func (a *arena) vms(ctx context.Context) ([]*backendv1alpha1.VM, error) {
	var found []*backendv1alpha1.VM
	var after int64
	for more := true; more; {
		page, err := a.stack.Backend().ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: after, ClusterUid: a.view.clusterUID})
		if err != nil {
			return nil, fmt.Errorf("list the cloud's VMs: %w", err)
		}
		for _, vm := range page.GetVms() {
			after = max(after, vm.GetRevision())
			if vm.GetState() != backendv1alpha1.VMState_VM_STATE_GONE {
				found = append(found, vm)
			}
		}
		more = page.GetMore()
	}
	slices.SortFunc(found, func(a, b *backendv1alpha1.VM) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found, nil
}

func (a *arena) quota(ctx context.Context, vms int64) error {
	_, err := a.stack.Backend().SetQuota(ctx, &backendv1alpha1.SetQuotaRequest{Limits: map[string]int64{"vm": vms}})
	return err
}

// changeVM does something to one of the VMs that run.
func (a *arena) changeVM(ctx context.Context, s plan.Step) error {
	vms, err := a.vms(ctx)
	if err != nil {
		return err
	}
	vms = slices.DeleteFunc(vms, func(vm *backendv1alpha1.VM) bool { return vm.GetState() != backendv1alpha1.VMState_VM_STATE_RUNNING })
	if len(vms) == 0 {
		return nil
	}
	return a.change(ctx, vms[s.Number%len(vms)], s.Change)
}

// change does something to a VM, which may be gone by now.
func (a *arena) change(ctx context.Context, vm *backendv1alpha1.VM, change backendv1alpha1.VMChange) error {
	now := time.Now()
	a.note(judge.Act{At: now, Until: now, Do: judge.Changed, Target: vm.GetId()})
	_, err := a.stack.Backend().ChangeVM(ctx, &backendv1alpha1.ChangeVMRequest{Id: vm.GetId(), Change: change, Message: "The host is broken."})
	return ignoreNoVM(err)
}
