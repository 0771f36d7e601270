package healthcheck

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/requeue"
)

// recheck is the least time between two looks at a symptom.
const recheck = time.Second

// diagnosis is what one check says of one Machine.
type diagnosis struct {
	// expected: it should be healthy, or it is unhealthy all the same.
	expected bool
	// suspect: it is unhealthy, or would become so if nothing changed.
	suspect bool
	// finding is what is wrong with it; the zero value for nothing. left is in how long something
	// may be; 0 for never.
	finding Finding
	left    time.Duration
}

// symptom is something about a Machine that makes it unhealthy when it lasts.
type symptom struct {
	key     symptomKey
	since   time.Time
	timeout time.Duration
	reason  string
	// what is the symptom for people, without how long it lasts.
	what string
}

// symptomKey tells the symptoms of a Machine apart.
type symptomKey struct{ reason, typ, status string }

// Memory is for how long this process has seen the symptoms of Machines, by uid.
type Memory map[string]map[symptomKey]sighting

// sighting is when a symptom was first seen by this process.
type sighting struct {
	// since is since when the symptom was there, by the API server's word.
	since time.Time
	// before is how long it had lasted then, reading what the clock showed.
	before, reading time.Duration
}

// remember notes the symptom of a Machine in the memory to come, as the one before knows it, and
// returns for how long it has lasted.
func (s *State) remember(next Memory, uid string, y symptom) time.Duration {
	seen, known := s.Memory[uid][y.key]
	if !known || !seen.since.Equal(y.since) {
		seen = sighting{since: y.since, before: max(0, s.Now.Sub(y.since)), reading: s.Clock.Reading}
	}
	if next[uid] == nil {
		next[uid] = map[symptomKey]sighting{}
	}
	next[uid][y.key] = seen
	return seen.before + s.Clock.Reading - seen.reading
}

// examine says what a check finds of a Machine.
func (s *State) examine(c *Check, m *Machine, next Memory) diagnosis {
	d := diagnosis{expected: m.CameUp, suspect: m.CameUp && (m.NotReady || m.Failed)}
	switch {
	case m.Failed:
		// Its set replaces it: there is nothing to add.
		return d
	case m.Requested:
		d.expected, d.suspect = true, true
		d.finding = Finding{
			Check: c.title(), Reason: clusterv1alpha1.ReasonRemediationRequested,
			Message: "The annotation " + clusterv1alpha1.RemediateMachineAnnotation + " asks for the machine to be replaced.",
		}
		return d
	}
	for _, y := range symptoms(c, m) {
		// What is coming up may yet do so in time.
		d.suspect = d.suspect || m.CameUp
		left := y.timeout - s.remember(next, m.UID, y)
		switch {
		case left > 0 || m.Blind || !s.Clock.Runs:
			d.left = requeue.Earlier(d.left, max(left, recheck))
		case d.finding.Reason == "":
			d.expected, d.suspect = true, true
			d.finding = Finding{Check: c.title(), Reason: y.reason, Message: fmt.Sprintf("%s for %s or longer, by %s.", y.what, y.timeout, c.title())}
		}
	}
	return d
}

// title names the check for people.
func (c *Check) title() string {
	if c.Default {
		return "the manager's default health check"
	}
	return "MachineHealthCheck " + c.Name
}

// symptoms are those of a Machine that a check knows.
func symptoms(c *Check, m *Machine) []symptom {
	var found []symptom
	add := func(reason, whose string, bad []clusterv1alpha1.UnhealthyCondition, has []Condition) {
		for _, b := range bad {
			for _, h := range has {
				if b.Type == h.Type && b.Status == h.Status {
					found = append(found, symptom{
						key: symptomKey{reason, b.Type, string(b.Status)}, since: h.Since, timeout: b.Timeout.Duration, reason: reason,
						what: fmt.Sprintf("The condition %s of the %s has been %s", b.Type, whose, b.Status),
					})
				}
			}
		}
	}
	add(clusterv1alpha1.ReasonUnhealthyNode, "Node", c.NodeConditions, m.NodeConditions)
	add(clusterv1alpha1.ReasonUnhealthyMachine, "Machine", c.MachineConditions, m.MachineConditions)
	if c.StartupTimeout > 0 && !m.HasNode && !m.RunsSince.IsZero() {
		found = append(found, symptom{
			key: symptomKey{reason: clusterv1alpha1.ReasonNodeStartupTimeout}, since: m.RunsSince, timeout: c.StartupTimeout,
			reason: clusterv1alpha1.ReasonNodeStartupTimeout, what: "The VM has run without a Node",
		})
	}
	return found
}
