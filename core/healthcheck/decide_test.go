package healthcheck

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

const timeout = 5 * time.Minute

// decide decides when the Machines have been observed for so long.
func decide(after time.Duration, machines []Machine, checks ...Check) Verdict {
	before := Decide(State{Checks: checks, Machines: machines, Clock: Clock{Runs: true}})
	return Decide(State{Checks: checks, Machines: machines, Clock: Clock{Reading: after, Runs: true}, Memory: before.Memory})
}

func TestMachineIsUnhealthyWhenAConditionLasts(t *testing.T) {
	disk := notReady("disk", timeout)
	disk.MachineConditions = []clusterv1alpha1.UnhealthyCondition{bad("InstanceReady", metav1.ConditionFalse, timeout)}
	disk.StartupTimeout = timeout
	with := func(m Machine, change func(*Machine)) Machine {
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		machine     Machine
		after       time.Duration
		reason      string
		remediation string
	}{
		"it works":                {machine: running("a"), after: time.Hour},
		"its Node is silent":      {machine: silent("a", start), after: timeout - time.Second},
		"its Node is silent long": {silent("a", start), timeout, clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonWaitingForRemediation},
		"the Machine says so": {with(running("a"), func(m *Machine) {
			m.MachineConditions = []Condition{{Type: "InstanceReady", Status: metav1.ConditionFalse, Since: start}}
		}), timeout, clusterv1alpha1.ReasonUnhealthyMachine, clusterv1alpha1.ReasonWaitingForRemediation},
		"it does not join in time": {Machine{UID: "a", RunsSince: start, HasSet: true}, timeout,
			clusterv1alpha1.ReasonNodeStartupTimeout, clusterv1alpha1.ReasonWaitingForRemediation},
		"its VM does not run yet": {machine: Machine{UID: "a", HasSet: true}, after: time.Hour},
		"several say so": {with(silent("a", start), func(m *Machine) {
			m.MachineConditions = []Condition{{Type: "InstanceReady", Status: metav1.ConditionFalse, Since: start}}
		}), timeout, clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonWaitingForRemediation},
		"its Node says something else": {machine: with(running("a"), func(m *Machine) {
			m.NodeConditions = []Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "DiskPressure", Status: metav1.ConditionUnknown}}
		}), after: time.Hour},
		"somebody asks for it": {with(running("a"), func(m *Machine) { m.Requested = true }), 0,
			clusterv1alpha1.ReasonRemediationRequested, clusterv1alpha1.ReasonWaitingForRemediation},
		"somebody keeps it": {with(silent("a", start), func(m *Machine) { m.KeptBy = "keep" }), timeout,
			clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonRemediationSkipped},
		"it is no set's": {with(silent("a", start), func(m *Machine) { m.HasSet = false }), timeout,
			clusterv1alpha1.ReasonUnhealthyNode, clusterv1alpha1.ReasonNoMachineSet},
		"it is on its way out":            {machine: with(silent("a", start), func(m *Machine) { m.Ignored = true }), after: timeout},
		"it has failed":                   {machine: with(silent("a", start), func(m *Machine) { m.Failed = true }), after: timeout},
		"nobody knows of its VM just now": {machine: with(silent("a", start), func(m *Machine) { m.Blind = true }), after: timeout},
	} {
		t.Run(name, func(t *testing.T) {
			v := decide(c.after, []Machine{c.machine}, disk)
			got := v.Findings["a"]
			if got.Reason != c.reason || got.Remediation != c.remediation || v.Checks[0].Unhealthy["a"] != (c.reason != "") {
				t.Errorf("found %+v", got)
			}
			if (got.Message == "") != (c.reason == "") || (got.RemediationMessage == "") != (c.reason == "") {
				t.Errorf("it is told as %q, %q", got.Message, got.RemediationMessage)
			}
		})
	}
}

