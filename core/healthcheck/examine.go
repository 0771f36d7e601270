package healthcheck

import (
	"fmt"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
)

const (
	// recheck is the least time between two looks at a symptom.
	recheck = time.Second
	// blindRecheck is the time between two looks while nothing can be told of it.
	blindRecheck = 10 * time.Second
)

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
	// condition is what the Node says; the zero value where it is not the Node.
	condition Condition
}

// symptomKey tells the symptoms of a Machine apart.
type symptomKey struct{ reason, typ, status string }

// Memory is for how long this process has seen the symptoms of Machines, by uid.
type Memory map[string]map[symptomKey]sighting

// sighting is when a symptom was first seen by this process.
type sighting struct {
	// since is since when the symptom is there, by the word of whoever shows it.
	since time.Time
	// reading is what the clock showed.
	reading time.Duration
}

// remember notes the symptom of a Machine in the memory to come, as the one before knows it, and
// returns for how long it was observed.
func (s *State) remember(next Memory, uid string, y symptom) time.Duration {
	seen, known := s.Memory[uid][y.key]
	if !known || !seen.since.Equal(y.since) {
		seen = sighting{since: y.since, reading: s.Clock.Reading}
	}
	if next[uid] == nil {
		next[uid] = map[symptomKey]sighting{}
	}
	next[uid][y.key] = seen
	return s.Clock.Reading - seen.reading
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
		left, isBlind := y.timeout-s.remember(next, m.UID, y), m.Blind || !s.Clock.Runs
		switch {
		case left <= 0 && !isBlind:
			d = d.found(c, y, false)
			continue
		case m.Found:
			d = d.found(c, y, true)
		}
		if isBlind {
			left = max(left, blindRecheck)
		}
		d.left = earliest.Delay(d.left, max(left, recheck))
	}
	return d
}

// found returns the diagnosis with a finding for a symptom. The first that is sure counts, else the
// first.
func (d diagnosis) found(c *Check, y symptom, unsure bool) diagnosis {
	if d.finding.Reason != "" && (unsure || !d.finding.unsure) {
		return d
	}
	d.expected, d.suspect = true, true
	d.finding = Finding{
		Check: c.title(), Reason: y.reason, Message: fmt.Sprintf("%s for %s or longer, by %s.", y.what, y.timeout, c.title()),
		NodeCondition: y.condition, unsure: unsure,
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
				if b.Type != h.Type || b.Status != h.Status {
					continue
				}
				y := symptom{
					key: symptomKey{reason, b.Type, string(b.Status)}, since: h.Since, timeout: b.Timeout.Duration, reason: reason,
					what: fmt.Sprintf("The condition %s of the %s has been %s", b.Type, whose, b.Status),
				}
				if reason == clusterv1alpha1.ReasonUnhealthyNode {
					y.condition = h
				}
				found = append(found, y)
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
