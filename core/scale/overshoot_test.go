package scale

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSAFE2_FarTooManyMachinesFreezeCreation(t *testing.T) {
	// going are that many Machines on their way out.
	going := func(n int) []Machine {
		machines := make([]Machine, n)
		for i := range machines {
			machines[i] = up(string(rune('a'+i)), deleting)
		}
		return machines
	}
	for _, tc := range []struct {
		why    string
		state  State
		create int
		frozen bool
	}{
		{"what there may be yet is created", State{Desired: 3, Spare: 9, Siblings: 2, Bound: 4}, 2, false},
		{"and those on their way out count", State{Desired: 3, Spare: 9, Machines: going(1), Siblings: 2, Bound: 4}, 1, false},
		{"as many as there may be is no overshoot", State{Desired: 3, Spare: 9, Siblings: 4, Bound: 4}, 0, false},
		{"nor are two more", State{Desired: 3, Spare: 9, Siblings: 6, Bound: 4}, 0, false},
		{"three more are", State{Desired: 3, Spare: 9, Siblings: 7, Bound: 4}, 0, true},
		{"those on their way out count", State{Desired: 3, Spare: 9, Machines: going(4), Siblings: 3, Bound: 4}, 0, true},
		{"a fifth more is no overshoot where there are many", State{Desired: 3, Spare: 9, Siblings: 120, Bound: 100}, 0, false},
		{"more than that is", State{Desired: 3, Spare: 9, Siblings: 121, Bound: 100}, 0, true},
		{"once frozen it takes until there are as many as there may be", State{Desired: 3, Spare: 9, Siblings: 5, Bound: 4, Frozen: true}, 0, true},
		{"and then it is over", State{Desired: 3, Spare: 9, Siblings: 4, Bound: 4, Frozen: true}, 0, false},
		{"and goes on", State{Desired: 3, Spare: 9, Siblings: 3, Bound: 4, Frozen: true}, 1, false},
		{"where nothing is missing, nothing is frozen", State{Desired: 0, Machines: going(7), Siblings: 9, Bound: 4}, 0, false},
		{"without a bound there is none to overshoot", State{Desired: 3, Spare: 9, Siblings: 99}, 3, false},
	} {
		if got := Decide(tc.state); got.Create != tc.create || got.Frozen != tc.frozen {
			t.Errorf("%s: got %+v", tc.why, got)
		}
	}
}

// However the sets of a deployment come to their sizes: none creates beyond the bound, surplus
// always goes, and in the end nothing is frozen.
func TestSAFE2_NothingIsCreatedBeyondTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		s.Spare, s.Siblings = rapid.IntRange(0, 4).Draw(t, "spare"), rapid.IntRange(0, 20).Draw(t, "siblings")
		s.Bound, s.Frozen = rapid.IntRange(1, 20).Draw(t, "bound"), rapid.Bool().Draw(t, "frozen")
		free := s
		free.Bound = 0
		got, want := Decide(s), Decide(free)
		total := len(s.Machines) + s.Siblings
		switch {
		case got.Frozen && (got.Create > 0 || len(got.Delete) > 0 || s.Live() >= s.Desired || total <= s.Bound):
			t.Fatalf("frozen with %d of at most %d: %+v", total, s.Bound, got)
		case !got.Frozen && total > s.Bound+max(2, s.Bound/5) && want.Create > 0:
			t.Fatalf("not frozen while there are %d of at most %d", total, s.Bound)
		case !got.Frozen && (got.Create != max(0, min(want.Create, s.Bound-total)) || len(got.Delete) != len(want.Delete)):
			t.Fatalf("the bound changes more than it should: %+v, without %+v", got, want)
		}
		s.Siblings, s.Frozen = 0, got.Frozen
		s.Bound = max(s.Bound, len(s.Machines))
		if Decide(s).Frozen {
			t.Fatal("still frozen when there are as few as there may be")
		}
	})
}
