package orphan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const ours = "cluster"

func policy() Policy {
	return Policy{ClusterUID: ours, Age: 30 * time.Minute, Most: 5, Delete: true}
}

// old is a VM of this cluster that is old enough.
func old(uid string) VM {
	return VM{UID: uid, ClusterUID: ours, ProviderIDs: []string{"sawmill:///" + uid}, Created: start.Add(-time.Hour)}
}

func TestSAFE1_WhoIsAnOrphanAndMayGo(t *testing.T) {
	later := start.Add(10 * time.Minute)
	cases := map[string]struct {
		reason string
		policy func(*Policy)
		vm     func(*VM)
		memory Memory
		named  []string
		want   Decision
	}{
		"twice": {
			reason: "absent in two scans and old enough",
			memory: Memory{"a": {First: start, Scans: 1}},
			want:   Decision{Delete: []VM{{}}, Memory: Memory{"a": {First: start, Scans: 2, Attempts: 1}}},
		},
		"once": {
			reason: "one scan proves nothing",
			want:   Decision{Held: []Held{{Why: SeenOnce}}, Memory: Memory{"a": {First: later, Scans: 1}}},
		},
		"named by uid":         {reason: "a Machine names it, though it did not a scan ago", memory: Memory{"a": {First: start, Scans: 1}}, named: []string{"a"}, want: Decision{Memory: Memory{}}},
		"named by providerID":  {reason: "a VM that any Machine names by providerID is no orphan", memory: Memory{"a": {First: start, Scans: 9}}, named: []string{"sawmill:///a"}, want: Decision{Memory: Memory{}}},
		"another's VM":         {reason: "foreign ones never", vm: func(vm *VM) { vm.ClusterUID = "other" }, memory: Memory{"a": {First: start, Scans: 9}}, want: Decision{Memory: Memory{}}},
		"nobody's VM":          {reason: "without a mark it is not known to be ours", vm: func(vm *VM) { vm.ClusterUID = "" }, want: Decision{Memory: Memory{}}},
		"without a uid":        {reason: "what has no key cannot be deleted by it", vm: func(vm *VM) { vm.UID = "" }, want: Decision{Memory: Memory{}}},
		"young":                {reason: "a create may still be under way", vm: func(vm *VM) { vm.Created = later.Add(-29 * time.Minute) }, memory: Memory{"a": {First: start, Scans: 1}}, want: Decision{Held: []Held{{Why: TooYoung}}, Memory: Memory{"a": {First: start, Scans: 2}}}},
		"from the future":      {reason: "the cloud's clock is ahead", vm: func(vm *VM) { vm.Created = later.Add(time.Hour) }, memory: Memory{"a": {First: start, Scans: 1}}, want: Decision{Held: []Held{{Why: TooYoung}}, Memory: Memory{"a": {First: start, Scans: 2}}}},
		"of unknown age":       {reason: "its age counts from when it was first seen", vm: func(vm *VM) { vm.Created = time.Time{} }, memory: Memory{"a": {First: start, Scans: 1}}, want: Decision{Held: []Held{{Why: TooYoung}}, Memory: Memory{"a": {First: start, Scans: 2}}}},
		"of unknown age, seen": {reason: "it has been here for longer than the age", vm: func(vm *VM) { vm.Created = time.Time{} }, memory: Memory{"a": {First: later.Add(-30 * time.Minute), Scans: 3}}, want: Decision{Delete: []VM{{}}, Memory: Memory{"a": {First: later.Add(-30 * time.Minute), Scans: 4, Attempts: 1}}}},
		"busy":                 {reason: "a create of its may be under way", vm: func(vm *VM) { vm.Busy = true }, memory: Memory{"a": {First: start, Scans: 1}}, want: Decision{Held: []Held{{Why: Busy}}, Memory: Memory{"a": {First: start, Scans: 2}}}},
		"reported only":        {reason: "the operator deletes himself", policy: func(p *Policy) { p.Delete = false }, memory: Memory{"a": {First: start, Scans: 1}}, want: Decision{Held: []Held{{Why: ReportOnly}}, Memory: Memory{"a": {First: start, Scans: 2}}}},
		"none allowed":         {reason: "others have used up what a scan may delete", policy: func(p *Policy) { p.Most = 0 }, memory: Memory{"a": {First: start, Scans: 1}}, want: Decision{Held: []Held{{Why: TooMany}}, Memory: Memory{"a": {First: start, Scans: 2}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, vm := policy(), old("a")
			if tc.policy != nil {
				tc.policy(&p)
			}
			if tc.vm != nil {
				tc.vm(&vm)
			}
			for i := range tc.want.Delete {
				tc.want.Delete[i] = vm
			}
			for i := range tc.want.Held {
				tc.want.Held[i].VM = vm
			}
			named := Names{}
			named.Add(append(tc.named, "")...)
			got := Decide(p, tc.memory, Scan{Now: later, VMs: []VM{vm}, Named: named})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("because %s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOnlyOrphansWhoseDeletionWasTriedAreToldToBeGone(t *testing.T) {
	memory := Memory{
		"tried": {First: start, Scans: 2, Attempts: 1}, "never tried": {First: start, Scans: 1},
		"named by now": {First: start, Scans: 2, Attempts: 1}, "still there": {First: start, Scans: 2, Attempts: 1},
	}
	d := Decide(policy(), memory, Scan{
		Now: start.Add(time.Hour), VMs: []VM{old("named by now"), old("still there")}, Named: Names{"named by now": {}},
	})
	if diff := cmp.Diff([]string{"tried"}, d.Gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

func TestSAFE1_FewGoAtATimeAndNoneHoldsUpTheOthers(t *testing.T) {
	p := policy()
	p.Most = 2
	vms := []VM{old("e"), old("d"), old("c"), old("b"), old("a")}
	memory := Memory{"a": {First: start, Scans: 3, Attempts: 2}, "e": {First: start.Add(-time.Hour), Scans: 4}}
	for _, uid := range []string{"b", "c", "d"} {
		memory[uid] = Sighting{First: start, Scans: 1}
	}
	got := Decide(p, memory, Scan{Now: start.Add(time.Minute), VMs: vms})
	if diff := cmp.Diff([]VM{old("e"), old("b")}, got.Delete); diff != "" {
		t.Errorf("not the one known longest and the first of the others go (-want +got):\n%s", diff)
	}
	if last := got.Held[len(got.Held)-1]; len(got.Held) != 3 || last.VM.UID != "a" {
		t.Errorf("held are %v, want the one that was tried before last", got.Held)
	}
	// What was tried and is not listed any more is gone; what a Machine names now is not.
	named := Names{}
	named.Add("e")
	got = Decide(p, got.Memory, Scan{Now: start.Add(2 * time.Minute), VMs: []VM{old("e"), old("c"), old("d")}, Named: named})
	if diff := cmp.Diff([]string{"a", "b"}, got.Gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

// account is a generated account that is scanned again and again while Machines come and go.
type account struct {
	vms   map[string]VM
	named Names
}

func (a *account) list() []VM {
	var all []VM
	for _, vm := range a.vms {
		all = append(all, vm)
	}
	return all
}

func (a *account) step(t *rapid.T, now time.Time) {
	uid := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "uid"))
	switch rapid.IntRange(0, 4).Draw(t, "event") {
	case 0:
		a.vms[uid] = VM{UID: uid, ClusterUID: ours, Created: now}
	case 1:
		a.vms[uid] = VM{UID: uid, ClusterUID: "other", Created: now.Add(-time.Hour)}
	case 2:
		a.named.Add(uid)
	case 3:
		delete(a.named, uid)
	case 4:
		delete(a.vms, uid)
	}
}

// Whatever happens between scans, only what has been nobody's for two scans goes, old enough and
// few at a time.
func TestSAFE1_NothingElseEverGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy()
		p.Most = rapid.IntRange(0, 3).Draw(t, "most")
		a := &account{vms: map[string]VM{}, named: Names{}}
		var memory Memory
		nobodys := map[string]int{}
		now := start
		for range rapid.IntRange(1, 30).Draw(t, "scans") {
			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute)
			for range rapid.IntRange(0, 4).Draw(t, "events") {
				a.step(t, now)
			}
			d := Decide(p, memory, Scan{Now: now, VMs: a.list(), Named: a.named})
			memory = d.Memory
			for uid := range nobodys {
				if _, there := a.vms[uid]; !there {
					delete(nobodys, uid)
				}
			}
			for uid, vm := range a.vms {
				nobodys[uid]++
				if _, named := a.named[uid]; named || vm.ClusterUID != ours {
					delete(nobodys, uid)
				}
			}
			if len(d.Delete) > p.Most {
				t.Fatalf("%d go at once, %d may", len(d.Delete), p.Most)
			}
			for _, vm := range d.Delete {
				if nobodys[vm.UID] < 2 || now.Sub(vm.Created) < p.Age {
					t.Fatalf("%+v goes after %d scans at %s", vm, nobodys[vm.UID], now)
				}
			}
			if len(d.Delete)+len(d.Held) != len(nobodys) {
				t.Fatalf("%d orphans, of whom %v go and %v stay", len(nobodys), d.Delete, d.Held)
			}
			for _, vm := range d.Delete {
				if rapid.Bool().Draw(t, "deleted") {
					delete(a.vms, vm.UID)
				}
			}
		}
	})
}

// The order in which a list shows its VMs decides nothing.
func TestSAFE1_OrderDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, memory := policy(), Memory{}
		p.Most = rapid.IntRange(0, 4).Draw(t, "most")
		var vms []VM
		for i := range rapid.IntRange(0, 8).Draw(t, "vms") {
			vm := old(fmt.Sprint(i))
			vms = append(vms, vm)
			memory[vm.UID] = Sighting{First: start, Scans: rapid.IntRange(0, 2).Draw(t, "scans")}
		}
		one := Decide(p, memory, Scan{Now: start, VMs: vms})
		slices.Reverse(vms)
		if diff := cmp.Diff(one, Decide(p, memory, Scan{Now: start, VMs: vms})); diff != "" {
			t.Fatal(diff)
		}
	})
}
