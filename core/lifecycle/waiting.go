package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// What a machine waits for within a time.
const (
	waitNode  = "node"
	waitDrain = "drain"
)

// clockLook is how often a machine that waits looks at its clock, to show when that stands still.
const clockLook = time.Minute

// clockPatience: a clock that stands still for so short is not shown.
const clockPatience = 30 * time.Second

// drainGrace is how long this process drains at least, unless the machine gives it less, however
// long the machine has been deleted: nobody may have drained it meanwhile.
const drainGrace = 5 * time.Minute

// Wait is something that a machine waits for, and for how long it was observed to.
type Wait struct {
	// For is what; empty for nothing.
	For string
	// Since is when this process first saw the machine wait for it.
	Since time.Time
	// Took is how long it was observed since then, Tick what the clock showed last.
	Took, Tick time.Duration
	// Blind: when the clock was last read, it could not be told whether what is waited for had
	// come.
	Blind bool
}

// waits adds up how long the machine has waited for something, by a clock that shows now. Time
// between two readings counts only if neither was blind.
func (p *plan) waits(what string, now time.Duration, blind bool) Wait {
	w := p.Memory.Wait
	if w.For != what {
		w = Wait{For: what, Since: p.Now, Tick: now}
	}
	if !blind && !w.Blind {
		w.Took += now - w.Tick
	}
	w.Tick, w.Blind = now, blind
	p.Memory.Wait = w
	return w
}

// late says whether the time is over in which the machine has to get its Node, and sees to it that
// it is noticed when it is. The time counts while the clock of the cloud runs and the last look
// found the VM; where only runs counts, a VM that runs.
func (p *plan) late(runs bool) bool {
	limit := p.Machine.StartupTimeout
	if limit <= 0 {
		return false
	}
	v := p.view()
	// A Node that is Ready is ahead of the last look, which does not show the VM as running yet.
	joined := p.Node.Match == NodeFound && p.Node.Ready == metav1.ConditionTrue
	blind := joined || v.instance == nil || v.failure != nil || runs && v.instance.State != instance.Running
	took := p.waits(waitNode, p.Clock.Cloud, blind).Took
	if took >= limit && !blind && p.Clock.Runs {
		return true
	}
	p.waitUntil(p.Now.Add(min(max(limit-took, time.Second), clockLook)))
	return false
}

// stands adds to a message about a Node that is waited for that the time for it stands still, once
// that has lasted.
func (p *plan) stands(message string) string {
	if p.Clock.Away == "" || p.Machine.StartupTimeout <= 0 {
		return message
	}
	p.debounceFor("clock", clockPatience)
	return message + " The time for it stands still: " + p.Clock.Away + "."
}

// failJoin ends a machine that did not get its Node in time.
func (p *plan) failJoin() bool {
	message := fmt.Sprintf("The VM has not become a Ready Node within %s", p.Machine.StartupTimeout)
	switch {
	case p.status.Phase == clusterv1alpha1.MachinePhaseRunning:
		message = fmt.Sprintf("The Node is gone, and has not come back within %s", p.Machine.StartupTimeout)
	case p.Node.Match == NodeConflicting:
		message += ": " + p.Node.Conflict
	case p.Node.Match == NodeFound:
		message += ": " + p.Node.Message
	}
	return p.fail(clusterv1alpha1.ConditionNodeReady, clusterv1alpha1.ReasonJoinTimeout, message+".")
}

// drainLeft is how long the drain may yet take. The time before this process saw it counts as it
// stands in the Machine, the time since as far as the API server could be asked.
func (p *plan) drainLeft() time.Duration {
	limit := p.Machine.DrainTimeout
	w := p.waits(waitDrain, p.Clock.Cluster, false)
	left := limit - w.Since.Sub(p.Machine.Deleting) - w.Took
	return max(left, min(limit, drainGrace)-w.Took)
}