func TestTimeCountsWhileItIsObserved(t *testing.T) {
	s := State{
		Checks: []Check{notReady("check", timeout)}, Machines: []Machine{silent("a", start)},
		Clock: Clock{Reading: time.Hour, Runs: true},
	}
	look := func(observed time.Duration, runs, want bool) {
		t.Helper()
		s.Clock = Clock{Reading: s.Clock.Reading + observed, Runs: runs}
		v := Decide(s)
		if got := v.Findings["a"].Replace(); got != want {
			t.Errorf("it is to be replaced: %t, want %t", got, want)
		}
		if !want && v.Again <= 0 {
			t.Error("nobody will look again")
		}
		s.Memory = v.Memory
	}
	look(0, true, false) // What was before this process looked does not count.
	look(0, false, false)
	look(time.Minute, true, false)
	look(4*time.Minute, false, false)
	look(0, true, true)
	s.Machines = []Machine{silent("a", start.Add(time.Hour))}
	look(0, true, false) // It was well meanwhile.
	s.Machines = []Machine{running("a")}
	if v := Decide(s); len(v.Memory) != 0 {
		t.Errorf("of a Machine that is well is remembered: %v", v.Memory)
	}
}

// What was found before this process began is not replaced on that process's word, nor shown as
// well.
func TestWhatWasFoundBeforeIsObservedOnceMore(t *testing.T) {
	found := silent("a", start)
	found.Found = true
	for name, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"it is observed for the first time": {func(*State) {}, clusterv1alpha1.ReasonWaitingForObservation},
		"nobody can tell now":               {func(s *State) { s.Machines[0].Blind = true }, clusterv1alpha1.ReasonWaitingForObservation},
		"nothing is observed":               {func(s *State) { s.Clock.Runs = false }, clusterv1alpha1.ReasonWaitingForObservation},
		"it is well":                        {func(s *State) { s.Machines[0] = running("a") }, ""},
		"somebody asks for it":              {func(s *State) { s.Machines[0].Requested = true }, clusterv1alpha1.ReasonWaitingForRemediation},
		"another condition has lasted": {func(s *State) {
			s.Checks[0].MachineConditions = []clusterv1alpha1.UnhealthyCondition{bad("Ready", metav1.ConditionFalse, 0)}
			s.Machines[0].MachineConditions = []Condition{{Type: "Ready", Status: metav1.ConditionFalse}}
		}, clusterv1alpha1.ReasonWaitingForRemediation},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{Checks: []Check{notReady("check", timeout)}, Machines: []Machine{found}, Clock: Clock{Reading: time.Hour, Runs: true}}
			c.change(&s)
			v := Decide(s)
			if f := v.Findings["a"]; f.Remediation != c.want || v.Checks[0].Unhealthy["a"] != f.Replace() {
				t.Errorf("found %+v, by the check %+v", f, v.Checks[0])
			}
		})
	}
}

