package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestAmountsAreResolvedAsForDeploymentsOfApps(t *testing.T) {
	for _, tc := range []struct {
		name               string
		replicas           int32
		surge, unavailable *intstr.IntOrString
		want               Limits
	}{
		{"numbers stay", 10, number(3), number(2), Limits{3, 2}},
		{"surge is rounded up", 10, percent(25), number(0), Limits{3, 0}},
		{"unavailable is rounded down", 10, number(0), percent(25), Limits{0, 2}},
		{"even percentages are exact", 4, percent(50), percent(50), Limits{2, 2}},
		{"both come to nothing: one may be unavailable", 3, percent(0), percent(25), Limits{0, 1}},
		{"both are nothing", 3, number(0), number(0), Limits{0, 1}},
		{"no more can be unavailable than there are", 3, number(1), number(10), Limits{1, 3}},
		{"no replicas", 0, percent(25), percent(25), Limits{0, 0}},
		{"negative numbers count as 0", 3, number(-1), percent(-50), Limits{0, 1}},
		{"what is left out has its default", 3, nil, nil, Limits{1, 0}},
		{"so has what nobody can read", 3, new(intstr.FromString("many")), new(intstr.FromString("")), Limits{1, 0}},
		{"large numbers do not overflow", 100_000, percent(9999), percent(100), Limits{9_999_000, 100_000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Resolve(tc.replicas, tc.surge, tc.unavailable)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func machines(available, unavailable, markedAvailable, markedUnavailable int) []Machine {
	var all []Machine
	for kind, n := range map[Machine]int{
		{Available: true}: available, {}: unavailable,
		{Available: true, Marked: true}: markedAvailable, {Marked: true}: markedUnavailable,
	} {
		for range n {
			all = append(all, kind)
		}
	}
	return all
}

// has returns an observed set that has all machines it should have.
func has(name string, fresh bool, revision int64, m []Machine) Set {
	return Set{
		Name: name, New: fresh, Revision: revision, Desired: int32(len(m)), Present: int32(len(m)), Observed: true,
		Machines: m, PlannedFor: Size{10, 11},
	}
}

func TestPlanTakesTheNextStep(t *testing.T) {
	up := func(n int) []Machine { return machines(n, 0, 0, 0) }
	limits := Limits{MaxSurge: 1}
	unborn := has("new", true, 1, up(3))
	unborn.Desired = 5
	replaced := has("old", false, 1, up(3))
	replaced.Desired, replaced.Present = 4, 4
	emptied := has("old", false, 1, nil)
	emptied.Present = 2
	grown := has("old", false, 1, up(8))
	grown.PlannedFor = Size{20, 21}
	foreign := has("new", true, 1, up(3))
	foreign.PlannedFor = Size{}
	planned := func(s Set, replicas, most int32) Set { s.PlannedFor = Size{replicas, most}; return s }
	leaving := has("new", true, 2, up(10))
	leaving.Present = 11

	for _, tc := range []struct {
		name, why string
		state     State
		want      []Action
		wait      Wait
	}{
		{
			name: "first set", why: "without old machines it is made in full size",
			state: State{Replicas: 3, Limits: limits},
			want:  []Action{CreateSet{3}},
		}, {
			name: "scaling up without a rollout", why: "one write is enough",
			state: State{Replicas: 20, Limits: limits, Sets: []Set{has("new", true, 1, up(10))}},
			want:  []Action{ScaleSet{"new", 10, 20, Scaling}},
		}, {
			name: "scaling down without a rollout", why: "the size alone decides, the set chooses the victims",
			state: State{Replicas: 2, Limits: limits, Sets: []Set{has("new", true, 1, up(10))}},
			want:  []Action{ScaleSet{"new", 10, 2, Scaling}},
		}, {
			name: "scaling up while old machines are still on their way out", why: "their quota is not free yet",
			state: State{Replicas: 11, Limits: limits, Sets: []Set{emptied, has("new", true, 2, up(9))}},
			want:  []Action{ScaleSet{"new", 9, 10, Scaling}},
		}, {
			name: "rolling back", why: "sets that are newer than the one that is gone back to are old ones, too",
			state: State{Replicas: 10, Limits: limits, Sets: []Set{
				has("old", false, 1, up(3)), has("new", true, 2, up(4)), has("newer", false, 3, up(4)),
			}},
			want: []Action{ScaleSet{"old", 3, 2, Rolling}},
		}, {
			name: "rolling back, no older one left", why: "what is newer goes",
			state: State{Replicas: 10, Limits: limits, Sets: []Set{has("new", true, 2, up(7)), has("newer", false, 3, up(4))}},
			want:  []Action{ScaleSet{"newer", 4, 3, Rolling}},
		}, {
			name: "scaling down in a rollout", why: "marked machines go first, also of the set that is below its share",
			state: State{Replicas: 4, Limits: limits, Sets: []Set{
				has("old", false, 1, up(7)), has("new", true, 2, machines(1, 0, 3, 0)),
			}},
			want: []Action{ScaleSet{"old", 7, 4, Scaling}, ScaleSet{"new", 4, 1, Scaling}},
		}, {
			name: "scaling down in a rollout, nothing marked", why: "then unavailable ones go, then each set gives its part",
			state: State{Replicas: 4, Limits: limits, Sets: []Set{
				has("old", false, 1, up(6)), has("new", true, 2, machines(3, 2, 0, 0)),
			}},
			want: []Action{ScaleSet{"old", 6, 3, Scaling}, ScaleSet{"new", 5, 2, Scaling}},
		}, {
			name: "scaling down in a rollout, numbers without machines", why: "they cost nothing, but an old one that the floor needs stays",
			state: State{Replicas: 7, Limits: limits, Sets: []Set{unborn, replaced}},
			want:  []Action{ScaleSet{"new", 5, 4, Scaling}, ScaleSet{"old", 4, 4, Scaling}},
		}, {
			name: "scaling down in a rollout, all marked", why: "the new set is never larger than the deployment",
			state: State{Replicas: 3, Limits: Limits{MaxSurge: 4}, Sets: []Set{
				has("old", false, 1, machines(0, 0, 3, 0)), has("new", true, 2, up(5)),
			}},
			want: []Action{ScaleSet{"old", 3, 3, Scaling}, ScaleSet{"new", 5, 3, Scaling}},
		}, {
			name: "growing applied in part", why: "the set that has its share gets nothing twice",
			state: State{Replicas: 20, Limits: limits, Sets: []Set{grown, has("new", true, 2, up(4))}},
			want:  []Action{ScaleSet{"new", 4, 8, Scaling}},
		}, {
			name: "growing by more than the surge grows", why: "the new set gets no more than the deployment",
			state: State{Replicas: 5, Limits: Limits{MaxSurge: 5}, Sets: []Set{
				planned(has("old", false, 1, up(1)), 4, 4), planned(has("new", true, 2, up(3)), 4, 4),
			}},
			want: []Action{ScaleSet{"old", 1, 3, Scaling}, ScaleSet{"new", 3, 5, Scaling}},
		}, {
			name: "growing beside a new set that is complete", why: "no old machine is needed any more",
			state: State{Replicas: 4, Limits: Limits{MaxSurge: 2}, Sets: []Set{
				planned(has("old", false, 1, up(1)), 1, 2), planned(has("new", true, 2, up(4)), 1, 2),
			}},
			want: []Action{ScaleSet{"old", 1, 1, Scaling}, ScaleSet{"new", 4, 4, Scaling}},
		}, {
			name: "growing beside an empty old set", why: "it is not a rollout, and one write is enough",
			state: State{Replicas: 6, Limits: limits, Sets: []Set{has("old", false, 1, nil), planned(has("new", true, 2, up(3)), 3, 4)}},
			want:  []Action{ScaleSet{"new", 3, 6, Scaling}},
		}, {
			name: "surge lowered in a rollout", why: "the floor needs the old machines until the new ones serve",
			state: State{Replicas: 4, Limits: limits, Sets: []Set{
				planned(has("old", false, 1, up(2)), 4, 6), planned(has("new", true, 2, machines(0, 4, 0, 0)), 4, 6),
			}},
			wait: Wait{Availability, "new", 4},
		}, {
			name: "a set of unknown history", why: "its size is noted",
			state: State{Replicas: 3, Limits: limits, Sets: []Set{foreign}},
			want:  []Action{ScaleSet{"new", 3, 3, Scaling}},
		}, {
			name: "a set larger than its deployment", why: "somebody scaled it by hand",
			state: State{Replicas: 10, Limits: limits, Sets: []Set{has("new", true, 1, up(12))}},
			want:  []Action{ScaleSet{"new", 12, 10, Scaling}},
		}, {
			name: "waiting for machines to be made", why: "the condition says so",
			state: State{Replicas: 5, Limits: limits, Sets: []Set{func() Set { s := unborn; s.PlannedFor = Size{5, 6}; return s }()}},
			wait:  Wait{Creation, "new", 2},
		}, {
			name: "waiting for old machines to go", why: "the condition says so",
			state: State{Replicas: 10, Limits: limits, HistoryLimit: 1, Sets: []Set{emptied, has("new", true, 2, up(10))}},
			wait:  Wait{Deletion, "old", 2},
		}, {
			name: "history", why: "the oldest go, once the rollout is complete",
			state: State{Replicas: 10, Limits: limits, HistoryLimit: 1, Sets: []Set{
				has("d", true, 9, up(10)), has("a", false, 3, nil), has("b", false, 2, nil), has("c", false, 4, nil),
			}},
			want: []Action{DeleteSet{"b"}, DeleteSet{"a"}},
		}, {
			name: "history with a newer template", why: "who has gone back drops what was newer as well",
			state: State{Replicas: 10, Limits: limits, Sets: []Set{has("a", false, 1, nil), has("b", true, 2, up(10)), has("c", false, 3, nil)}},
			want:  []Action{DeleteSet{"a"}, DeleteSet{"c"}},
		}, {
			name: "history while a machine is on its way out", why: "the rollout is not complete before it is gone",
			state: State{Replicas: 10, Limits: limits, Sets: []Set{has("old", false, 1, nil), leaving}},
			wait:  Wait{Deletion, "new", 1},
		}, {
			name: "paused before anything was made", why: "then nothing is",
			state: State{Replicas: 3, Limits: limits, Paused: true},
			wait:  Wait{For: Resumption},
		}, {
			name: "paused with an unseen template", why: "the newest set that has machines is what grows",
			state: State{Replicas: 12, Limits: limits, Paused: true, Sets: []Set{
				has("c", false, 3, nil), has("a", false, 1, nil), has("b", false, 2, up(10)),
			}},
			want: []Action{ScaleSet{"b", 10, 12, Scaling}},
		}, {
			name: "paused before the new set had machines", why: "the template that was not rolled out is not what grows",
			state: State{Replicas: 12, Limits: limits, Paused: true, Sets: []Set{has("old", false, 1, up(10)), has("new", true, 2, nil)}},
			want:  []Action{ScaleSet{"old", 10, 12, Scaling}},
		}, {
			name: "paused without machines", why: "the current template grows, though another set is newer",
			state: State{Replicas: 2, Limits: limits, Paused: true, Sets: []Set{has("new", true, 1, nil), has("old", false, 2, nil)}},
			want:  []Action{ScaleSet{"new", 0, 2, Scaling}},
		}, {
			name: "paused with too little room", why: "what is missing from the floor is made when others are gone",
			state: State{Replicas: 10, Limits: Limits{MaxUnavailable: 2}, Paused: true, Sets: []Set{has("old", false, 1, up(4)), has("new", true, 2, up(3))}},
			want:  []Action{ScaleSet{"new", 3, 4, Scaling}},
		}, {
			name: "paused with an unseen template and too little", why: "the newest set that has machines makes what is missing",
			state: State{Replicas: 10, Limits: Limits{MaxUnavailable: 2}, Paused: true, Sets: []Set{has("a", false, 1, up(3)), has("b", false, 2, up(3))}},
			want:  []Action{ScaleSet{"b", 3, 5, Scaling}},
		}, {
			name: "paused with enough", why: "a rollout may have left that behind",
			state: State{Replicas: 10, Limits: Limits{MaxUnavailable: 2}, Paused: true, Sets: []Set{has("old", false, 1, up(4)), has("new", true, 2, up(4))}},
			wait:  Wait{For: Resumption},
		}, {
			name: "paused and complete", why: "history is dropped all the same",
			state: State{Replicas: 10, Limits: limits, Paused: true, Sets: []Set{has("old", false, 1, nil), has("new", true, 2, up(10))}},
			want:  []Action{DeleteSet{"old"}},
		}, {
			name: "paused and unseen", why: "a set that is not settled is waited for first",
			state: State{Replicas: 10, Limits: limits, Paused: true, Sets: []Set{{Name: "new", New: true}}},
			wait:  Wait{For: Observation, Set: "new"},
		}, {
			name: "recreating with machines of both", why: "the strategy was another one: the new set keeps what it has and makes none",
			state: State{Replicas: 10, Strategy: recreating, Sets: []Set{has("old", false, 1, up(4)), has("new", true, 2, up(3))}},
			want:  []Action{ScaleSet{"old", 4, 0, Rolling}},
		}, {
			name: "recreating while the last old machine goes", why: "it counts until it is gone",
			state: State{Replicas: 10, Strategy: recreating, Sets: []Set{emptied, has("new", true, 2, nil)}},
			wait:  Wait{Deletion, "old", 2},
		}, {
			name: "recreating when they are gone", why: "all at once",
			state: State{Replicas: 10, Strategy: recreating, Sets: []Set{has("old", false, 1, nil), has("new", true, 2, nil)}},
			want:  []Action{ScaleSet{"new", 0, 10, Rolling}},
		}, {
			name: "recreated and shrunk", why: "scaling as usual",
			state: State{Replicas: 4, Strategy: recreating, Sets: []Set{has("new", true, 2, up(10))}},
			want:  []Action{ScaleSet{"new", 10, 4, Scaling}},
		}, {
			name: "on delete, nobody deletes", why: "the condition says that somebody has to",
			state: State{Replicas: 10, Strategy: onDelete, Sets: []Set{has("old", false, 1, up(7)), has("new", true, 2, up(3))}},
			wait:  Wait{Request, "old", 7},
		}, {
			name: "on delete, one is on its way out", why: "the old set does not replace it, the new one waits until it is gone",
			state: State{Replicas: 10, Strategy: onDelete, Sets: []Set{
				func() Set { s := has("old", false, 1, up(6)); s.Desired, s.Present = 7, 7; return s }(), has("new", true, 2, up(3)),
			}},
			want: []Action{ScaleSet{"old", 7, 6, Rolling}},
		}, {
			name: "on delete, growing", why: "old sets note it, and stay as they are",
			state: State{Replicas: 20, Strategy: onDelete, Sets: []Set{has("old", false, 1, up(7)), has("new", true, 2, up(3))}},
			want:  []Action{ScaleSet{"old", 7, 7, Scaling}, ScaleSet{"new", 3, 5, Scaling}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.wait.For == "" {
				tc.wait.For = Nothing
			}
			got, wait := Plan(tc.state)
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.wait, wait); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}
