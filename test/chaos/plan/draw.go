package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
)

// Options bound what is drawn.
type Options struct {
	// Window is how long things go on happening in a round.
	Window time.Duration
	// ControlPlane lets the API server and etcd be disturbed, too.
	ControlPlane bool
	// Workload says that Nodes are in a cluster of their own. Its API server and etcd are disturbed
	// as those of the Machines are.
	Workload bool
	// Strays lets VMs be left without a Machine.
	Strays bool
	// Team lets a team come and go: a namespace with machines and credentials of its own.
	Team bool
	// Claims lets Machines be made by hand that name somebody else's VM.
	Claims bool
	// Outages lets the API server be away, while machines are drained, for so long that their Nodes
	// count as lost.
	Outages bool
	// Hooks lets deletions be held by annotations, Sickness Nodes report that they are not Ready.
	Hooks, Sickness bool
	// Volumes lets volumes be attached to machines that are to be drained.
	Volumes bool
	// Operations are the cloud's that faults are about, each as often as it shall be drawn; "" is
	// all of them, and so are none.
	Operations []string
}

// Draw returns the plan of a round.
func Draw(seed uint64, number int, o Options) Round {
	d := &draw{dice: rand.New(rand.NewPCG(seed, uint64(number))), options: o}
	for range 2 + d.dice.IntN(4) {
		d.add(d.pick(d.operations()))
	}
	for range 1 + d.dice.IntN(3) {
		d.add(d.pick(d.disturbances()))
	}
	slices.SortStableFunc(d.steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return Round{Seed: seed, Number: number, Steps: d.steps}
}

type draw struct {
	dice    *rand.Rand
	options Options
	steps   []Step
}

// choice is something that may be drawn, as often as its weight says.
type choice struct {
	weight int
	make   func() Step
}

func (d *draw) pick(choices []choice) Step {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := d.dice.IntN(total)
	for _, c := range choices {
		if n < c.weight {
			return c.make()
		}
		n -= c.weight
	}
	panic("the weights do not add up")
}

func (d *draw) add(s Step) {
	s.At = d.upTo(d.options.Window)
	d.steps = append(d.steps, s)
}

// upTo is a while shorter than most, in steps that read well.
func (d *draw) upTo(most time.Duration) time.Duration {
	const grain = 10 * time.Millisecond
	return time.Duration(d.dice.Int64N(int64(most/grain))) * grain
}

// between is a while of at least least and less than most.
func (d *draw) between(least, most time.Duration) time.Duration { return least + d.upTo(most-least) }

func (d *draw) deployment() string { return Deployments()[d.dice.IntN(len(Deployments()))] }

// mostReplicas keeps rounds short: what can go wrong goes wrong among few.
const mostReplicas = 5

func (d *draw) operations() []choice {
	machine := func(do Verb) func() Step {
		return func() Step { return Step{Do: do, Target: d.deployment(), Number: d.dice.IntN(mostReplicas)} }
	}
	pause := func(do Verb) func() Step {
		return func() Step {
			return Step{Do: do, Target: d.deployment(), Lasts: d.between(300*time.Millisecond, 2*time.Second)}
		}
	}
	choices := []choice{
		{24, func() Step { return Step{Do: Apply, Target: d.deployment(), Shape: d.shape()} }},
		{10, func() Step { return Step{Do: Scale, Target: d.deployment(), Number: d.dice.IntN(mostReplicas + 1)} }},
		{8, machine(DeleteMachine)},
		{2, machine(Mark)},
		{2, machine(Replace)},
		{1, machine(DeleteNode)},
		{3, pause(Pause)},
		{3, pause(Hold)},
		{2, func() Step { return Step{Do: Delete, Target: d.deployment()} }},
	}
	if d.options.Claims {
		choices = append(choices, choice{4, func() Step {
			return Step{Do: Claim, Number: d.dice.IntN(mostReplicas + 1), Lasts: d.between(500*time.Millisecond, 3*time.Second)}
		}})
	}
	if d.options.Team {
		choices = append(choices, d.teamOperations()...)
	}
	if d.options.Volumes {
		choices = append(choices, choice{12, func() Step {
			return Step{Do: Detach, Number: d.dice.IntN(3 * mostReplicas), Lasts: d.detachTime()}
		}})
	}
	if d.options.Hooks {
		choices = append(choices, choice{12, func() Step {
			s := machine(Hook)()
			s.Lasts = d.between(time.Second, 5*time.Second)
			return s
		}})
	}
	return choices
}

// detachTime is how long a volume takes to be detached: longer than the rest of a drain takes, and
// than the judge is patient. One of three times it is longer than some machines wait.
func (d *draw) detachTime() time.Duration {
	if d.dice.IntN(3) == 0 {
		return d.between(12*time.Second, 20*time.Second)
	}
	return d.between(4*time.Second, 8*time.Second)
}

// mostTeamReplicas keeps the team small: its namespace has to be empty soon.
const mostTeamReplicas = 3

func (d *draw) teamOperations() []choice {
	lose := func(do Verb) func() Step {
		return func() Step { return Step{Do: do, Target: Team, Lasts: d.between(300*time.Millisecond, 3*time.Second)} }
	}
	return []choice{
		{10, func() Step { return Step{Do: ApplyTeam, Target: Team, Number: 1 + d.dice.IntN(mostTeamReplicas)} }},
		{4, func() Step { return Step{Do: DeleteNamespace, Target: Team} }},
		{2, func() Step { return Step{Do: DeleteManifest, Target: Team} }},
		{3, lose(DeleteSecret)},
		{3, lose(DeleteBinding)},
	}
}

func (d *draw) shape() Shape {
	s := Shape{Replicas: d.dice.IntN(mostReplicas + 1), Surge: d.dice.IntN(3), Unavailable: d.dice.IntN(3), Template: d.dice.IntN(Templates)}
	if s.Surge+s.Unavailable == 0 {
		s.Surge = 1
	}
	if d.dice.IntN(4) == 0 {
		s.MinReady = 1
	}
	return s
}

func (d *draw) disturbances() []choice {
	on := func(do Verb, target string, least, most time.Duration) func() Step {
		return func() Step { return Step{Do: do, Target: target, Lasts: d.between(least, most)} }
	}
	const instant, moment, while = 20 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond
	choices := []choice{
		{30, on(Kill, Manager, instant, while)},
		{15, on(Kill, Driver, instant, while)},
		{8, on(Stop, Manager, moment, 2*time.Second)},
		{5, on(Stop, Driver, moment, 2*time.Second)},
		{6, on(Cut, APIServer, instant, while)},
		{6, on(Cut, Driver, instant, while)},
		{3, on(Stall, APIServer, moment, while)},
		{3, on(Stall, Driver, moment, while)},
		{30, func() Step { return Step{Do: Break, Fault: d.fault()} }},
		{3, func() Step { return Step{Do: Limit, Number: d.dice.IntN(3)} }},
		{6, func() Step { return Step{Do: Change, Number: d.dice.IntN(3 * mostReplicas), Change: d.change()} }},
	}
	if d.options.ControlPlane {
		choices = append(choices,
			choice{8, on(Kill, APIServer, instant, moment)}, choice{8, on(Kill, Etcd, instant, moment)},
			choice{4, on(Stop, APIServer, moment, 2*time.Second)}, choice{4, on(Stop, Etcd, moment, 2*time.Second)})
	}
	if d.options.Workload {
		choices = append(choices, choice{6, on(Cut, WorkloadAPIServer, instant, while)}, choice{3, on(Stall, WorkloadAPIServer, moment, while)})
	}
	if d.options.Workload && d.options.ControlPlane {
		choices = append(choices,
			choice{8, on(Kill, WorkloadAPIServer, instant, moment)}, choice{8, on(Kill, WorkloadEtcd, instant, moment)},
			choice{4, on(Stop, WorkloadAPIServer, moment, 2*time.Second)}, choice{4, on(Stop, WorkloadEtcd, moment, 2*time.Second)})
	}
	if d.options.Outages {
		choices = append(choices, choice{6, func() Step {
			return Step{Do: Outage, Target: d.deployment(), Lasts: d.between(9*time.Second, 12*time.Second)}
		}})
	}
	if d.options.Sickness {
		choices = append(choices, choice{8, func() Step {
			return Step{Do: Sicken, Target: d.deployment(), Number: d.dice.IntN(mostReplicas), Lasts: d.between(time.Second, 12*time.Second)}
		}})
	}
	if d.options.Strays {
		choices = append(choices, choice{4, func() Step { return Step{Do: Stray} }})
	}
	return choices
}

func (d *draw) change() backendv1alpha1.VMChange {
	changes := []backendv1alpha1.VMChange{
		backendv1alpha1.VMChange_VM_CHANGE_DELETE, backendv1alpha1.VMChange_VM_CHANGE_STOP, backendv1alpha1.VMChange_VM_CHANGE_FAIL,
	}
	return changes[d.dice.IntN(len(changes))]
}

// operation draws the cloud's operation that a fault is about; empty: all.
func (d *draw) operation() string {
	operations := d.options.Operations
	if len(operations) == 0 {
		return ""
	}
	return operations[d.dice.IntN(len(operations))]
}

// fault draws one that strikes a few calls, so that the cloud is well again soon.
func (d *draw) fault() *backendv1alpha1.Fault {
	f := &backendv1alpha1.Fault{
		Match: &backendv1alpha1.FaultMatch{Operation: d.operation()}, Times: int32(1 + d.dice.IntN(3)), Seed: int64(d.dice.Uint32()),
	}
	if d.dice.IntN(2) == 0 {
		f.Point = backendv1alpha1.FaultPoint_FAULT_POINT_AFTER_EFFECT
	}
	return d.pickFault([]faultChoice{
		{8, func() {
			f.Effect, f.Times = backendv1alpha1.FaultEffect_FAULT_EFFECT_LATENCY, 0
			f.Latency = &backendv1alpha1.FaultLatency{
				Min: durationpb.New(d.upTo(200 * time.Millisecond)), Max: durationpb.New(d.between(200*time.Millisecond, while)),
			}
		}},
		{8, func() {
			f.Effect, f.Error = backendv1alpha1.FaultEffect_FAULT_EFFECT_ERROR, d.cloudError()
		}},
		{5, func() { f.Effect = backendv1alpha1.FaultEffect_FAULT_EFFECT_HOLD }},
		{3, func() { f.Effect = backendv1alpha1.FaultEffect_FAULT_EFFECT_HANG }},
		{8, func() { f.Effect = backendv1alpha1.FaultEffect_FAULT_EFFECT_ANSWER_LOST }},
		{2, func() { f.Effect, f.Match = backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_NEVER_ENDS, nil }},
		{2, func() {
			f.Effect, f.Match, f.Times = backendv1alpha1.FaultEffect_FAULT_EFFECT_BOOT_FAILS, nil, 1
			f.Error = &backendv1alpha1.FaultError{Message: "No valid host was found"}
		}},
	}, f)
}

const while = 1200 * time.Millisecond

type faultChoice struct {
	weight int
	set    func()
}

func (d *draw) pickFault(choices []faultChoice, f *backendv1alpha1.Fault) *backendv1alpha1.Fault {
	var steps []choice
	for _, c := range choices {
		steps = append(steps, choice{c.weight, func() Step { c.set(); return Step{} }})
	}
	d.pick(steps)
	return f
}

// cloudError draws one of the cloud's own. Those that core answers with a long pause are rare.
func (d *draw) cloudError() *backendv1alpha1.FaultError {
	names := []backendv1alpha1.NamedError{
		backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL,
		backendv1alpha1.NamedError_NAMED_ERROR_INTERNAL, backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE,
		backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE, backendv1alpha1.NamedError_NAMED_ERROR_UNAVAILABLE,
		backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT, backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT,
		backendv1alpha1.NamedError_NAMED_ERROR_QUOTA, backendv1alpha1.NamedError_NAMED_ERROR_CAPACITY,
		backendv1alpha1.NamedError_NAMED_ERROR_CREDENTIALS, backendv1alpha1.NamedError_NAMED_ERROR_PERMISSION,
		backendv1alpha1.NamedError_NAMED_ERROR_DEPENDENCY,
	}
	e := &backendv1alpha1.FaultError{Name: names[d.dice.IntN(len(names))]}
	if e.GetName() == backendv1alpha1.NamedError_NAMED_ERROR_RATE_LIMIT {
		e.RetryAfter = durationpb.New(d.between(100*time.Millisecond, while))
	}
	return e
}