func TestCheckBeyondItsLimitsReplacesNobody(t *testing.T) {
	four := []Machine{silent("a", start), silent("b", start), running("c"), running("d"), {UID: "starts", HasSet: true}}
	// One of the two that are silent has only just become so.
	later := slices.Clone(four)
	later[1] = silent("b", start.Add(time.Second))
	for name, c := range map[string]struct {
		most  *intstr.IntOrString
		bound *Range
		want  string
	}{
		"no limit":                      {},
		"half of them may be":           {most: new(intstr.FromString("50%"))},
		"less than half may be":         {most: new(intstr.FromString("49%")), want: clusterv1alpha1.ReasonTooManyUnhealthy},
		"none may be":                   {most: new(intstr.FromInt32(0)), want: clusterv1alpha1.ReasonTooManyUnhealthy},
		"nobody can read how many":      {most: new(intstr.FromString("some")), want: clusterv1alpha1.ReasonTooManyUnhealthy},
		"as many as the range has":      {bound: &Range{1, 2}},
		"one is suspected only":         {bound: &Range{2, 4}, want: clusterv1alpha1.ReasonTooFewUnhealthy},
		"more than the range has":       {bound: &Range{1, 1}, want: clusterv1alpha1.ReasonTooManyUnhealthy},
		"fewer than the range has":      {bound: &Range{3, 4}, want: clusterv1alpha1.ReasonTooFewUnhealthy},
		"the range goes before a limit": {most: new(intstr.FromInt32(0)), bound: &Range{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			check := notReady("check", timeout)
			check.MaxUnhealthy, check.Range = c.most, c.bound
			before := Decide(State{Checks: []Check{check}, Machines: four, Clock: Clock{Runs: true}})
			v := Decide(State{Checks: []Check{check}, Machines: later, Clock: Clock{Reading: timeout, Runs: true}, Memory: before.Memory})
			r := v.Checks[0]
			if r.Expected != 4 || r.Healthy != 2 || r.Restriction != c.want || (r.Message == "") != (c.want == "") {
				t.Errorf("the check: %+v", r)
			}
			if want := map[string]bool{"a": true}; !cmp.Equal(r.Unhealthy, want) {
				t.Errorf("unhealthy are %v", r.Unhealthy)
			}
			if f := v.Findings["a"]; f.Replace() != (c.want == "") || c.want != "" && f.Remediation != c.want {
				t.Errorf("found %+v", f)
			}
			if v.Again != timeout {
				t.Errorf("the next look is in %s", v.Again)
			}
		})
	}
	check := notReady("check", timeout)
	check.Range = &Range{1, 2}
	if r := decide(timeout, []Machine{running("a")}, check).Checks[0]; r.Restriction != "" {
		t.Errorf("where nothing is unhealthy: %+v", r)
	}
}

func TestOneOfSeveralChecksIsEnough(t *testing.T) {
	strict, later, mild := notReady("a-strict", timeout), notReady("b-later", 2*timeout), notReady("c-mild", timeout)
	strict.MaxUnhealthy = new(intstr.FromInt32(0))
	strictToo := strict
	strictToo.Name = "b-strict"
	machines := []Machine{silent("a", start)}
	for name, c := range map[string]struct {
		checks      []Check
		named, what string
	}{
		"the first spares it, the last does not": {[]Check{strict, later, mild}, "MachineHealthCheck c-mild", clusterv1alpha1.ReasonWaitingForRemediation},
		"in any order":                           {[]Check{mild, later, strict}, "MachineHealthCheck c-mild", clusterv1alpha1.ReasonWaitingForRemediation},
		"all that find it spare it":              {[]Check{strict, later}, "MachineHealthCheck a-strict", clusterv1alpha1.ReasonTooManyUnhealthy},
		"two spare it":                           {[]Check{strict, strictToo}, "MachineHealthCheck a-strict", clusterv1alpha1.ReasonTooManyUnhealthy},
		"two have it replaced":                   {[]Check{mild, notReady("d-mild", timeout)}, "MachineHealthCheck c-mild", clusterv1alpha1.ReasonWaitingForRemediation},
	} {
		t.Run(name, func(t *testing.T) {
			v := decide(timeout, machines, c.checks...)
			if f := v.Findings["a"]; f.Check != c.named || f.Remediation != c.what {
				t.Errorf("found %+v", f)
			}
		})
	}
}

