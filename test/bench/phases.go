package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/localcluster/stack"
)

// The namespaces of the run and of the floor have names of the same size, and so have what they
// hold.
const (
	namespace      = "bench"
	floorNamespace = "floor"
)

const (
	poolName   = "pool"
	oldKubelet = "1.36.3"
	newKubelet = "1.36.2"
)

// What core may write per machine: two of the writes until it is Running are those of its bootstrap
// token. A rollout makes and deletes a machine for each. It may note two things on its Node: that
// it is outdated, and that it is not to be scaled down.
const (
	upLimit      = 8
	downLimit    = 5
	rolloutLimit = upLimit + downLimit + 2
)

// phase is one thing that is measured.
type phase struct {
	name string
	// patch changes the MachineDeployment, done says when that has come to its end.
	patch string
	done  func(counts) bool
	// writes and peak are limits: of core's writes per machine, and of machines.
	writes float64
	peak   int
	report **Phase
	// idleAfter measures the idle fleet afterwards.
	idleAfter bool
}

// window is a phase as the floor sees it.
type window struct {
	phase
	from, to time.Time
	result   *Phase
}

func (r *run) phases() []phase {
	n := r.options.Machines
	all := func(kubelet string) func(counts) bool {
		return func(c counts) bool { return c.present == n && c.byKubelet[kubelet] == n }
	}
	return []phase{
		{
			name: "scale_up", patch: fmt.Sprintf(`{"spec":{"replicas":%d}}`, n), done: all(oldKubelet),
			writes: upLimit, peak: n, report: &r.report.ScaleUp, idleAfter: true,
		},
		{
			name:  "rollout",
			patch: fmt.Sprintf(`{"spec":{"template":{"spec":{"versions":{"kubelet":%q}}}}}`, newKubelet), done: all(newKubelet),
			writes: rolloutLimit, peak: n + r.options.surge(), report: &r.report.Rollout,
		},
		{
			name: "scale_down", patch: `{"spec":{"replicas":0}}`, done: func(c counts) bool { return c.present == 0 },
			writes: downLimit, peak: n, report: &r.report.ScaleDown,
		},
	}
}

// phase measures one phase, and waits until its fleet has settled.
func (r *run) phase(ctx context.Context, p phase) (window, error) {
	cause := fmt.Errorf("not done within %s", r.options.phaseLimit())
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.phaseLimit(), cause)
	defer cancel()
	r.options.Log.Info("Measuring", "phase", p.name, "machines", r.options.Machines)
	callsBefore, err := r.calls(ctx)
	if err != nil {
		return window{}, err
	}
	profile := r.startProfile(ctx, p.name)
	r.tally.begin()
	before, began := r.cpuSeconds(), time.Now()
	pool := &clusterv1alpha1.MachineDeployment{}
	pool.Namespace, pool.Name = namespace, poolName
	if err := r.client.Patch(ctx, pool, client.RawPatch(types.MergePatchType, []byte(p.patch))); err != nil {
		return window{}, fmt.Errorf("change the MachineDeployment: %w", err)
	}
	if err := r.tally.await(ctx, p.done); err != nil {
		return window{}, err
	}
	ended := time.Now()
	result := &Phase{
		Machines: r.options.Machines, Seconds: round(ended.Sub(began).Seconds(), 3), CPUSeconds: since(before, r.cpuSeconds()),
		WritesLimit: p.writes, PeakLimit: p.peak, CoreWrites: map[string]int{},
	}
	result.MillisecondsPerMachine = round(1000*result.Seconds/float64(result.Machines), 2)
	if err := errors.Join(profile(), r.saveProfile(ctx, p.name, "heap"), r.saveServerMetrics(ctx, p.name)); err != nil {
		return window{}, err
	}
	if err := r.settle(ctx); err != nil {
		return window{}, err
	}
	result.PeakMachines, result.LowestAvailable = r.tally.extremes()
	callsAfter, err := r.calls(ctx)
	if err != nil {
		return window{}, err
	}
	*p.report = result
	w := window{phase: p, from: began, to: ended, result: result}
	r.countWrites(w)
	result.DriverCallsPerMachine = perMachine(callsAfter.driver-callsBefore.driver, result)
	result.CloudCallsPerMachine = perMachine(callsAfter.cloud-callsBefore.cloud, result)
	r.options.Log.Info("Measured", "phase", p.name, "seconds", result.Seconds, "millisecondsPerMachine", result.MillisecondsPerMachine,
		"writesPerMachine", result.APIWritesPerMachine, "peakMachines", result.PeakMachines, "cpuSeconds", round(total(result.CPUSeconds), 1),
		"managerCPUSeconds", result.CPUSeconds[stack.Manager], "managerPeakMiB", peakMemory(r.stack.Process(stack.Manager).Pid()))
	return w, nil
}

// countWrites counts core's writes from the phase's begin until it has settled.
func (r *run) countWrites(w window) {
	budgeted, events := 0, 0
	for i := range r.requests {
		one := &r.requests[i]
		if one.Answered.Before(w.from) || one.User != stack.ManagerUser {
			continue
		}
		w.result.CoreWrites[one.Verb+" "+one.Resource]++
		if one.Budgeted() {
			budgeted++
		}
		if one.Resource == "events" {
			events++
		}
	}
	w.result.APIWritesPerMachine = perMachine(budgeted, w.result)
	w.result.EventsPerMachine = perMachine(events, w.result)
}

func perMachine(count int, of *Phase) float64 {
	return round(float64(count)/float64(of.Machines), 3)
}

// deployment is the MachineDeployment that is scaled and rolled.
func deployment(replicas, surge int) *clusterv1alpha1.MachineDeployment {
	md := &clusterv1alpha1.MachineDeployment{}
	text := fmt.Sprintf(`
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  replicas: %[3]d
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: %[4]d, maxUnavailable: 0}
  selector:
    matchLabels: {pool: %[1]s}
  template:
    metadata:
      labels: {pool: %[1]s}
    spec:
      versions: {kubelet: %[5]s}
      providerSpec:
        value:
          cloudProvider: fake
          cloudProviderSpec: {flavor: small, image: ubuntu-24.04}
          operatingSystem: ubuntu
`, poolName, namespace, replicas, surge, oldKubelet)
	if err := yaml.UnmarshalStrict([]byte(text), md); err != nil {
		panic(err) // The text is a constant but for numbers.
	}
	return md
}
