package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// Of a range, rapid prefers the low end; of these, what stands first.
var sizes = rapid.SampledFrom([]int32{5, 3, 8, 4, 2, 6, 1, 7, 0})

var strategies = rapid.SampledFrom([]clusterv1alpha1.MachineDeploymentStrategyType{rollingUpdate, recreating, onDelete, "", rollingUpdate})

var amounts = rapid.Custom(func(t *rapid.T) *intstr.IntOrString {
	if rapid.Bool().Draw(t, "percent") {
		return percent(rapid.SampledFrom([]int32{0, 25, 50, 100}).Draw(t, "value"))
	}
	return number(rapid.Int32Range(0, 3).Draw(t, "value"))
})

func drawWorld(t *rapid.T) *world {
	w := &world{
		replicas: sizes.Draw(t, "replicas"), history: rapid.Int32Range(0, 2).Draw(t, "history"),
		surge: amounts.Draw(t, "surge"), unavailable: amounts.Draw(t, "unavailable"), strategy: strategies.Draw(t, "strategy"),
	}
	w.lowerCeiling()
	switch rapid.SampledFrom([]string{"rolling", "settled", "new"}).Draw(t, "at first") {
	case "rolling":
		w.drawSets(t)
	case "settled":
		for range 4 {
			if _, _, err := w.fairRound(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// drawSets puts the world into any state that sets can be in, reachable or not.
func (w *world) drawSets(t *rapid.T) {
	w.template = rapid.IntRange(0, 2).Draw(t, "template")
	marks := rapid.Bool().Draw(t, "marks")
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		w.revision++
		ws := &worldSet{name: fmt.Sprintf("t%d", i), template: i, revision: w.revision, observed: true}
		ws.planned = Size{Replicas: sizes.Draw(t, "planned"), Max: sizes.Draw(t, "planned max")}
		for range sizes.Draw(t, "machines") {
			w.made++
			bits := rapid.Uint8().Draw(t, "machine")
			m := &worldMachine{id: w.made, available: bits&1 > 0, broken: bits&3 == 2, marked: marks && bits&0x14 == 0x14, terminating: bits&0x28 == 0x28}
			m.available = m.available && !m.terminating
			ws.machines = append(ws.machines, m)
		}
		ws.desired = int32(len(ws.live())) + rapid.Int32Range(0, 2).Draw(t, "unborn")
		w.sets = append(w.sets, ws)
	}
	_, w.ceiling = w.count()
	w.lowerCeiling()
}

// drawStep does one random thing. verify is called around each write of the deployment's
// controller.
func (w *world) drawStep(t *rapid.T, apply func([]Action, int)) {
	switch rapid.IntRange(0, 17).Draw(t, "step") {
	case 0:
		w.replicas = sizes.Draw(t, "replicas")
	case 1:
		w.retemplate(rapid.IntRange(0, 3).Draw(t, "template"))
	case 2:
		w.surge, w.unavailable = amounts.Draw(t, "surge"), amounts.Draw(t, "unavailable")
	case 3, 4, 5, 6:
		actions, _ := Plan(w.state())
		apply(actions, rapid.IntRange(0, len(actions)).Draw(t, "applied before a crash"))
	case 7, 8:
		for _, ws := range w.sets {
			if rapid.Bool().Draw(t, "acts") {
				ws.act(w)
			}
			if rapid.Bool().Draw(t, "arrives") {
				ws.arrive()
			}
		}
	case 9:
		w.strategy = strategies.Draw(t, "strategy")
	case 10, 11:
		w.paused = !w.paused
	default:
		w.drawMachineStep(t)
	}
	w.lowerCeiling()
}

func (w *world) drawMachineStep(t *rapid.T) {
	machines := w.machines()
	if len(machines) == 0 {
		return
	}
	some := func(what string) []*worldMachine {
		mask := rapid.Uint32().Draw(t, what)
		var chosen []*worldMachine
		for i, m := range machines {
			if mask&(1<<(i%32)) != 0 {
				chosen = append(chosen, m)
			}
		}
		return chosen
	}
	switch rapid.IntRange(0, 5).Draw(t, "machines") {
	case 0, 1:
		for _, m := range some("come up") {
			m.available = !m.broken && !m.terminating
		}
	case 2:
		for _, m := range some("break") {
			m.available, m.broken = false, rapid.Bool().Draw(t, "for good")
		}
	case 3:
		for _, m := range some("are gone") {
			w.reap(m)
		}
	case 4:
		for _, m := range some("are marked") {
			m.marked = !m.marked
		}
	case 5:
		m := rapid.SampledFrom(machines).Draw(t, "is deleted by hand")
		m.terminating = true
	}
}

const maxSteps = 60

func drawHistory(t *rapid.T, w *world, apply func([]Action, int)) {
	for range rapid.IntRange(1, maxSteps).Draw(t, "steps") {
		w.drawStep(t, apply)
	}
}

func (w *world) mustApply(t *rapid.T) func([]Action, int) {
	return func(actions []Action, n int) {
		if err := w.apply(actions, n); err != nil {
			t.Fatal(err)
		}
	}
}

// There are never more machines than replicas + maxSurge, those being deleted included; after a
// scale-down, never more than there were.
func TestSurgeIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, maxSteps).Draw(t, "steps") {
			w.drawStep(t, w.mustApply(t))
			if present, held := w.count(); present > w.ceiling || held > w.ceiling {
				t.Fatalf("%d machines, %d with those that may yet be made, more than %d", present, held, w.ceiling)
			}
		}
	})
}

