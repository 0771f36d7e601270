package forecast

import (
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/annotations"
	"github.com/millwright-dev/millwright/core/health"
	"github.com/millwright-dev/millwright/core/machinetemplate"
	"github.com/millwright-dev/millwright/core/rollout"
	"github.com/millwright-dev/millwright/core/scale"
)

// world is a deployment, and what its controllers see of it.
type world struct {
	// deployment has no sets.
	deployment rollout.State
	// paused: nobody wants the deployment's sets to be touched.
	paused bool
	sets   []*set
	now    time.Time
	// made counts the machines that were created.
	made int
}

type set struct {
	rollout.Set
	// paused: nobody wants the set's machines to be touched. leaving: the set itself is on its way
	// out.
	paused, leaving bool
	// frozen: the set has far more machines than it may have.
	frozen   bool
	order    scale.Order
	machines []machine
}

type machine struct {
	scale.Machine
	// comesUp: it becomes available when the wave is over.
	comesUp bool
}

// newWorld reads the deployment, its sets and their machines, by the uid of the set.
func newWorld(
	md *clusterv1alpha1.MachineDeployment, sets []clusterv1alpha1.MachineSet, machines map[types.UID][]clusterv1alpha1.Machine, now time.Time,
) (*world, error) {
	if md.Spec.Replicas == nil {
		md = md.DeepCopy()
		md.Spec.Replicas = new(rollout.InitialSize(md, sets))
	}
	template, _, err := rollout.TemplateOf(md, now)
	if err != nil {
		return nil, err
	}
	current, err := template.Find(sets)
	if err != nil {
		return nil, err
	}
	w := &world{deployment: rollout.StateOf(md), paused: annotations.IsPaused(md), now: now}
	for i := range sets {
		s := newSet(md, &sets[i], machines[sets[i].UID], now)
		s.New = &sets[i] == current
		w.sets = append(w.sets, s)
	}
	return w, nil
}

func newSet(md *clusterv1alpha1.MachineDeployment, ms *clusterv1alpha1.MachineSet, machines []clusterv1alpha1.Machine, now time.Time) *set {
	s := &set{
		Set: rollout.SetOf(ms), paused: annotations.IsPaused(ms), leaving: !ms.DeletionTimestamp.IsZero(),
		frozen: apimeta.IsStatusConditionTrue(ms.Status.Conditions, clusterv1alpha1.ConditionFrozen),
		order: scale.Order{
			UnavailableFirst: ms.Annotations[clusterv1alpha1.ScalingReasonAnnotation] == clusterv1alpha1.ScalingReasonRolling,
			Policy:           ms.Spec.DeletePolicy, Seed: string(ms.UID),
		},
	}
	if rolling := md.Spec.Strategy.RollingUpdate; rolling != nil && rolling.DeletePolicy != "" {
		s.order.Policy = rolling.DeletePolicy
	}
	minReady := time.Duration(md.Spec.MinReadySeconds) * time.Second
	for i := range machines {
		m := &machines[i]
		facts := health.MachineOf(m)
		facts.Available, _ = health.IsAvailable(m, minReady, now)
		facts.Refused = health.IsSpecRefused(m) && machinetemplate.IsSameVM(m, &ms.Spec.Template)
		isComing := !facts.Failed && !facts.Unadopted && !facts.Stopped && (!facts.HasNode || health.IsReady(m))
		s.machines = append(s.machines, machine{Machine: facts, comesUp: isComing && !facts.Available})
	}
	return s
}

// state is what package rollout plans on.
func (w *world) state() rollout.State {
	state := w.deployment
	for _, s := range w.sets {
		seen := s.Set
		seen.Observed, seen.Present, seen.Machines = !s.leaving, int32(len(s.machines)), nil
		for _, m := range s.machines {
			if !m.Deleting {
				seen.Machines = append(seen.Machines, rollout.Machine{Available: m.Available, Marked: m.Marked})
			}
		}
		state.Sets = append(state.Sets, seen)
	}
	return state
}

// most is how many machines there may be.
func (w *world) most() int32 { return w.deployment.Replicas + w.deployment.Limits.MaxSurge }

