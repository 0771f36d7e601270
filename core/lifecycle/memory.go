package lifecycle

import (
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// recheck is how long to wait for a look before an operation that was accepted is asked for again.
const recheck = 30 * time.Second

// recordDriverState takes into memory what the driver wants to be told again: from its last answer
// or the last look, whichever is newer.
func (p *plan) recordDriverState() {
	if last := p.Memory.Last; last != nil {
		p.heard(last.LastKnownState(), last.Ended)
	}
	if seen := p.Driver.Seen; seen != nil && seen.Instance != nil {
		p.heard(seen.Instance.LastKnownState, seen.At)
	}
}

func (p *plan) heard(state []byte, at time.Time) {
	if m := &p.Memory; state != nil && !at.Before(m.HeardAt) {
		m.LastKnownState, m.HeardAt = state, at
	}
}

// writeDriverState has it written down.
func (p *plan) writeDriverState() {
	if p.Memory.LastKnownState != nil {
		p.status.LastKnownState = p.Memory.LastKnownState
	}
}

// hasPartialFailure says whether the last call failed, and handed over what must survive that.
func (p *plan) hasPartialFailure() bool {
	last := p.Memory.Last
	return last != nil && last.Failure != nil && last.Failure.LastKnownState != nil
}

// updateMemory takes an outcome into memory. An attempt that is neither under way nor has an
// outcome was lost: nobody can say what became of it.
func (p *plan) updateMemory() {
	m := &p.Memory
	if p.Driver.Outcome != nil {
		p.applyOutcome(*p.Driver.Outcome)
		return
	}
	if m.Attempted == "" || p.Driver.UnderWay {
		return
	}
	p.applyOutcome(instance.Outcome{
		Operation: m.Attempted, Started: m.AttemptedAt, Ended: p.Now,
		Failure: &instance.Failure{
			Class: instance.OutcomeUnknown, Reason: clusterv1alpha1.ReasonOutcomeUnknown, Message: "The call's outcome was lost.",
		},
	})
}

func (p *plan) applyOutcome(o instance.Outcome) {
	m := &p.Memory
	repeated := m.Last != nil && m.Last.Failure != nil && o.Failure != nil && m.Last.Failure.Class == o.Failure.Class
	m.Attempted, m.AttemptedAt, m.Last = "", time.Time{}, &o
	m.RetryAt = o.Ended.Add(recheck)
	m.Deletes++
	if o.Operation != instance.Delete || o.Instance == nil {
		m.Deletes = 0
	}
	if o.Failure == nil {
		m.Failures = 0
		m.Possible = m.Possible || o.Operation == instance.Create
		return
	}
	if !repeated {
		m.Failures = 0
	}
	m.Failures++
	m.RetryAt = o.Ended.Add(o.Failure.RetryAfterNth(m.Failures, p.Machine.UID))
	if o.Operation != instance.Create {
		return
	}
	m.Refused = o.Failure.Class.IsTerminal() && !m.Possible && o.Failure.LastKnownState == nil
	if o.Failure.Class.IsUncertain() {
		m.Doubt, m.Possible = o.Ended, true
	}
}

// view is the VM as this process knows it.
type view struct {
	// instance is nil when none is known.
	instance *instance.Instance
	// at is when the look began, or the call ended.
	at time.Time
	// looked says that this is what a look found, and not what a call answered.
	looked bool
	// looks counts how many looks in a row found nothing.
	looks int
	// failure is how the last look failed.
	failure *instance.Failure
}

// leftover says whether what is there is only what is left of a create that died half-way.
func (v view) leftover() bool {
	return v.instance.State == instance.Failed && v.instance.ProviderID == ""
}

// view prefers the last look to the last answer, unless the look began before that answer was
// given.
func (s State) view() view {
	last, seen := s.Memory.Last, s.Driver.Seen
	if seen != nil && (last == nil || !seen.At.Before(last.Ended)) {
		v := view{at: seen.At, looked: true, instance: seen.Instance, failure: seen.Failure}
		if seen.Failure != nil && seen.Failure.Class == instance.NotFound {
			v.instance, v.looks = nil, seen.Looks
		}
		return v
	}
	if last != nil {
		return view{at: last.Ended, instance: last.Instance, failure: last.Failure}
	}
	return view{}
}

// isStateLost says whether the driver has lost what it knew of this machine: nothing is done until
// a look succeeds again.
func (p *plan) isStateLost() bool {
	last := p.Memory.Last
	lost := last != nil && last.Failure != nil && last.Failure.Class == instance.DataLoss ||
		p.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady).Reason == clusterv1alpha1.ReasonDataLoss
	if !lost {
		return false
	}
	p.watch = Seldom
	if v := p.view(); v.instance != nil && v.failure == nil {
		return false
	}
	if last != nil && last.Failure != nil {
		p.refused(last.Failure)
	}
	p.status.Phase = clusterv1alpha1.MachinePhaseUnknown
	return true
}

// settledAt is when every create of which nobody knows what became has come to its end; zero when
// there is no doubt.
func (p *plan) settledAt() time.Time {
	doubt := p.Memory.Doubt
	if before := p.lastDoubtOfOthers(); doubt.Before(before) {
		doubt = before
	}
	if doubt.IsZero() {
		return doubt
	}
	return doubt.Add(p.Driver.CreateSettle)
}

// lastDoubtOfOthers is when the last create of an earlier process ended at the latest; zero when
// nothing tells of one. Once a VM was there no other was asked for.
func (p *plan) lastDoubtOfOthers() time.Time {
	operation, leading := p.Machine.Status.LastOperation, p.Driver.LeadingSince
	switch {
	case operation == nil || operation.Type != clusterv1alpha1.OperationCreate:
		return time.Time{}
	case operation.State != clusterv1alpha1.OperationSucceeded:
		return leading
	case !operation.At.After(leading):
		return operation.At
	}
	return time.Time{}
}
