package healthcheck

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
)

// State is all that Decide looks at.
type State struct {
	// Checks are all of the namespace. Of several that find the same Machine unhealthy the first
	// one is named.
	Checks []Check
	// Machines are all of the namespace.
	Machines []Machine
	Clock    Clock
	// Memory is Verdict.Memory of the decision before.
	Memory Memory
}

// Check is a MachineHealthCheck.
type Check struct {
	Name     string
	Selector labels.Selector
	// Default: it is the last, is not on the API server, and selects only Machines that no check
	// before it does, that have come up, and whose VM runs.
	Default bool
	// NodeConditions and MachineConditions are unhealthy when they last.
	NodeConditions, MachineConditions []clusterv1alpha1.UnhealthyCondition
	// StartupTimeout is how long a VM that runs may be without a Node; 0 for ever.
	StartupTimeout time.Duration
	// MaxUnhealthy is how many may be unhealthy, a number or a percentage; nil for all.
	MaxUnhealthy *intstr.IntOrString
	// Range is how many have to be unhealthy, the least and the most; nil for any number.
	Range *Range
}

// Range is from the least to the most.
type Range struct{ Least, Most int }

// Machine is what counts of a Machine.
type Machine struct {
	Name, UID string
	Labels    labels.Set
	// Ignored: it is being deleted, paused or another system's.
	Ignored bool
	// Failed: its set replaces it anyway.
	Failed bool
	// Blind: what has become of its VM cannot be told now. It does not become unhealthy then.
	Blind bool
	// CameUp: it has worked, so it should be healthy. NotReady: it does not work now.
	CameUp, NotReady bool
	// HasNode: it has, or had, a Node, or needs none. RunsSince is since when its VM runs; zero
	// while it does not.
	HasNode   bool
	RunsSince time.Time
	// HasSet: it belongs to a MachineSet.
	HasSet bool
	// KeptBy is an annotation that asks for it not to be replaced; empty for none.
	KeptBy string
	// Requested: somebody asks for it to be replaced.
	Requested bool
	// Found: its status says that a health check has found it unhealthy.
	Found bool
	// NodeConditions are those of its Node, MachineConditions its own.
	NodeConditions, MachineConditions []Condition
}

// Condition is a condition, and since when it is so.
type Condition struct {
	Type   string
	Status metav1.ConditionStatus
	Since  time.Time
}

// Clock measures the time in which Nodes could be observed. Reading is how much there was, Runs
// whether it counts now. No Machine becomes unhealthy while it does not run.
type Clock struct {
	Reading time.Duration
	Runs    bool
}

// Verdict says who is unhealthy.
type Verdict struct {
	// Checks has what came of each check, in the order of State.Checks.
	Checks []Result
	// Findings has the Machines that are unhealthy, by uid.
	Findings map[string]Finding
	// Memory goes into the next state.
	Memory Memory
	// Again is in how long the next Machine may become unhealthy; 0 means never.
	Again time.Duration
}

// Result is what came of one check.
type Result struct {
	// Expected is how many Machines should be healthy, Healthy how many are.
	Expected, Healthy int
	// Restriction is why none is replaced, and Message says it for people; empty while what is
	// unhealthy is.
	Restriction, Message string
	// Unhealthy has the uids of the Machines that this check finds unhealthy.
	Unhealthy map[string]bool
}

// Finding is what is wrong with a Machine, and what is to be done about it.
type Finding struct {
	// Check is the name of the one that found it.
	Check string
	// Reason and Message are those of the condition HealthCheckSucceeded.
	Reason, Message string
	// NodeCondition is the condition of the Node that was found; the zero value for another reason.
	NodeCondition Condition
	// unsure: it was found before, and whether it lasts is yet to be observed.
	unsure bool
	// Remediation and RemediationMessage are those of the condition OwnerRemediated.
	Remediation, RemediationMessage string
}

// Replace says whether the Machine is to be replaced.
func (f Finding) Replace() bool {
	return f.Remediation == clusterv1alpha1.ReasonWaitingForRemediation
}

