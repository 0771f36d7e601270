package scale

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
)

// up is a healthy machine.
func up(name string, change ...func(*Machine)) Machine {
	m := Machine{Name: name, UID: name, HasNode: true, Available: true}
	for _, c := range change {
		c(&m)
	}
	return m
}

func deleting(m *Machine)  { m.Deleting = true }
func marked(m *Machine)    { m.Marked = true }
func failed(m *Machine)    { m.Failed, m.HasNode, m.Available = true, false, false }
func refused(m *Machine)   { failed(m); m.Refused = true }
func preserved(m *Machine) { m.Preserved = true }
func unadopted(m *Machine) { m.Unadopted, m.HasNode, m.Available = true, false, false }
func nodeless(m *Machine)  { m.HasNode, m.Available = false, false }
func down(m *Machine)      { m.Available = false }

func priority(p int32) func(*Machine) { return func(m *Machine) { m.Priority = p } }
func aged(hours int) func(*Machine) {
	return func(m *Machine) { m.Created = time.Unix(0, 0).Add(-time.Duration(hours) * time.Hour) }
}

func names(machines []Machine) []string {
	var all []string
	for _, m := range machines {
		all = append(all, m.Name)
	}
	return all
}

func TestVictimsGoInTheirOrder(t *testing.T) {
	all := []Machine{
		up("healthy"), up("important", priority(1)), up("down", down), up("nodeless", nodeless), up("unadopted", unadopted), up("failed", failed),
		up("marked", marked), up("marked and down", marked, down), up("deleting", deleting), up("cheap", priority(-1)),
		up("kept", preserved, priority(-2)), up("failed and kept", failed, preserved, priority(-2)),
	}
	ages := []Machine{up("young", aged(1)), up("old", aged(3)), up("middle", aged(2))}
	for _, tc := range []struct {
		name     string
		machines []Machine
		order    Order
		want     []string
	}{
		{
			"by what is known of them", all, Order{},
			[]string{"deleting", "marked and down", "marked", "unadopted", "failed", "failed and kept", "nodeless", "down", "cheap", "healthy", "important", "kept"},
		}, {
			"unavailable first", all, Order{UnavailableFirst: true},
			[]string{"deleting", "marked and down", "unadopted", "failed", "failed and kept", "nodeless", "down", "marked", "cheap", "healthy", "important", "kept"},
		},
		{"newest", ages, Order{Policy: clusterv1alpha1.DeletePolicyNewest}, []string{"young", "middle", "old"}},
		{"oldest", ages, Order{Policy: clusterv1alpha1.DeletePolicyOldest}, []string{"old", "middle", "young"}},
		{"random, of one set", ages, Order{Policy: clusterv1alpha1.DeletePolicyRandom, Seed: "set-a"}, []string{"young", "middle", "old"}},
		{"random, of another set", ages, Order{Policy: clusterv1alpha1.DeletePolicyRandom, Seed: "set-c"}, []string{"old", "young", "middle"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(Victims(tc.machines, tc.order))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecideKeepsAsManyMachinesAsDesired(t *testing.T) {
	for _, tc := range []struct {
		name, why string
		state     State
		create    int
		delete    []string
		held      bool
		reason    health.Reason
		again     time.Duration
	}{
		{name: "nothing there", why: "all are created", state: State{Desired: 3}, create: 3},
		{
			name: "as it should be", why: "nothing happens",
			state: State{Desired: 1, Machines: []Machine{up("a")}},
		}, {
			name: "one on its way out, nothing to spare", why: "its quota is not free: its replacement waits until it is gone",
			state: State{Desired: 2, Machines: []Machine{up("a"), up("b", deleting)}},
		}, {
			name: "one on its way out, one to spare", why: "its drain may wait for its replacement",
			state:  State{Desired: 2, Spare: 1, Machines: []Machine{up("a"), up("b", deleting)}},
			create: 1,
		}, {
			name: "one on its way out, much to spare", why: "it has one replacement, not more",
			state:  State{Desired: 2, Spare: 5, Machines: []Machine{up("a"), up("b", deleting)}},
			create: 1,
		}, {
			name: "one on its way out and replaced", why: "it is not replaced twice, nor the replacement taken for a surplus",
			state: State{Desired: 2, Spare: 5, Machines: []Machine{up("a"), up("b", deleting), up("c", nodeless)}},
		}, {
			name: "smaller while one is replaced", why: "a single one goes, not the one on its way out for another time",
			state:  State{Desired: 1, Spare: 1, Machines: []Machine{up("a"), up("b", deleting), up("c", nodeless)}},
			delete: []string{"c"},
		}, {
			name: "smaller and larger again while three drain", why: "as many are created as there are to spare",
			state:  State{Desired: 5, Spare: 1, Machines: []Machine{up("a"), up("b"), up("c", deleting), up("d", deleting), up("e", deleting)}},
			create: 1,
		}, {
			name: "more on their way out than there is room", why: "nothing is created before some of them are gone",
			state: State{Desired: 2, Spare: 1, Machines: []Machine{up("a"), up("b", deleting), up("c", deleting), up("d", deleting)}},
		}, {
			name: "a failed one goes already, one to spare", why: "it is replaced, and uses up the budget until then",
			state:  State{Desired: 2, Spare: 1, Machines: []Machine{up("a", deleting), up("b", failed)}, Repair: health.Limits{MaxInFlight: 1}},
			create: 1,
			reason: health.InFlight,
		}, {
			name: "one on its way out and replaced, another fails", why: "its deletion, however long it takes, stops no repair",
			state:  State{Desired: 2, Spare: 1, Machines: []Machine{up("a", deleting), up("b", failed), up("c")}, Repair: health.Limits{MaxInFlight: 1}},
			delete: []string{"b"},
		}, {
			name: "a refused one, another on its way out", why: "the replacement would be refused as well",
			state: State{Desired: 2, Spare: 1, Machines: []Machine{up("a", deleting), up("b", refused)}, Repair: health.Limits{MaxInFlight: 1}},
			held:  true,
		}, {
			name: "too many", why: "those go that come first",
			state:  State{Desired: 1, Machines: []Machine{up("a", aged(1)), up("b", aged(3)), up("c", aged(2))}, Order: Order{Policy: clusterv1alpha1.DeletePolicyOldest}},
			delete: []string{"b", "c"},
		}, {
			name: "too many, some on their way out", why: "these count as the first to go",
			state:  State{Desired: 1, Machines: []Machine{up("a"), up("b", deleting), up("c", marked)}},
			delete: []string{"c"},
		}, {
			name: "a failed one", why: "it is replaced",
			state:  State{Desired: 2, Machines: []Machine{up("a"), up("b", failed)}, Repair: health.Limits{MaxInFlight: 1}},
			delete: []string{"b"},
		}, {
			name: "several failed ones", why: "only so many are replaced at once",
			state:  State{Desired: 3, Machines: []Machine{up("a", failed), up("b", failed), up("c", failed)}, Repair: health.Limits{MaxInFlight: 2}},
			delete: []string{"a", "b"},
		}, {
			name: "one goes already", why: "it may have failed as well: its replacement uses up the budget",
			state:  State{Desired: 2, Machines: []Machine{up("a", deleting), up("b", failed)}, Repair: health.Limits{MaxInFlight: 1}},
			reason: health.InFlight,
		}, {
			name: "a failed one, and one is missing", why: "what is created comes up first",
			state:  State{Desired: 2, Machines: []Machine{up("a", failed)}, Repair: health.Limits{MaxInFlight: 1}},
			create: 1,
			reason: health.InFlight,
		}, {
			name: "a failed one that was just created", why: "so may its replacement fail: there is a pause",
			state: State{
				Desired: 2, Machines: []Machine{up("a", failed, aged(3)), up("b", failed, aged(1))}, Now: time.Unix(0, 0),
				Repair: health.Limits{MaxInFlight: 1, Pause: 3 * time.Hour},
			},
			reason: health.Pausing, again: 2 * time.Hour,
		}, {
			name: "a failed one after others in vain", why: "the pause is longer",
			state: State{
				Desired: 1, Machines: []Machine{up("a", failed, aged(3))}, Now: time.Unix(0, 0), Attempts: health.Attempts{Count: 1},
				Repair: health.Limits{MaxInFlight: 1, Pause: 2 * time.Hour, LongestPause: 10 * time.Hour},
			},
			reason: health.Pausing, again: time.Hour,
		}, {
			name: "a failed one, and so have many others", why: "there may be a common cause",
			state: State{
				Desired: 2, Machines: []Machine{up("a"), up("b", failed)}, Fleet: health.Fleet{Machines: 5, Unhealthy: 3},
				Repair: health.Limits{MaxInFlight: 1, MaxUnhealthy: intstr.FromString("33%")},
			},
			reason: health.TooManyUnhealthy,
		}, {
			name: "smaller while many others have failed", why: "nothing is replaced by that",
			state: State{
				Desired: 1, Machines: []Machine{up("a"), up("b", failed)}, Fleet: health.Fleet{Machines: 5, Unhealthy: 3},
				Repair: health.Limits{MaxInFlight: 1, MaxUnhealthy: intstr.FromString("33%")},
			},
			delete: []string{"b"},
		}, {
			name: "one missing while many others have failed", why: "nothing is replaced by that",
			state: State{
				Desired: 2, Machines: []Machine{up("a")}, Fleet: health.Fleet{Machines: 5, Unhealthy: 3},
				Repair: health.Limits{MaxInFlight: 1, MaxUnhealthy: intstr.FromString("33%")},
			},
			create: 1,
		}, {
			name: "a preserved one has failed", why: "it counts as one of the set's, and is not replaced",
			state: State{Desired: 2, Machines: []Machine{up("a"), up("b", failed, preserved)}, Repair: health.Limits{MaxInFlight: 1}},
		}, {
			name: "a preserved one and another have failed", why: "it uses up no budget",
			state:  State{Desired: 3, Machines: []Machine{up("a"), up("b", failed, preserved), up("c", failed)}, Repair: health.Limits{MaxInFlight: 1}},
			delete: []string{"c"},
		}, {
			name: "a replacement has failed as well", why: "those of before are left as they are",
			state:  State{Desired: 2, Machines: []Machine{up("a", failed, aged(3)), up("b", failed, aged(2))}, Repair: health.Limits{MaxInFlight: 1}, Now: time.Unix(0, 0)},
			delete: []string{"b"},
		}, {
			name: "a refused one", why: "the next would be refused as well",
			state: State{Desired: 3, Machines: []Machine{up("a", refused), up("b", failed)}, Repair: health.Limits{MaxInFlight: 1}},
			held:  true,
		}, {
			name: "a refused one too many", why: "getting smaller is always possible",
			state:  State{Desired: 1, Machines: []Machine{up("a", refused), up("b")}, Repair: health.Limits{MaxInFlight: 1}},
			delete: []string{"a"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.state.Order.Policy = clusterv1alpha1.DeletePolicyOldest
			got := Decide(tc.state)
			if got.Create != tc.create || got.Held != tc.held || got.Health.Reason != tc.reason || got.Health.Again != tc.again || !slices.Equal(names(got.Delete), tc.delete) {
				t.Errorf("%s: got %+v", tc.why, got)
			}
		})
	}
}

func TestBatchesDoubleWhileTheyGoWell(t *testing.T) {
	for _, tc := range []struct {
		left, width int
		want        []int
	}{
		{0, 32, nil},
		{1, 32, []int{1}},
		{5, 32, []int{1, 2, 2}},
		{1000, 8, []int{1, 2, 4, 8, 985}},
	} {
		var got []int
		for left, last := tc.left, 0; left > 0; left -= last {
			last = Batch(last, left, tc.width)
			got = append(got, last)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%d in batches of at most %d: got %v, want %v", tc.left, tc.width, got, tc.want)
		}
	}
}

var machineGen = rapid.Custom(func(t *rapid.T) Machine {
	bits := rapid.Uint8().Draw(t, "facts")
	return Machine{
		Deleting: bits&1 > 0, Marked: bits&2 > 0, Failed: bits&4 > 0, HasNode: bits&8 > 0, Available: bits&16 > 0,
		Refused: bits&0x24 == 0x24, Preserved: bits&64 > 0, Stopped: bits&128 > 0,
		Unadopted: rapid.Bool().Draw(t, "unadopted"),
		Priority:  rapid.Int32Range(-1, 1).Draw(t, "priority"),
		Created:   time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0),
	}
})

func drawState(t *rapid.T) State {
	machines := rapid.SliceOfN(machineGen, 1, 8).Draw(t, "machines")
	for i := range machines {
		machines[i].UID = string(rune('a' + i))
	}
	return State{
		Desired: rapid.IntRange(0, 10).Draw(t, "desired"), Machines: machines,
		Order: Order{
			UnavailableFirst: rapid.Bool().Draw(t, "unavailable first"), Seed: rapid.StringN(0, 2, 2).Draw(t, "seed"),
			Policy: rapid.SampledFrom([]clusterv1alpha1.DeletePolicy{"Random", "Newest", "Oldest"}).Draw(t, "policy"),
		},
		Repair: health.Limits{
			MaxInFlight: rapid.IntRange(0, 2).Draw(t, "replacements"),
			Startup:     time.Duration(rapid.IntRange(0, 3).Draw(t, "startup")) * time.Second,
			Pause:       time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * time.Second,
		},
		Now: time.Unix(3, 0),
	}
}

// The order is total and does not depend on the order in which machines are listed.
func TestOrderOfVictimsIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		want := Victims(s.Machines, s.Order)
		shuffled := rapid.Permutation(s.Machines).Draw(t, "permutation")
		if diff := cmp.Diff(want, Victims(shuffled, s.Order)); diff != "" {
			t.Fatal(diff)
		}
		for i, m := range want {
			for j, other := range want {
				if pair := Victims([]Machine{other, m}, s.Order); i < j && pair[0].UID != m.UID {
					t.Fatalf("%+v before %+v among all, not among two", m, other)
				}
			}
		}
	})
}