func TestDefaultCheckIsForTheRest(t *testing.T) {
	mine, standard := notReady("mine", time.Hour), notReady("", timeout)
	mine.Selector, standard.Default = labels.SelectorFromSet(labels.Set{"team": "a"}), true
	selected, stopped, other := silent("selected", start), silent("stopped", start), silent("other", start)
	coming := silent("coming", start)
	selected.Labels, stopped.RunsSince, coming.CameUp = labels.Set{"team": "a"}, time.Time{}, false
	v := decide(timeout, []Machine{selected, stopped, coming, other}, mine, standard)
	for _, name := range []string{"stopped", "coming"} {
		if _, found := v.Findings[name]; found {
			t.Errorf("the Machine that is %s is held to the default", name)
		}
	}
	if v := decide(timeout, []Machine{stopped}, notReady("mine", timeout)); !v.Findings["stopped"].Replace() {
		t.Error("a check that selects it does not replace a Machine whose VM is switched off")
	}
	if _, found := v.Findings["selected"]; found {
		t.Error("a Machine that has a check of its own is held to the default")
	}
	if f := v.Findings["other"]; !f.Replace() || f.Check != "the manager's default health check" {
		t.Errorf("found %+v", f)
	}
	if v.Checks[0].Expected != 1 || v.Checks[1].Expected != 1 {
		t.Errorf("the checks: %+v", v.Checks)
	}
}

// Whoever may become unhealthy counts for a check's limits, and whoever comes up in time does not.
func TestWhoCountsAsHealthy(t *testing.T) {
	full := running("full")
	full.NodeConditions = []Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "DiskPressure", Status: metav1.ConditionTrue, Since: start}}
	idle, failed := running("idle"), running("failed")
	idle.NotReady, failed.Failed = true, true
	coming := Machine{UID: "coming", HasSet: true, RunsSince: start}
	check := notReady("check", timeout)
	check.NodeConditions = append(check.NodeConditions, bad("DiskPressure", metav1.ConditionTrue, timeout))
	for name, c := range map[string]struct {
		machines          []Machine
		expected, healthy int
	}{
		"one that works":                           {[]Machine{running("a")}, 1, 1},
		"one that does not work":                   {[]Machine{idle}, 1, 0},
		"one that has failed":                      {[]Machine{failed}, 1, 0},
		"one that works, with a full disk":         {[]Machine{full}, 1, 0},
		"one that may join for ever":               {[]Machine{coming}, 0, 0},
		"one that comes up, before one that works": {[]Machine{coming, running("a")}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := decide(timeout-time.Second, c.machines, check).Checks[0]
			if r.Expected != c.expected || r.Healthy != c.healthy || len(r.Unhealthy) > 0 {
				t.Errorf("%+v, want %d healthy of %d", r, c.healthy, c.expected)
			}
		})
	}
	if f := decide(timeout, []Machine{full}, check).Findings["full"]; f.NodeCondition != full.NodeConditions[1] {
		t.Errorf("the condition of its Node that was found is %+v", f.NodeCondition)
	}
}

// Each symptom of a Machine has a time of its own, also beside one that has made it unhealthy.
func TestSymptomsLastOneBesideAnother(t *testing.T) {
	check := notReady("check", 0)
	check.MachineConditions = []clusterv1alpha1.UnhealthyCondition{bad("InstanceReady", metav1.ConditionFalse, timeout)}
	m := silent("a", start)
	m.MachineConditions = []Condition{{Type: "InstanceReady", Status: metav1.ConditionFalse, Since: start}}
	before := decide(time.Minute, []Machine{m}, check)
	if before.Again != timeout-time.Minute {
		t.Errorf("the next look is in %s", before.Again)
	}
	m.NodeConditions = nil
	after := Decide(State{Checks: []Check{check}, Machines: []Machine{m}, Clock: Clock{Reading: timeout, Runs: true}, Memory: before.Memory})
	if f := after.Findings["a"]; f.Reason != clusterv1alpha1.ReasonUnhealthyMachine || f.NodeCondition != (Condition{}) {
		t.Errorf("found %+v", f)
	}
}

func TestWhatCannotBeToldIsLookedAtAgain(t *testing.T) {
	m := silent("a", start)
	m.Blind = true
	if v := decide(timeout, []Machine{m}, notReady("check", timeout)); v.Again != 10*time.Second {
		t.Errorf("the next look is in %s", v.Again)
	}
}