// Decide says which Machines are unhealthy, and which of those are to be replaced.
func Decide(s State) Verdict {
	v := Verdict{Findings: map[string]Finding{}, Memory: Memory{}}
	selected := make([]bool, len(s.Machines))
	for i := range s.Checks {
		check := &s.Checks[i]
		r, suspects := Result{Unhealthy: map[string]bool{}}, 0
		found := map[string]Finding{}
		for j := range s.Machines {
			m := &s.Machines[j]
			if m.Ignored || check.Default && (selected[j] || !m.CameUp || m.RunsSince.IsZero()) || !check.Selector.Matches(m.Labels) {
				continue
			}
			selected[j] = true
			d := s.examine(check, m, v.Memory)
			v.Again = earliest.Delay(v.Again, d.left)
			if !d.expected {
				continue
			}
			r.Expected++
			suspects += oneIf(d.suspect)
			if d.finding.Reason != "" {
				found[m.UID] = d.finding
				if !d.finding.unsure {
					r.Unhealthy[m.UID] = true
				}
			}
		}
		r.Healthy = r.Expected - suspects
		r.Restriction, r.Message = check.restrict(suspects, len(r.Unhealthy), r.Expected)
		for j := range s.Machines {
			m := &s.Machines[j]
			if f, ok := found[m.UID]; ok {
				v.add(m, f.remediated(m, r))
			}
		}
		v.Checks = append(v.Checks, r)
	}
	return v
}

// add adds what a check found of a Machine. What asks for a replacement wins over what does not;
// else the check that comes first does.
func (v *Verdict) add(m *Machine, f Finding) {
	before, known := v.Findings[m.UID]
	if !known || f.Replace() && !before.Replace() {
		v.Findings[m.UID] = f
	}
}

// remediated returns the finding with what is to be done about it, given what came of the check.
func (f Finding) remediated(m *Machine, r Result) Finding {
	switch {
	case f.unsure:
		f.Remediation = clusterv1alpha1.ReasonWaitingForObservation
		f.RemediationMessage = "Whether the machine is unhealthy still has to be observed for the timeout once more."
	case m.KeptBy != "":
		f.Remediation = clusterv1alpha1.ReasonRemediationSkipped
		f.RemediationMessage = "The annotation " + m.KeptBy + " keeps the machine from being replaced."
	case !m.HasSet:
		f.Remediation = clusterv1alpha1.ReasonNoMachineSet
		f.RemediationMessage = "The machine belongs to no MachineSet that would replace it: delete it."
	case r.Restriction != "":
		f.Remediation, f.RemediationMessage = r.Restriction, fmt.Sprintf("%s spares the machine: %s", f.Check, r.Message)
	default:
		f.Remediation = clusterv1alpha1.ReasonWaitingForRemediation
		f.RemediationMessage = fmt.Sprintf("%s has the machine's MachineSet replace it.", f.Check)
	}
	return f
}

// restrict says why none of the check's Machines is replaced when so many of those that should be
// healthy are unhealthy, or are suspected to be; empty when they are replaced.
func (c *Check) restrict(suspects, unhealthy, expected int) (reason, message string) {
	switch {
	case c.Range != nil && unhealthy > 0 && unhealthy < c.Range.Least:
		return clusterv1alpha1.ReasonTooFewUnhealthy,
			fmt.Sprintf("fewer than %d of its machines are unhealthy; spec.unhealthyRange is [%d-%d].", c.Range.Least, c.Range.Least, c.Range.Most)
	case c.Range != nil && suspects > c.Range.Most:
		return clusterv1alpha1.ReasonTooManyUnhealthy,
			fmt.Sprintf("more than %d of its machines are, or may be, unhealthy; spec.unhealthyRange is [%d-%d].", c.Range.Most, c.Range.Least, c.Range.Most)
	case c.Range != nil || c.MaxUnhealthy == nil:
		return "", ""
	}
	// A limit that nobody can read is 0: it allows nothing.
	most, _ := intstr.GetScaledValueFromIntOrPercent(c.MaxUnhealthy, expected, false)
	if suspects > most {
		return clusterv1alpha1.ReasonTooManyUnhealthy,
			fmt.Sprintf("more than %d of its machines are, or may be, unhealthy; spec.maxUnhealthy is %s.", most, c.MaxUnhealthy)
	}
	return "", ""
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
