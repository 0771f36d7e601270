package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	backendv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/backend/v1alpha1"
	"github.com/millwright-dev/millwright/test/chaos/clouds"
)

var everything = Options{Window: 2500 * time.Millisecond, ControlPlane: true, Strays: true, Team: true, Claims: true, Outages: true, Hooks: true, Sickness: true, Volumes: true, Operations: clouds.Fake().Operations}

// A plan follows from the seed and the number alone: that is what makes a failing round replayable.
func TestAPlanIsItsSeedAndNumber(t *testing.T) {
	for number := range 50 {
		if first, again := Draw(42, number, everything).String(), Draw(42, number, everything).String(); first != again {
			t.Fatalf("drawn twice, round %d differs:\n%s%s", number, first, again)
		}
	}
	if Draw(42, 1, everything).String() == strings.Replace(Draw(43, 1, everything).String(), "seed 43", "seed 42", 1) {
		t.Error("another seed has the same plan")
	}
}

// A printed plan of one seed stays what it is: reports name seeds.
func TestPrintedPlanOfASeedStays(t *testing.T) {
	const want = `round 26 of seed 7
    300ms  break cloud: latency 60ms to 590ms of CreateNIC
    810ms  delete the Secret of team for 390ms
   1210ms  delete the Secret of team for 2630ms
   1900ms  kill kube-apiserver for 110ms
   2060ms  delete a machine with volumes, the 14., detached after 18660ms
   2150ms  kill driver for 1070ms
   2370ms  hold the deletion of a machine of oak, the 0., for 2650ms
`
	if got := Draw(7, 26, everything).String(); got != want {
		t.Errorf("it reads\n%s\nwant\n%s", got, want)
	}
}

// All rounds of a campaign stay what they are. Who changes what is drawn, on purpose, writes down
// what they are now.
func TestSeedsKeepTheirMeaning(t *testing.T) {
	for seed, want := range map[uint64]string{
		1:  "e4758747c213e072fc0e4274597b0dd279e0fb359fd030dac2ec21b6b12a6b14",
		7:  "ef86c3bf2063efd8f1598b761c77a34a3b314a67262801a92bfa45225c0488a0",
		42: "1e1e11a0e37ba67258a5072a619dc8805cb9aac12cfa7815dab924832d3a6ba3",
	} {
		var rounds strings.Builder
		for n := 1; n <= 300; n++ {
			rounds.WriteString(Draw(seed, n, everything).String())
		}
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(rounds.String()))); got != want {
			t.Errorf("the rounds of seed %d are others than before: %s, want %s", seed, got, want)
		}
	}
}

func TestEverythingIsDrawn(t *testing.T) {
	drawn := map[string]int{}
	for number := range 3000 {
		steps := Draw(1, number, everything).Steps
		if !slices.IsSortedFunc(steps, func(a, b Step) int { return int(a.At - b.At) }) {
			t.Fatalf("round %d is not in the order of time", number)
		}
		for _, s := range steps {
			drawn[string(s.Do)+" "+s.Target]++
			if s.At < 0 || s.At >= everything.Window {
				t.Errorf("%s at %s", s, s.At)
			}
			if s.Do == Apply && s.Shape.Surge+s.Shape.Unavailable == 0 {
				t.Errorf("%s cannot be rolled", s)
			}
			if f := s.Fault; f != nil {
				drawn["effect "+f.GetEffect().String()]++
				drawn["error "+f.GetError().GetName().String()]++
			}
			if s.Do == Change {
				drawn["change "+s.Change.String()]++
			}
		}
	}
	var want []string
	for _, process := range []string{Manager, Driver, APIServer, Etcd} {
		want = append(want, "kill "+process, "stop "+process)
	}
	for _, link := range []string{APIServer, Driver} {
		want = append(want, "cut "+link, "stall "+link)
	}
	for _, d := range Deployments() {
		for _, do := range []Verb{Apply, Scale, Delete, DeleteMachine, Mark, DeleteNode, Replace, Pause, Hold, Outage, Hook, Sicken} {
			want = append(want, string(do)+" "+d)
		}
	}
	for _, do := range []Verb{ApplyTeam, DeleteNamespace, DeleteManifest, DeleteSecret, DeleteBinding} {
		want = append(want, string(do)+" "+Team)
	}
	for n, effect := range backendv1alpha1.FaultEffect_name {
		// Of a cloud all of whose lists are behind nobody can tell what it has.
		if n > 0 && n != int32(backendv1alpha1.FaultEffect_FAULT_EFFECT_STALE) {
			want = append(want, "effect "+effect)
		}
	}
	for n, name := range backendv1alpha1.NamedError_name {
		if n > 0 {
			want = append(want, "error "+name)
		}
	}
	want = append(want, "delete a machine with volumes ", "make a machine with a foreign providerID ", "limit ", "leave a stray VM ", "change VM_CHANGE_DELETE", "change VM_CHANGE_STOP", "change VM_CHANGE_FAIL")
	for _, what := range want {
		if drawn[what] == 0 {
			t.Errorf("nothing ever draws %q", what)
		}
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	for number := range 1000 {
		for _, s := range Draw(1, number, Options{Window: time.Second}).Steps {
			if (s.Do == Kill || s.Do == Stop) && (s.Target == APIServer || s.Target == Etcd) ||
				s.Do == Stray || s.Do == Outage || s.Do == Hook || s.Do == Sicken || s.Do == Detach || s.Target == Team {
				t.Fatalf("round %d: %s", number, s)
			}
		}
	}
}
