package healthcheck

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/health"
)

// world is a namespace of several sets whose Nodes fall silent and report again, under checks whose
// selectors overlap. It counts for itself how long each was seen to be silent.
type world struct {
	*rapid.T
	State
	// observed is for how long each silent Machine was observed to be silent.
	observed map[string]time.Duration
	sets     map[string]*set
	deleted  map[string]bool
	made     int
	now      time.Time
}

// set replaces its Machines within limits.
type set struct {
	health.State
	size int
}

var limits = health.Limits{
	MaxUnhealthy: intstr.FromString("33%"), Startup: 10 * time.Minute, Settle: 5 * time.Second,
	Pause: 10 * time.Second, LongestPause: time.Minute,
}

func drawWorld(t *rapid.T) *world {
	w := &world{T: t, observed: map[string]time.Duration{}, sets: map[string]*set{}, deleted: map[string]bool{}}
	w.now, w.Clock = start, Clock{Runs: true}
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		s := &set{size: rapid.IntRange(1, 12).Draw(t, "size")}
		s.Limits = limits
		s.Limits.MaxInFlight = rapid.IntRange(1, 3).Draw(t, "in flight")
		w.sets[fmt.Sprint(i)] = s
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "checks") {
		c := notReady(fmt.Sprint(i), time.Duration(rapid.IntRange(1, 10).Draw(t, "minutes"))*time.Minute)
		if pool := rapid.IntRange(-1, len(w.sets)-1).Draw(t, "selected"); pool >= 0 {
			c.Selector = labels.SelectorFromSet(labels.Set{"pool": fmt.Sprint(pool)})
		}
		switch rapid.IntRange(0, 2).Draw(t, "limit") {
		case 1:
			most := intstr.FromString(fmt.Sprint(rapid.SampledFrom([]int{5, 40, 100}).Draw(t, "percent"), "%"))
			c.MaxUnhealthy = &most
		case 2:
			least := rapid.IntRange(0, 3).Draw(t, "least")
			c.Range = &Range{least, least + rapid.IntRange(0, 4).Draw(t, "more")}
		}
		w.Checks = append(w.Checks, c)
	}
	w.refill()
	for i := range w.Machines {
		w.Machines[i].CameUp, w.Machines[i].HasNode = true, true
	}
	return w
}

// refill makes the Machines that sets lack.
func (w *world) refill() {
	for pool, s := range w.sets {
		have := 0
		for _, m := range w.Machines {
			have += oneIf(m.Labels["pool"] == pool)
		}
		for range s.size - have {
			w.made++
			w.Machines = append(w.Machines, Machine{
				UID: fmt.Sprint(w.made), Labels: labels.Set{"pool": pool}, HasSet: true, RunsSince: w.now,
			})
		}
	}
}

// passes lets time pass, in which a silent Node is observed while the clock runs.
func (w *world) passes() {
	d := time.Duration(rapid.IntRange(1, 240).Draw(w.T, "seconds")) * time.Second
	w.now = w.now.Add(d)
	if w.Clock.Runs {
		w.Clock.Reading += d
		for _, m := range w.Machines {
			if m.NotReady {
				w.observed[m.UID] += d
			}
		}
	}
	w.Clock.Runs = rapid.IntRange(0, 5).Draw(w.T, "outage") > 0
	if rapid.IntRange(0, 9).Draw(w.T, "restart") == 0 {
		// Another process has seen nothing yet.
		w.Memory, w.Clock.Reading = nil, 0
		clear(w.observed)
	}
}

// happens lets some Nodes fall silent or report again, and Machines come up.
func (w *world) happens() {
	share := rapid.SampledFrom([]int{0, 5, 40}).Draw(w.T, "percent")
	for i := range w.Machines {
		m := &w.Machines[i]
		switch {
		case !m.CameUp:
			m.CameUp, m.HasNode = rapid.Bool().Draw(w.T, "joins"), true
		case m.NotReady && rapid.IntRange(0, 3).Draw(w.T, "heals") == 0:
			m.NotReady, m.NodeConditions = false, nil
			delete(w.observed, m.UID)
		case !m.NotReady && rapid.IntRange(0, 99).Draw(w.T, "dies") < share:
			m.NotReady, m.NodeConditions = true, []Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Since: w.now}}
		}
	}
}

// check holds what was found to what was seen.
func (w *world) check(v Verdict) {
	for uid, f := range v.Findings {
		m := w.machine(uid)
		found, asks := false, false
		for i := range w.Checks {
			c := &w.Checks[i]
			if !w.Clock.Runs || !c.Selector.Matches(m.Labels) || w.observed[uid] < c.NodeConditions[0].Timeout.Duration {
				continue
			}
			found, asks = true, asks || w.allows(c)
		}
		isKept := m.Found && f.Remediation == clusterv1alpha1.ReasonWaitingForObservation
		if !m.NotReady || !found && !isKept || f.Replace() != asks {
			w.Fatalf("%s, silent for %s, is found %+v; found by a check: %t, and one within its limits: %t", uid, w.observed[uid], f, found, asks)
		}
	}
	for i := range w.Machines {
		m := &w.Machines[i]
		_, found := v.Findings[m.UID]
		if m.Found && m.NotReady && w.isSelected(m) && !found {
			w.Fatalf("%s was found, is silent still, and counts as well", m.UID)
		}
		m.Found = found
	}
}