// No write of the controller takes available machines below the floor. When the deployment gets
// smaller, those that the user has marked are not counted: they are his choice.
func TestAvailabilityStaysAboveTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		drawHistory(t, w, func(actions []Action, n int) {
			for i, a := range actions[:n] {
				before, _ := w.staying()
				w.mustApply(t)(actions[i:], 1)
				after, chosen := w.staying()
				if scale, ok := a.(ScaleSet); ok && scale.Reason == Scaling {
					after += chosen
				}
				if floor := w.floor(); after < before && after < floor {
					t.Fatalf("%+v leaves %d of %d available machines, the floor is %d", a, after, before, floor)
				}
			}
		})
	})
}

// However many machines of the old templates are unavailable, enough of them are left. Together
// with the available ones of the new template they make up the floor, unless the user has
// chosen others, by marks.
func TestOldMachinesStayWhileTheNewTemplateIsBroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		kept := func() int32 {
			n := int32(0)
			for _, set := range w.state().Sets {
				switch {
				case set.New:
					n += set.available()
				case w.strategy == onDelete && !w.paused:
					// What somebody has deleted is not kept.
					n += min(set.Desired, set.live())
				default:
					n += set.Desired
				}
			}
			return n
		}
		drawHistory(t, w, func(actions []Action, n int) {
			marks := slices.ContainsFunc(w.machines(), func(m *worldMachine) bool { return m.marked })
			before := kept()
			w.mustApply(t)(actions, n)
			byMarks := marks && slices.ContainsFunc(actions[:n], func(a Action) bool {
				scale, ok := a.(ScaleSet)
				return ok && scale.Reason == Scaling
			})
			if after, floor := kept(), w.floor(); !byMarks && after < before && after < floor {
				t.Fatalf("%+v leaves %d, the floor is %d: %+v", actions[:n], after, floor, w.state())
			}
		})
	})
}

// Whatever has happened: when nothing more happens, and machines of the new template come up, the
// rollout ends, even if all old machines stay broken.
func TestGoalIsReachedInAFairWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		drawHistory(t, w, w.mustApply(t))
		w.paused = false
		for _, ws := range w.sets {
			for _, m := range ws.machines {
				if ws.template == w.template {
					m.broken = false
				}
			}
		}
		oldBroken := rapid.Bool().Draw(t, "old machines stay broken")
		rounds := 20 + 8*int(w.ceiling)
		for i := 0; ; i++ {
			for _, ws := range w.sets {
				for _, m := range ws.machines {
					if oldBroken && ws.template != w.template {
						m.broken, m.available = true, false
					}
				}
			}
			actions, wait, err := w.fairRound()
			if err != nil {
				t.Fatal(err)
			}
			if len(actions) == 0 && wait.For == Nothing && w.state().isComplete() {
				return
			}
			if i == rounds {
				t.Fatalf("not done after %d rounds, waits for %+v: %+v", rounds, wait, w.state())
			}
		}
	})
}

// The same state has the same plan. Applying a plan leaves nothing to plan until it is
// observed. What is applied and observed, while no machine changes, settles in a few plans.
func TestPlanningAgainAddsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		drawHistory(t, w, w.mustApply(t))
		actions, wait := Plan(w.state())
		again, waitAgain := Plan(w.state())
		if diff := cmp.Diff(actions, again) + cmp.Diff(wait, waitAgain); diff != "" {
			t.Fatal(diff)
		}
		w.mustApply(t)(actions, len(actions))
		deletes := func(a Action) bool { _, ok := a.(DeleteSet); return ok }
		if next, wait := Plan(w.state()); len(actions) > 0 && !slices.ContainsFunc(actions, deletes) && (len(next) > 0 || wait.For != Observation) {
			t.Fatalf("after %+v, unobserved: %+v, %+v", actions, next, wait)
		}
		for range 6 {
			for _, ws := range w.sets {
				ws.act(w)
				ws.arrive()
			}
			actions, _ = Plan(w.state())
			w.mustApply(t)(actions, len(actions))
		}
		if len(actions) > 0 {
			t.Fatalf("still %+v", actions)
		}
	})
}

// The order of sets and of machines means nothing.
func TestOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		drawHistory(t, w, w.mustApply(t))
		actions, wait := Plan(w.state())
		seed := rapid.Uint64().Draw(t, "order")
		shuffled, random := w.state(), rand.New(rand.NewPCG(seed, seed))
		random.Shuffle(len(shuffled.Sets), func(i, j int) {
			shuffled.Sets[i], shuffled.Sets[j] = shuffled.Sets[j], shuffled.Sets[i]
		})
		for _, set := range shuffled.Sets {
			random.Shuffle(len(set.Machines), func(i, j int) {
				set.Machines[i], set.Machines[j] = set.Machines[j], set.Machines[i]
			})
		}
		actions2, wait2 := Plan(shuffled)
		if diff := cmp.Diff(actions, actions2) + cmp.Diff(wait, wait2); diff != "" {
			t.Fatal(diff)
		}
	})
}
