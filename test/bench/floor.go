package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/localcluster"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
)

// stopGrace is what a process gets to end before the floor is measured.
const stopGrace = 10 * time.Second

// floor measures how long the API server alone needs for the writes of each phase, and puts it into
// the report.
//
// Everything but the API server and etcd is stopped before: nobody reacts to the writes. What was
// written while a phase was timed is timed again; what came in between, so that the objects are as
// they were.
func (r *run) floor(ctx context.Context, windows []window) error {
	if err := r.stopAllButServer(); err != nil {
		return err
	}
	fresh, err := r.log.Next()
	if err != nil {
		return err
	}
	r.requests = append(r.requests, fresh...)
	again, err := newReplay(r.stack.RESTConfig(), r.options.Log)
	if err != nil {
		return err
	}
	rest := r.requests
	until := func(t time.Time) (part []audit.Request) {
		i := 0
		for i < len(rest) && rest[i].Answered.Before(t) {
			i++
		}
		part, rest = rest[:i], rest[i:]
		return part
	}
	for _, w := range windows {
		if _, err := again.write(ctx, until(w.from)); err != nil {
			return err
		}
		part := capped(until(w.to), int(w.writes)*w.result.Machines)
		if err := r.floorOf(ctx, again, w, part); err != nil {
			return fmt.Errorf("floor of %s: %w", w.name, err)
		}
	}
	r.report.FloorErrors = again.refused
	return nil
}

func (r *run) floorOf(ctx context.Context, again *replay, w window, part []audit.Request) error {
	r.options.Log.Info("Measuring the floor", "phase", w.name, "writes", len(part))
	before := r.cpuSeconds()
	took, err := again.write(ctx, part)
	if err != nil {
		return err
	}
	p := w.result
	p.AllWrites, p.FloorWrites = w.writtenBy(r.requests), len(part)
	p.FloorSeconds, p.FloorCPUSeconds = round(took.Seconds(), 3), since(before, r.cpuSeconds())
	if p.FloorSeconds > 0 {
		p.Ratio = round(p.Seconds/p.FloorSeconds, 2)
	}
	if floor := total(p.FloorCPUSeconds); floor > 0 {
		p.CPURatio = round(total(p.CPUSeconds)/floor, 2)
	}
	return nil
}

// writtenBy counts the writes of everybody while the phase was timed.
func (w window) writtenBy(requests []audit.Request) int {
	n := 0
	for i := range requests {
		if at := requests[i].Answered; !at.Before(w.from) && at.Before(w.to) {
			n++
		}
	}
	return n
}

func total(seconds map[string]float64) float64 {
	sum := 0.0
	for s := range maps.Values(seconds) {
		sum += s
	}
	return sum
}

// stopAllButServer ends everybody who could write, and those who only use the CPU.
func (r *run) stopAllButServer() error {
	for _, name := range []string{
		stack.Manager, stack.Kubelets, stack.Driver, stack.Cloud,
		localcluster.ControllerManager, localcluster.Scheduler, localcluster.Kwok,
	} {
		if err := r.stack.Process(name).Stop(stopGrace); err != nil {
			return fmt.Errorf("stop %s before the floor is measured: %w", name, err)
		}
	}
	return nil
}

// capped returns the writes without those of core's that are beyond its budget: status writes of
// Machines, evenly, since the objects live and die without them all the same.
func capped(requests []audit.Request, budget int) []audit.Request {
	budgeted, spare := 0, 0
	for i := range requests {
		budgeted += one(isBudgeted(&requests[i]))
		spare += one(isSpare(&requests[i]))
	}
	excess := min(max(budgeted-budget, 0), spare)
	if excess == 0 {
		return requests
	}
	seen := 0
	return slices.DeleteFunc(slices.Clone(requests), func(w audit.Request) bool {
		if !isSpare(&w) {
			return false
		}
		seen++
		return seen*excess/spare > (seen-1)*excess/spare
	})
}

func isBudgeted(w *audit.Request) bool { return w.User == stack.ManagerUser && w.Budgeted() }

func isSpare(w *audit.Request) bool { return isBudgeted(w) && w.Resource == "machines/status" }

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