func (w *world) isSelected(m *Machine) bool {
	return slices.ContainsFunc(w.Checks, func(c Check) bool { return c.Selector.Matches(m.Labels) })
}

// allows counts for itself whether a check is within its limits.
func (w *world) allows(c *Check) bool {
	expected, sick, sure := 0, 0, 0
	for _, m := range w.Machines {
		if !c.Selector.Matches(m.Labels) {
			continue
		}
		lasts := m.NotReady && w.observed[m.UID] >= c.NodeConditions[0].Timeout.Duration
		suspected := m.NotReady && (m.CameUp || m.Found)
		expected += oneIf(m.CameUp || lasts || suspected)
		sick += oneIf(suspected || lasts)
		sure += oneIf(lasts)
	}
	if c.Range != nil {
		return sure >= c.Range.Least && sick <= c.Range.Most
	}
	var percent int
	if c.MaxUnhealthy == nil {
		return true
	}
	_, _ = fmt.Sscanf(c.MaxUnhealthy.StrVal, "%d%%", &percent)
	return sick*100 <= percent*expected && sick <= expected*percent/100
}

func (w *world) machine(uid string) *Machine {
	for i := range w.Machines {
		if w.Machines[i].UID == uid {
			return &w.Machines[i]
		}
	}
	w.Fatalf("%s is found unhealthy and is not there", uid)
	return nil
}

// replace has the sets replace what was found, and holds them to what they may.
func (w *world) replace(v Verdict) {
	fleet := health.Fleet{}
	for _, m := range w.Machines {
		fleet.Machines += oneIf(m.CameUp)
		fleet.Unhealthy += oneIf(m.CameUp && m.NotReady)
	}
	for pool, s := range w.sets {
		s.Machines, s.Now, s.Fleet = nil, w.now, fleet
		coming := 0
		for _, m := range w.Machines {
			if m.Labels["pool"] != pool {
				continue
			}
			failed := v.Findings[m.UID].Replace()
			s.Machines = append(s.Machines, health.Machine{
				UID: m.UID, Failed: failed, FailedSince: w.now.Add(-time.Minute), Available: m.CameUp && !m.NotReady, Created: m.RunsSince,
			})
			coming += oneIf(!failed && (!m.CameUp || m.NotReady) && w.now.Sub(m.RunsSince) < limits.Startup)
		}
		decided := health.Decide(s.State)
		if n := len(decided.Replace); n > 0 && (n+coming > s.Limits.MaxInFlight || fleet.Meltdown(limits.MaxUnhealthy)) {
			w.Fatalf("%d more are replaced while %d come up, of %d at most; the fleet: %+v", n, coming, s.Limits.MaxInFlight, fleet)
		}
		for _, uid := range decided.Replace {
			if w.deleted[uid] || !v.Findings[uid].Replace() {
				w.Fatalf("%s is deleted, once more: %t, found as %+v", uid, w.deleted[uid], v.Findings[uid])
			}
			w.deleted[uid] = true
		}
	}
	w.Machines = slices.DeleteFunc(w.Machines, func(m Machine) bool { return w.deleted[m.UID] })
	w.refill()
}

// Whatever falls ill under checks of overlapping selectors: a Machine is found unhealthy only by a
// check whose timeout was observed, and replaced only when one of these is within its limits. Sets
// replace no more at once than they may, none twice, and none in a meltdown.
func TestLIFE11_ChecksReplaceWithinTheirLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.passes()
			w.happens()
			v := Decide(w.State)
			w.Memory = v.Memory
			w.check(v)
			w.replace(v)
		}
	})
}

// A Machine that stays ill is replaced in the end, where no limit forbids it: Decide says when to
// look again.
func TestLIFE11_TheDeadAreReplacedInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check := notReady("check", time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds"))*time.Second)
		check.StartupTimeout = check.NodeConditions[0].Timeout.Duration
		dead := rapid.SampledFrom([]Machine{silent("a", start), {UID: "a", RunsSince: start, HasSet: true}}).Draw(t, "dead")
		s := State{Checks: []Check{check}, Machines: []Machine{dead, running("b")}, Clock: Clock{Runs: true}}
		for looks := 0; ; looks++ {
			v := Decide(s)
			if v.Findings["a"].Replace() {
				return
			}
			if v.Again <= 0 || looks > 3 {
				t.Fatalf("after %s the next of %d looks is in %s", s.Clock.Reading, looks, v.Again)
			}
			s.Memory, s.Clock.Reading = v.Memory, s.Clock.Reading+v.Again
		}
	})
}
