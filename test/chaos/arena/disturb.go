package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/chaos/detour"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// processes are Millwright's and Kubernetes' processes and the links between them, to be disturbed.
type processes struct {
	options Options
	stack   *stack.Stack
	record  *record
	links   map[string]*detour.Link
	// turns are held while a process or link is disturbed: one disturbance of each at a time.
	turns map[string]*sync.Mutex
}

func newProcesses(o Options, r *record) *processes {
	p := &processes{options: o, record: r, links: map[string]*detour.Link{}, turns: map[string]*sync.Mutex{}}
	for _, target := range []string{plan.Manager, plan.Driver, plan.APIServer, plan.Etcd, plan.WorkloadAPIServer, plan.WorkloadEtcd} {
		p.turns[target], p.turns[linkTurn(target)] = &sync.Mutex{}, &sync.Mutex{}
	}
	return p
}

func linkTurn(target string) string { return target + " link" }

// detour leads the manager's connection to a process through this one.
func (p *processes) detour(to, address string) (string, error) {
	const scheme = "unix://"
	path, isSocket := strings.CutPrefix(address, scheme)
	var err error
	if isSocket {
		p.links[to], err = detour.Unix(filepath.Join(p.options.Dir, to+"-link.sock"), path)
		return scheme + filepath.Join(p.options.Dir, to+"-link.sock"), err
	}
	if p.links[to], err = detour.TCP(address); err != nil {
		return "", err
	}
	return p.links[to].Address(), nil
}

func (p *processes) closeLinks() error {
	var errs []error
	for _, l := range p.links {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// disturb has a process or link do nothing for a while.
func (p *processes) disturb(ctx context.Context, s plan.Step) error {
	name := s.Target
	if s.Do == plan.Cut || s.Do == plan.Stall {
		name = linkTurn(s.Target)
	}
	p.turns[name].Lock()
	defer p.turns[name].Unlock()
	act := judge.Act{At: time.Now(), Do: judge.Hindered, Target: name}
	if s.Do == plan.Kill {
		act.Do = judge.Killed
	}
	err := p.hinder(s)
	err = errors.Join(err, wait(ctx, s.Lasts), p.relieve(s))
	if s.Do == plan.Kill && isControlPlane(s.Target) {
		err = errors.Join(err, p.awaitControlPlane(ctx))
	}
	act.Until = time.Now()
	if isControlPlane(s.Target) {
		act.Until = act.Until.Add(rewatch)
	}
	p.record.note(act)
	return err
}

// isControlPlane says whether a process is a cluster's.
func isControlPlane(target string) bool {
	return slices.Contains([]string{plan.APIServer, plan.Etcd, plan.WorkloadAPIServer, plan.WorkloadEtcd}, target)
}

// rewatch is what a client may take to see the world again after it has lost its watches: it does
// not ask at once.
const rewatch = 5 * time.Second

// hinder begins a disturbance.
func (p *processes) hinder(s plan.Step) error {
	switch s.Do {
	case plan.Kill:
		return p.stack.Process(s.Target).Kill()
	case plan.Stop:
		return ignoreDone(p.stack.Process(s.Target).Signal(syscall.SIGSTOP))
	case plan.Cut:
		p.links[s.Target].Cut()
	case plan.Stall:
		p.links[s.Target].Stall()
	}
	return nil
}

// relieve ends a disturbance.
func (p *processes) relieve(s plan.Step) error {
	switch s.Do {
	case plan.Kill:
		return p.stack.Process(s.Target).Start()
	case plan.Stop:
		return ignoreDone(p.stack.Process(s.Target).Signal(syscall.SIGCONT))
	case plan.Cut, plan.Stall:
		p.links[s.Target].Mend()
	}
	return nil
}

// ignoreDone drops the error of a process that has ended by itself: the stack starts it again.
func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// awaitControlPlane waits until each API server serves again. Others of the control plane may have
// ended with it, and are being started again.
func (p *processes) awaitControlPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.patiently(settleLimit))
	defer cancel()
	for {
		err := errors.Join(p.stack.WaitReady(ctx), p.stack.Workload().WaitReady(ctx))
		if err == nil {
			return nil
		}
		if wait(ctx, lookInterval) != nil {
			return fmt.Errorf("the control plane does not come up again: %w", err)
		}
	}
}
