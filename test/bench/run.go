package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
	"github.com/millwright-dev/millwright/test/audit"
)

// Nodes stay as they are for longer than a run takes: renewals of Leases would be most of the
// writes.
const (
	leaseDuration   = 6 * time.Hour
	nodeGracePeriod = 12 * time.Hour
)

// run is a benchmark under way.
type run struct {
	options   Options
	stack     *stack.Stack
	client    client.WithWatch
	tally     *tally
	log       *audit.Log
	profiling string
	// requests are all writes so far, as far as the log was read.
	requests []audit.Request
	report   *Report
}

// Run measures, and writes the table. The report is there also when the error says that the run was
// wrong.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	o = o.withDefaults()
	r := &run{options: o, tally: newTally(), report: &Report{Machines: o.Machines, Wrong: []string{}}}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stack.Stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-r.stack.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	windows, err := r.measure(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.judge(ctx, windows); err != nil {
		return nil, err
	}
	if err := r.floor(ctx, windows); err != nil {
		return nil, err
	}
	if r.report.Boundary, err = boundary(ctx, filepath.Join(o.BinDir, "bench"), o.Dir, boundaryCalls); err != nil {
		return nil, fmt.Errorf("measure calls to a driver: %w", err)
	}
	if err := r.report.Table(o.Out); err != nil {
		return nil, err
	}
	for _, wrong := range r.report.Wrong {
		err = errors.Join(err, errors.New(wrong))
	}
	return r.report, err
}

// start brings up the cluster, and everything to look at it by.
func (r *run) start(ctx context.Context) (err error) {
	o := r.options
	if r.profiling, err = freeAddress(); err != nil {
		return err
	}
	r.stack, err = stack.Start(ctx, stack.Options{
		BinDir: o.BinDir, DeployDir: o.DeployDir, Dir: o.Dir, Log: o.Log, AuditLog: true, AuditBodies: true,
		NodeGracePeriod: nodeGracePeriod, FastKubelets: !o.Join, KubeletArgs: []string{"--lease-duration=" + leaseDuration.String()},
		ManagerArgs: append([]string{"--profiling-bind-address=" + r.profiling}, o.ManagerArgs...),
	})
	if err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return errors.Join(err, r.stack.Stop())
	}
	return nil
}

func (r *run) connect(ctx context.Context) (err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register API types: %w", err)
		}
	}
	if r.client, err = client.NewWithWatch(r.stack.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	r.log = audit.NewLog(r.stack.AuditLogPath())
	for _, name := range []string{namespace, floorNamespace} {
		space := &corev1.Namespace{}
		space.Name = name
		if err := r.client.Create(ctx, space); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// measure goes through the phases. It returns what the floor has to write once more.
func (r *run) measure(ctx context.Context) ([]window, error) {
	// The watch ends before the floor is measured.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := r.tally.follow(ctx, r.client); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	// What was written until here, for the cluster's own sake, is not the benchmark's.
	r.requests = nil
	pool := deployment(0, r.options.surge())
	if r.options.Autoscaler {
		pool.Annotations = map[string]string{
			clusterv1alpha1.NodeGroupMinSizeAnnotation: "0", clusterv1alpha1.NodeGroupMaxSizeAnnotation: strconv.Itoa(r.options.Machines),
		}
	}
	if err := r.client.Create(ctx, pool); err != nil {
		return nil, fmt.Errorf("create the MachineDeployment: %w", err)
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	pid := r.stack.Process(stack.Manager).Pid()
	anonymous := watchAnonymousMemory(ctx, pid)
	var windows []window
	for _, p := range r.phases() {
		w, err := r.phase(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		windows = append(windows, w)
		if p.idleAfter {
			if err := r.idle(ctx); err != nil {
				return nil, err
			}
		}
	}
	r.report.ManagerPeakRSSMiB, r.report.ManagerCPUSeconds = peakMemory(pid), cpuSeconds(pid)
	stop()
	r.report.ManagerPeakAnonymousMiB = <-anonymous
	events := r.report.ScaleUp.EventsPerMachine + r.report.ScaleDown.EventsPerMachine
	r.report.EventsPerMachineLife = round(events, 2)
	return windows, nil
}

// quiet is how long core has to write nothing for the fleet to have settled.
const quiet = 2 * time.Second

// settle returns when core has not written for a while, and has read the audit log until then.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.phaseLimit(), errors.New("the fleet does not settle: core goes on writing"))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now(); time.Since(last) < quiet; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		fresh, err := r.log.Next()
		if err != nil {
			return err
		}
		r.requests = append(r.requests, fresh...)
		for i := range fresh {
			if w := &fresh[i]; w.User == stack.ManagerUser && (w.Budgeted() || w.Resource == "events") && w.Answered.After(last) {
				last = w.Answered
			}
		}
	}
	return nil
}

// idle counts what core writes while nothing happens.
func (r *run) idle(ctx context.Context) error {
	idle := r.options.Idle
	r.options.Log.Info("Measuring the idle fleet", "settling", idle, "counting", idle)
	if err := wait(ctx, idle); err != nil {
		return err
	}
	began, before := time.Now(), r.cpuSeconds()
	if err := wait(ctx, idle); err != nil {
		return err
	}
	used := since(before, r.cpuSeconds())[stack.Manager]
	fresh, err := r.log.Next()
	if err != nil {
		return err
	}
	r.requests = append(r.requests, fresh...)
	writes := 0
	for i := range fresh {
		if w := &fresh[i]; w.User == stack.ManagerUser && w.Budgeted() && !w.Answered.Before(began) {
			writes++
		}
	}
	r.report.IdleWritesPerMinute = round(float64(writes)/idle.Minutes(), 1)
	r.report.IdleCPUPercent = round(100*used/idle.Seconds(), 2)
	r.report.IdleSeconds = idle.Seconds()
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freeAddress returns an address on this machine that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