// plan is what the deployment's controller does next. It says whether that is anything, and what it
// waits for.
func (w *world) plan(wave *Wave) (acts bool, wait rollout.Wait) {
	if w.paused {
		return false, rollout.Wait{For: rollout.Resumption}
	}
	state := w.state()
	actions, wait := rollout.Plan(state)
	revision := w.newRevision()
	for i, s := range w.sets {
		s.Part = state.Part(&state.Sets[i])
		if s.New {
			s.Revision = revision
		}
		if s.PlannedFor.Replicas == w.deployment.Replicas {
			s.PlannedFor.Max = w.most()
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case rollout.CreateSet:
			made := &set{Set: rollout.Set{Name: NewSet, New: true, Revision: revision, Part: state.Part(&rollout.Set{New: true})}}
			w.sets = append(w.sets, made)
			wave.change(NewSet, 0) // also if it stays empty
			w.resize(made, a.Replicas, rollout.Scaling, wave)
		case rollout.ScaleSet:
			w.resize(w.setNamed(a.Name), a.To, a.Reason, wave)
		case rollout.DeleteSet:
			wave.change(a.Name, 0).Deleted = true
			w.sets = slices.DeleteFunc(w.sets, func(s *set) bool { return s.Name == a.Name })
		}
	}
	return len(actions) > 0, wait
}

func (w *world) resize(s *set, to int32, reason rollout.Reason, wave *Wave) {
	if s.Desired != to {
		wave.change(s.Name, s.Desired).To = to
	}
	s.Desired, s.PlannedFor = to, rollout.Size{Replicas: w.deployment.Replicas, Max: w.most()}
	s.order.UnavailableFirst = reason == rollout.Rolling
}

// newRevision is the one of the template's set: the highest.
func (w *world) newRevision() int64 {
	highest, own := int64(0), int64(0)
	for _, s := range w.sets {
		if s.New {
			own = s.Revision
			continue
		}
		highest = max(highest, s.Revision)
	}
	return max(own, highest+1)
}

func (w *world) setNamed(name string) *set {
	return w.sets[slices.IndexFunc(w.sets, func(s *set) bool { return s.Name == name })]
}

// act is what the set's controller does next. It says whether that is anything.
func (w *world) act(s *set, wave *Wave) bool {
	if s.paused || s.leaving {
		return false
	}
	state := scale.State{Desired: int(s.Desired), Order: s.order, Frozen: s.frozen}
	for _, m := range s.machines {
		state.Machines = append(state.Machines, m.Machine)
	}
	w.measure(s, &state)
	d := scale.Decide(state)
	s.frozen = d.Frozen
	if s.Part == rollout.Dwindling {
		d.Create = 0
	}
	for range d.Create {
		w.made++
		name := fmt.Sprintf("%s/%d", s.Name, w.made)
		created := w.now.Add(time.Duration(w.made) * time.Second)
		s.machines = append(s.machines, machine{Machine: scale.Machine{Name: name, UID: name, Created: created}, comesUp: true})
	}
	for _, victim := range d.Delete {
		i := slices.IndexFunc(s.machines, func(m machine) bool { return m.UID == victim.UID })
		s.machines[i].Deleting, s.machines[i].Available = true, false
		change := wave.change(s.Name, s.Desired)
		change.Delete = append(change.Delete, victim.Name)
	}
	if d.Create > 0 {
		wave.change(s.Name, s.Desired).Create += d.Create
	}
	return d.Create+len(d.Delete) > 0
}

// measure adds how many machines the set may have, as surge.Account.Room does.
func (w *world) measure(s *set, state *scale.State) {
	if s.PlannedFor.Max == 0 {
		return
	}
	state.Bound = int(s.PlannedFor.Max)
	left := int(min(s.PlannedFor.Max, w.most()) - s.Desired)
	for _, sibling := range w.sets {
		if sibling != s {
			state.Siblings += len(sibling.machines)
			left -= max(len(sibling.machines), int(sibling.Desired))
		}
	}
	state.Spare = max(left, 0)
}

// pass has everything happen that is under way. It says whether that is anything.
func (w *world) pass() bool {
	happened := false
	for _, s := range w.sets {
		for i := range s.machines {
			m := &s.machines[i]
			happened = happened || m.Deleting || m.comesUp
			if m.comesUp && !m.Deleting {
				m.Available, m.HasNode, m.comesUp = true, true, false
			}
		}
		s.machines = slices.DeleteFunc(s.machines, func(m machine) bool { return m.Deleting || s.leaving })
		happened = happened || s.leaving
	}
	w.sets = slices.DeleteFunc(w.sets, func(s *set) bool { return s.leaving })
	return happened
}

// count returns how many machines there are, and how many of them are available.
func (w *world) count() (machines, available int) {
	for _, s := range w.sets {
		machines += len(s.machines)
		for _, m := range s.machines {
			if m.Available {
				available++
			}
		}
	}
	return machines, available
}