// Exactly as many are created or deleted as there are too few or too many; no machine is deleted
// twice; replacements stay within their budget.
func TestNeitherBoundIsExceededByADecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		d := Decide(s)
		if diff := cmp.Diff(d, Decide(State{
			Desired: s.Desired, Machines: rapid.Permutation(s.Machines).Draw(t, "permutation"),
			Order: s.Order, Repair: s.Repair, Now: s.Now,
		})); diff != "" {
			t.Fatal(diff)
		}
		going, coming := 0, max(s.Desired-s.Live(), 0)
		for _, m := range s.Machines {
			switch {
			case m.Deleting:
				going++
			case !m.Failed && !m.Available && !m.Stopped && s.Now.Sub(m.Created) < s.Repair.Startup:
				coming++
			}
		}
		surplus := len(s.Machines) - s.Desired
		for _, m := range d.Delete {
			if m.Deleting {
				t.Fatalf("%+v is being deleted already", m)
			}
			if surplus <= 0 && (!m.Failed || m.Preserved) {
				t.Fatalf("%+v is replaced", m)
			}
		}
		switch {
		case surplus > 0 && len(d.Delete) != max(surplus-going, 0):
			t.Fatalf("%d of %d go, %d deleted", going, len(s.Machines), len(d.Delete))
		case surplus <= 0 && len(d.Delete) > 0 && len(d.Delete)+coming > s.Repair.MaxInFlight:
			t.Fatalf("%d replaced while %d come up", len(d.Delete), coming)
		case d.Held && (d.Create > 0 || len(d.Delete) > 0):
			t.Fatalf("held: %+v", d)
		case !d.Held && d.Create != max(-surplus, 0):
			t.Fatalf("%d created, %d missing", d.Create, -surplus)
		}
	})
}

// Whatever there is to spare, as many are created as are missing among those that stay. If
// there is room for fewer, as many are created as there is room for. Whom a smaller set gives
// up does not depend on what there is to spare.
func TestSpareBoundsWhatIsCreated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		tight := Decide(s)
		s.Spare = rapid.IntRange(0, 4).Draw(t, "spare")
		d := Decide(s)
		live, present := s.Live(), len(s.Machines)
		missing, room := max(s.Desired-live, 0), max(s.Desired+s.Spare-present, 0)
		switch {
		case !d.Held && d.Create != min(missing, room):
			t.Fatalf("%d created, %d missing, room for %d", d.Create, missing, room)
		case d.Held && (d.Create > 0 || len(d.Delete) > 0):
			t.Fatalf("held: %+v", d)
		case live > s.Desired && !slices.Equal(names(d.Delete), names(tight.Delete)):
			t.Fatalf("%v go with %d to spare, %v without", names(d.Delete), s.Spare, names(tight.Delete))
		case live > s.Desired && len(d.Delete) != live-s.Desired:
			t.Fatalf("%d of %d that stay go, %d should stay", len(d.Delete), live, s.Desired)
		}
	})
}
