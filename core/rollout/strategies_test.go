package rollout

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// To recreate, no machine is made while there is one of another template.
func TestRecreateMakesNoMachineBesideAnOldOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawSettled(t)
		w.strategy = recreating
		drawSteps(t, w, func() {
			w.strategy = recreating
			templates := map[int]bool{}
			for _, ws := range w.sets {
				if len(ws.live()) > 0 {
					templates[ws.template] = true
				}
			}
			if len(templates) > 1 {
				t.Fatalf("there are machines of %d templates that stay: %+v", len(templates), w.state())
			}
		})
	})
}

// With OnDelete no set gives up a machine for the template's sake, and there are never more
// machines than replicas.
func TestOnDeleteTakesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawSettled(t)
		w.strategy = onDelete
		replicas := w.replicas
		drawSteps(t, w, func() {
			w.strategy, w.replicas = onDelete, replicas
			for _, ws := range w.sets {
				if ws.givenUp > 0 {
					t.Fatalf("%s gave up %d machines: %+v", ws.name, ws.givenUp, w.state())
				}
			}
			if present, _ := w.count(); present > replicas {
				t.Fatalf("%d machines of %d", present, replicas)
			}
		})
	})
}

// While a deployment is paused no set is made, and no set changes its size but to follow the
// deployment's.
func TestPausedKeepsTheMix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawSettled(t)
		drawHistory(t, w, w.mustApply(t))
		w.paused = true
		// What was scaled before, and by whom, has to have arrived.
		for range 30 {
			if _, _, err := w.fairRound(); err != nil {
				t.Fatal(err)
			}
		}
		before := map[string]int32{}
		for _, ws := range w.sets {
			before[ws.name] = ws.desired
		}
		w.retemplate(rapid.IntRange(0, 3).Draw(t, "template"))
		was := w.replicas
		alone := active(before) <= 1
		if rapid.Bool().Draw(t, "scaled") {
			w.replicas = sizes.Draw(t, "replicas")
		}
		w.lowerCeiling()
		for range 30 {
			actions, _, err := w.fairRound()
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(actions, func(a Action) bool { s, ok := a.(ScaleSet); return !ok || s.Reason == Rolling }); i >= 0 {
				if _, ok := actions[i].(DeleteSet); !ok {
					t.Fatalf("%+v while paused: %+v", actions, w.state())
				}
			}
		}
		after := map[string]int32{}
		s, total, totalBefore := w.state(), int32(0), int32(0)
		// What is more than there may be shrinks in any case: the limit was lowered, or a set has
		// become the new one that is larger than the deployment.
		fits := true
		for _, n := range before {
			totalBefore += n
			fits = fits && n <= min(was, w.replicas)
		}
		fits = fits && totalBefore <= s.max()
		for _, ws := range w.sets {
			total += ws.desired
			after[ws.name] = ws.desired
			switch {
			case fits && w.replicas == was && !alone && ws.desired != before[ws.name]:
				t.Fatalf("%s had %d and has %d, though nobody scaled: %+v", ws.name, before[ws.name], ws.desired, w.state())
			case fits && w.replicas > was && ws.desired < before[ws.name]:
				t.Fatalf("%s had %d and has %d, though the deployment grew from %d to %d", ws.name, before[ws.name], ws.desired, was, w.replicas)
			}
		}
		if total > max(s.max(), totalBefore) || w.replicas != was && total < s.floor() && len(w.sets) > 0 {
			t.Fatalf("sets of %d machines in sum, there may be %d to %d: %+v", total, s.floor(), s.max(), s)
		}
		if w.replicas != was && active(after) == 1 && total != w.replicas {
			t.Fatalf("the only set has %d of %d", total, w.replicas)
		}
	})
}

// active counts the sets that are to have machines.
func active(desired map[string]int32) int {
	n := 0
	for _, d := range desired {
		n += int(min(d, 1))
	}
	return n
}

// As long as an old set holds machines, and no longer, each set that has machines has its part.
func TestPartsAreThereWhileARolloutGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		drawHistory(t, w, w.mustApply(t))
		s := w.state()
		if s.Strategy == onDelete || s.Paused && s.newSet() == nil {
			return
		}
		old := int32(0)
		for i := range s.Sets {
			if !s.Sets[i].New {
				old += s.Sets[i].holds()
			}
		}
		for i := range s.Sets {
			want := NoPart
			switch set := &s.Sets[i]; {
			case set.New && old > 0:
				want = Current
			case !set.New && set.holds() > 0:
				want = Outdated
			}
			if got := s.Part(&s.Sets[i]); got != want {
				t.Fatalf("%s is %q, want %q, while old sets hold %d: %+v", s.Sets[i].Name, got, want, old, s)
			}
		}
		if s.isComplete() && s.Part(s.newSet()) != NoPart {
			t.Fatalf("complete, and yet a rollout goes on: %+v", s)
		}
	})
}

func TestEachSetIsToldItsPart(t *testing.T) {
	up := machines(2, 0, 0, 0)
	old, fresh, empty := has("old", false, 1, up), has("new", true, 2, up), has("empty", false, 0, nil)
	rolling := []Set{empty, old, fresh}
	for _, tc := range []struct {
		why   string
		state State
		set   Set
		want  Part
	}{
		{"machines of an old template are being replaced", State{Sets: rolling}, old, Outdated},
		{"by those of the new one", State{Sets: rolling}, fresh, Current},
		{"also if it is yet to be made", State{Sets: []Set{old}}, Set{New: true}, Current},
		{"an empty old set has no part", State{Sets: rolling}, empty, NoPart},
		{"without old machines no rollout goes on", State{Sets: []Set{empty, fresh}}, fresh, NoPart},
		{"a pause ends no rollout", State{Sets: rolling, Paused: true}, old, Outdated},
		{"who was in none when it was paused is in none", State{Sets: []Set{old}, Paused: true}, old, NoPart},
		{"who was in one is in it still", State{Sets: []Set{old}, Paused: true}, func() Set { s := old; s.Part = Current; return s }(), Current},
		{"users take their time: nobody need avoid the Nodes", State{Sets: rolling, Strategy: onDelete}, fresh, NoPart},
		{"but no old machine is made", State{Sets: rolling, Strategy: onDelete}, old, Dwindling},
		{"nor does an empty old set dwindle", State{Sets: rolling, Strategy: onDelete}, empty, NoPart},
		{"unless it is paused", State{Sets: rolling, Strategy: onDelete, Paused: true}, old, NoPart},
	} {
		if got := tc.state.Part(&tc.set); got != tc.want {
			t.Errorf("%s: the set %s is %q, want %q", tc.why, tc.set.Name, got, tc.want)
		}
	}
}

// drawSettled draws a world in which all machines have the template and are available.
func drawSettled(t *rapid.T) *world {
	w := &world{
		replicas: sizes.Draw(t, "replicas"), history: rapid.Int32Range(0, 2).Draw(t, "history"),
		surge: amounts.Draw(t, "surge"), unavailable: amounts.Draw(t, "unavailable"), strategy: strategies.Draw(t, "strategy"),
	}
	w.lowerCeiling()
	for range 4 {
		if _, _, err := w.fairRound(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// drawSteps is a history in which check is called after each step.
func drawSteps(t *rapid.T, w *world, check func()) {
	for range rapid.IntRange(1, maxSteps).Draw(t, "steps") {
		w.drawStep(t, w.mustApply(t))
		check()
	}
}
