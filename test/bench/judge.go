package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// judge says what was wrong with the run itself: VMs that were made twice or are left, and limits
// that were exceeded.
func (r *run) judge(ctx context.Context, windows []window) error {
	totals, err := r.stack.Backend().GetTotals(ctx, &backendv1alpha1.GetTotalsRequest{})
	if err != nil {
		return fmt.Errorf("ask the cloud for its totals: %w", err)
	}
	if left := totals.GetResourcesLeft(); left > 0 {
		r.wrong("%d resources are left in the cloud", left)
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	if len(nodes.Items) > 0 {
		r.wrong("%d Nodes are left", len(nodes.Items))
	}
	vms, err := r.vms(ctx)
	if err != nil {
		return err
	}
	// Each phase but the last makes a machine for each of the fleet.
	if want := 2 * r.options.Machines; len(vms) != want {
		r.wrong("%d VMs were made, want %d", len(vms), want)
	}
	perUID := map[string]int{}
	for _, vm := range vms {
		if perUID[vm.GetMachineUid()]++; perUID[vm.GetMachineUid()] == 2 {
			r.wrong("machine uid %s had more than one VM", vm.GetMachineUid())
		}
	}
	r.judgeLimits(windows, vms)
	return nil
}

// judgeLimits compares what there was at most, and at least, with what there may be.
func (r *run) judgeLimits(windows []window, vms []*backendv1alpha1.VM) {
	for _, w := range windows {
		p := w.result
		p.PeakVMs = peakVMs(vms, w.from, w.to)
		if most := max(p.PeakMachines, p.PeakVMs); most > p.PeakLimit {
			r.wrong("%s: there were %d Machines and %d VMs at once, at most %d may be", w.name, p.PeakMachines, p.PeakVMs, p.PeakLimit)
		}
		if w.report == &r.report.Rollout && p.LowestAvailable < p.Machines {
			r.wrong("%s: only %d Machines were available at an instant, want %d", w.name, p.LowestAvailable, p.Machines)
		}
	}
}

func (r *run) wrong(format string, args ...any) {
	r.report.Wrong = append(r.report.Wrong, fmt.Sprintf(format, args...))
}

// vms returns all VMs that the cloud ever had.
func (r *run) vms(ctx context.Context) ([]*backendv1alpha1.VM, error) {
	var all []*backendv1alpha1.VM
	for after, more := int64(0), true; more; {
		page, err := r.stack.Backend().ListVMs(ctx, &backendv1alpha1.ListVMsRequest{AfterRevision: after})
		if err != nil {
			return nil, fmt.Errorf("list the cloud's VMs: %w", err)
		}
		all = append(all, page.GetVms()...)
		if n := len(page.GetVms()); n > 0 {
			after = page.GetVms()[n-1].GetRevision()
		}
		more = page.GetMore()
	}
	return all, nil
}

// peakVMs is the most VMs that existed at an instant of a span of time, by when the cloud made and
// dropped them.
func peakVMs(vms []*backendv1alpha1.VM, from, to time.Time) int {
	type step struct {
		at time.Time
		by int
	}
	var steps []step
	for _, vm := range vms {
		begin, end := vm.GetCreateTime().AsTime(), to
		if vm.GetDeleteTime() != nil {
			end = vm.GetDeleteTime().AsTime()
		}
		if begin.After(to) || end.Before(from) {
			continue
		}
		steps = append(steps, step{begin, 1}, step{end, -1})
	}
	// Of two at the same instant the one that goes comes first: the clock tells no finer.
	slices.SortFunc(steps, func(a, b step) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	most, now := 0, 0
	for _, s := range steps {
		now += s.by
		most = max(most, now)
	}
	return most
}
