package arena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
	"github.com/millwright-dev/millwright/test/chaos/judge"
	"github.com/millwright-dev/millwright/test/chaos/plan"
)

// Options say what to run. All but Layout, Log, First, Plan, Slowness and Forgetful are
// required.
type Options struct {
	// Cloud is where it happens.
	Cloud clouds.Cloud
	// Layout says in which cluster the Nodes are: in that of the Machines if it is empty.
	Layout stack.Layout
	// BinDir holds the control plane, CommandDir Millwright's executables. DeployDir is the
	// repository's deploy folder. Dir takes all that is written; its path has to be short.
	BinDir, CommandDir, DeployDir, Dir string
	// Seed and Rounds say what happens; First is the first round, 1 if it is 0.
	Seed          uint64
	Rounds, First int
	// Plan bounds what is drawn; its Operations are the cloud's, and Workload is the Layout's.
	Plan plan.Options
	// Slowness is how many times longer things take on this machine than on one that does nothing
	// else; 0 is once.
	Slowness int
	// Forgetful, if it is not 0, has the fake cloud forget a VM together with its client token, and
	// its driver not declare how late a create may land: core takes it for Forgetful.
	Forgetful time.Duration
	// Out gets each plan before it is carried out, and the verdict.
	Out io.Writer
	// Log gets what the processes' supervisor has to say; nil discards it.
	Log *slog.Logger
}

// ErrViolated says that a promise was not kept.
var ErrViolated = errors.New("Millwright broke a promise") //nolint:staticcheck // it is a name

// Run runs a campaign, and ends it at the first round in which a promise is not kept: the world is
// not the same after.
func Run(ctx context.Context, o Options) (violations []judge.Violation, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Plan.Operations, o.Plan.Team = o.Cloud.Operations, o.Plan.Team && o.Cloud.Team != nil
	o.Plan.Workload = o.Layout == stack.TwoClusters
	a, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	began := time.Now()
	first := max(o.First, 1)
	for n := first; n < first+o.Rounds; n++ {
		drawn := plan.Draw(o.Seed, n, o.Plan)
		drawn.Steps = slices.DeleteFunc(drawn.Steps, a.isImpossible)
		if violations, err = a.round(ctx, drawn); err != nil || len(violations) > 0 {
			return violations, a.report(n, violations, err)
		}
	}
	violations, err = a.finish(ctx)
	if err == nil && len(violations) == 0 {
		fmt.Fprintf(o.Out, "chaos ok: cloud=%s seed=%d rounds=%d in %s: %s\n", o.Cloud.Name(), o.Seed, o.Rounds, time.Since(began).Round(time.Second), a.judge.Summary())
	}
	return violations, a.report(first+o.Rounds, violations, err)
}

// report says what went wrong, and how to see it again.
func (a *arena) report(round int, violations []judge.Violation, err error) error {
	if err != nil || len(violations) == 0 {
		return err
	}
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	forgetful := ""
	if a.options.Forgetful > 0 {
		forgetful = " FORGETFUL=" + a.options.Forgetful.String()
	}
	fmt.Fprintf(a.options.Out, "chaos failed in round %d:\n%slogs and the audit log: %s/logs\nreplay: make chaos CLOUD=%s LAYOUT=%s SEED=%d ROUNDS=%d%s\n",
		round, b.String(), a.options.Dir, a.options.Cloud.Name(), cmp.Or(a.options.Layout, stack.OneCluster), a.options.Seed, round, forgetful)
	return ErrViolated
}

// round carries out a plan, puts all right again, waits, and judges.
func (a *arena) round(ctx context.Context, p plan.Round) ([]judge.Violation, error) {
	fmt.Fprint(a.options.Out, p)
	began := time.Now()
	if err := a.carryOut(ctx, p); err != nil {
		return nil, err
	}
	if err := a.putRight(ctx); err != nil {
		return nil, err
	}
	lifted := time.Now()
	unsettled := a.settle(ctx, false)
	h, err := a.history(ctx)
	if err != nil {
		return nil, err
	}
	h.Unsettled = unsettled
	violations := a.judge.Judge(h)
	fmt.Fprintf(a.options.Out, "  %5dms  disturbances over, settled after %dms\n",
		lifted.Sub(began).Milliseconds(), time.Since(lifted).Milliseconds())
	return violations, nil
}

// finish waits until the strays are gone, deletes all there is, and judges what is left: nothing
// may be.
func (a *arena) finish(ctx context.Context) ([]judge.Violation, error) {
	// Somebody has to name the account that they are in.
	if err := a.users.apply(ctx, plan.Deployments()[0], plan.Shape{Replicas: 1, Surge: 1}); err != nil {
		return nil, err
	}
	unsettled := a.settle(ctx, true)
	for _, name := range plan.Deployments() {
		if err := a.users.deleteDeployment(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := a.team.act(ctx, plan.Step{Do: plan.DeleteNamespace}); err != nil {
		return nil, err
	}
	if unsettled == "" {
		unsettled = a.settle(ctx, true)
	}
	h, err := a.history(ctx)
	if err != nil {
		return nil, err
	}
	h.Unsettled = unsettled
	return a.judge.Judge(h), nil
}
