package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Which sets give up numbers when there are to be fewer, one at a time: what costs least, but
// nothing old that the floor needs.
func TestShrinkTakesWhatCostsLeast(t *testing.T) {
	set := func(name string, desired int32, m []Machine) Set {
		return Set{Name: name, New: name == "new", Desired: desired, Present: desired, Observed: true, Machines: m}
	}
	for _, tc := range []struct {
		name  string
		state State
		want  map[string]int32
	}{
		{
			"old numbers without machines that the floor needs stay",
			State{Replicas: 4, Limits: Limits{MaxUnavailable: 1}, Sets: []Set{
				set("old", 3, nil), set("new", 3, machines(0, 3, 0, 0)),
			}},
			map[string]int32{"old": 3, "new": 1},
		},
		{
			"old numbers without machines go until the floor needs them",
			State{Replicas: 4, Limits: Limits{MaxUnavailable: 1}, Sets: []Set{
				set("old", 4, nil), set("new", 3, machines(0, 3, 0, 0)),
			}},
			map[string]int32{"old": 3, "new": 1},
		},
		{
			"a machine for each number is no number without one",
			State{Replicas: 4, Limits: Limits{MaxUnavailable: 4}, Sets: []Set{
				set("old", 4, machines(4, 0, 0, 0)), set("new", 2, machines(0, 2, 0, 0)),
			}},
			map[string]int32{"old": 4, "new": 0},
		},
		{
			"an unavailable new machine that goes is no loss to the floor",
			State{Replicas: 5, Sets: []Set{
				set("old", 4, machines(0, 4, 0, 0)), set("new", 3, machines(2, 0, 0, 1)),
			}},
			map[string]int32{"old": 3, "new": 2},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := map[string]int32{}
			for _, c := range tc.state.resize() {
				got[c.set.Name] = c.to
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
		})
	}
}

// Shares that are rounded up do not add up to more than there may be.
func TestGrowKeepsWithinTheRoom(t *testing.T) {
	old := func(name string) Set {
		return Set{Name: name, Desired: 2, Present: 2, Observed: true, PlannedFor: Size{4, 4}, Machines: machines(0, 2, 0, 0)}
	}
	s := State{Replicas: 5, Sets: []Set{old("a"), old("b"), {Name: "new", New: true}}}
	got := map[string]int32{}
	for _, c := range s.resize() {
		got[c.set.Name] = c.to
	}
	if diff := cmp.Diff(map[string]int32{"a": 3, "b": 2, "new": 0}, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

// A set that is all there is, is refilled to the last machine, whatever the floor; empty old sets
// do not count.
func TestAPausedSetOnItsOwnIsRefilled(t *testing.T) {
	alone := has("new", true, 2, machines(3, 0, 0, 0))
	alone.PlannedFor = Size{5, 5}
	s := State{Replicas: 5, Limits: Limits{MaxUnavailable: 2}, Paused: true, HistoryLimit: 1, Sets: []Set{has("old", false, 1, nil), alone}}
	want := []Action{ScaleSet{Name: "new", From: 3, To: 5, Reason: Scaling}}
	if diff := cmp.Diff(want, s.whilePaused()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// A new set whose size somebody changed, or that was scaled for another one, is scaled; else it is
// rolled out.
func TestRecreateSaysWhyItScales(t *testing.T) {
	for _, tc := range []struct {
		name       string
		desired    int32
		plannedFor int32
		want       []Action
	}{
		{"scaled for another size", 3, 3, []Action{ScaleSet{Name: "new", From: 3, To: 5, Reason: Scaling}}},
		{"too large", 7, 5, []Action{ScaleSet{Name: "new", From: 7, To: 5, Reason: Scaling}}},
		{"not there yet", 3, 5, []Action{ScaleSet{Name: "new", From: 3, To: 5, Reason: Rolling}}},
		{"complete", 5, 5, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fresh := has("new", true, 1, machines(int(tc.desired), 0, 0, 0))
			fresh.PlannedFor = Size{tc.plannedFor, tc.plannedFor}
			s := State{Replicas: 5, Strategy: recreating, Sets: []Set{fresh}}
			if diff := cmp.Diff(tc.want, recreate(s)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}
