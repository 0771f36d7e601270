package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// Memory is what one process remembers of a machine between steps. Losing it is safe at any time.
type Memory struct {
	// Attempted is the mutation that was started and whose outcome has not been seen; empty when
	// there is none.
	Attempted instance.Operation
	// AttemptedAt is when it was started.
	AttemptedAt time.Time
	// Last is the outcome that was seen last; nil before the first.
	Last *instance.Outcome
	// LastKnownState is what the driver last wanted to be told again, at LastKnownStateAt; nil
	// where this process has heard nothing.
	LastKnownState   []byte
	LastKnownStateAt time.Time
	// UncertainAt is when the last create of unknown outcome ended; zero when there was none.
	UncertainAt time.Time
	// Failures counts failures of the same class in a row.
	Failures int
	// Deletes counts deletes in a row that were accepted and left something.
	Deletes int
	// RetryAt is when the next mutation may start.
	RetryAt time.Time
	// Gone: nothing of the machine is left in the cloud and nothing can come any more.
	Gone bool
	// MaybeCreated: a create may have made a VM. It was accepted, nobody knows its outcome, or an
	// earlier process sent it.
	MaybeCreated bool
	// Refused: a create was refused for good, and neither it nor one before it can have made
	// anything.
	Refused bool
	// Confirmed is the providerID that the driver has confirmed to this process, Contradicted one
	// in whose place it has named another since; empty for none.
	Confirmed, Contradicted string
	// NamedAt is when the driver last named the VM; zero before.
	NamedAt time.Time
	// InstanceSeen: a VM was seen. There is no other for this uid, ever.
	InstanceSeen bool
	// Drained is the condition Drained once the drain is over; the zero value before.
	Drained metav1.Condition
	// Detached: no volume that counts is attached to the Node, after the drain.
	Detached bool
	// DrainPasses counts the passes of the drain, PassesBlocked those in a row that a
	// PodDisruptionBudget blocked; PodsRemaining names the pods that the last one left.
	DrainPasses, PassesBlocked int
	PodsRemaining              string
	// Silence is that of the Node that is drained; nil while its kubelet reports.
	Silence *Silence
	// Wait is what the machine was last seen to wait for.
	Wait Wait
	// DeleteNowAt is when the machine was deleted because somebody asked for it; zero before.
	DeleteNowAt time.Time
	// GateLooks counts looks at critical DaemonSets in a row that found the gate closed.
	GateLooks int
	// Syncs counts how often the Node was synced of late, the last time at SyncedAt.
	Syncs    int
	SyncedAt time.Time
	// Debounced is what keeps the status from being written for now, DebouncedSince since when;
	// empty for nothing.
	Debounced      string
	DebouncedSince time.Time
}

// Silence is for how long nothing has been heard of a Node's kubelet, though it could have been.
type Silence struct {
	// Since is what Clock.Nodes showed when it began.
	Since time.Duration
	// RenewTime is what the Node's Lease said then; the silence ends when it says anything else.
	RenewTime time.Time
}

// Wait is something that a machine waits for, and for how long it was observed to.
type Wait struct {
	// For is what; empty for nothing.
	For string
	// Since is when this process first saw the machine wait for it.
	Since time.Time
	// Observed is for how long it was observed since then, Reading what the clock showed last.
	Observed, Reading time.Duration
	// Blind: when the clock was last read, it could not be told whether what is waited for had
	// come.
	Blind bool
	// ConsoleAskedAt is when, at the end of the wait, the VM's console was asked for; zero before.
	ConsoleAskedAt time.Time
}

// What a machine waits for within a time.
const (
	waitForNode    = "node"
	waitForDrain   = "drain"
	waitForVolumes = "volumes"
)

// read adds the time since the last reading of a clock that shows clock now. It counts only while
// what is waited for stays the same, and between two readings of which neither was blind.
func (w Wait) read(waitFor string, now time.Time, clock time.Duration, blind bool) Wait {
	if w.For != waitFor {
		w = Wait{For: waitFor, Since: now, Reading: clock}
	}
	if !blind && !w.Blind {
		w.Observed += clock - w.Reading
	}
	w.Reading, w.Blind = clock, blind
	return w
}

// acceptedRecheck is how long to wait for a poll before an operation that was accepted is asked for
// again.
const acceptedRecheck = 30 * time.Second

// remember returns the memory with what was seen since the last step. Each part builds on those
// before it.
func remember(s State) Memory {
	s.Memory = rememberOutcome(s)
	s.Memory = rememberDriverState(s)
	s.Memory = rememberProviderID(s)
	s.Memory.Silence = rememberSilence(s)
	if s.isPaused() {
		s.Memory.Wait.Blind = true
	}
	return s.Memory
}

// rememberOutcome adds how the last call ended. An attempt that is neither under way nor has an
// outcome was lost: nobody can say what became of it.
func rememberOutcome(s State) Memory {
	m, outcome := s.Memory, s.Driver.Outcome
	if outcome == nil && m.Attempted != "" && !s.Driver.UnderWay {
		outcome = &instance.Outcome{Operation: m.Attempted, Started: m.AttemptedAt, Ended: s.Now, Failure: &instance.Failure{
			Class: instance.OutcomeUnknown, Reason: clusterv1alpha1.ReasonOutcomeUnknown, Message: "The call's outcome was lost.",
		}}
	}
	if outcome == nil {
		return m
	}
	return m.withOutcome(*outcome, s.Machine.UID)
}

// withOutcome returns m with the outcome of a call for the machine of this uid.
func (m Memory) withOutcome(o instance.Outcome, uid string) Memory {
	repeated := m.Last != nil && m.Last.Failure != nil && o.Failure != nil && m.Last.Failure.Class == o.Failure.Class
	m.Attempted, m.AttemptedAt, m.Last = "", time.Time{}, &o
	m.RetryAt = o.Ended.Add(acceptedRecheck)
	m.Deletes++
	if o.Operation != instance.Delete || o.Instance == nil {
		m.Deletes = 0
	}
	if o.Failure == nil {
		m.Failures = 0
		m.MaybeCreated = m.MaybeCreated || o.Operation == instance.Create
		return m
	}
	if !repeated {
		m.Failures = 0
	}
	m.Failures++
	m.RetryAt = o.Ended.Add(o.Failure.RetryAfterNth(m.Failures, uid))
	if o.Operation != instance.Create {
		return m
	}
	m.Refused = o.Failure.Class.IsTerminal() && !m.MaybeCreated && o.Failure.LastKnownState == nil
	if o.Failure.Class.IsUncertain() {
		m.UncertainAt, m.MaybeCreated = o.Ended, true
	}
	return m
}

// rememberDriverState adds what the driver wants to be told again: from its last answer or the last
// poll, whichever is newer.
func rememberDriverState(s State) Memory {
	m := s.Memory
	if m.Last != nil {
		m = m.withDriverState(m.Last.LastKnownState(), m.Last.Ended)
	}
	if seen := s.Driver.LastPoll; seen != nil && seen.Instance != nil {
		m = m.withDriverState(seen.Instance.LastKnownState, seen.At)
	}
	return m
}

func (m Memory) withDriverState(state []byte, at time.Time) Memory {
	if state != nil && !at.Before(m.LastKnownStateAt) {
		m.LastKnownState, m.LastKnownStateAt = state, at
	}
	return m
}

// rememberProviderID adds what the driver has said of spec.providerID.
func rememberProviderID(s State) Memory {
	id := s.Machine.ProviderID
	if vm := s.named(); vm != nil {
		s.Memory.Contradicted, s.Memory.NamedAt = "", s.view().at
		if id != "" && !vm.Has(id) {
			s.Memory.Contradicted, s.Memory.Confirmed = id, ""
		}
	}
	if s.Confirmed() {
		s.Memory.Confirmed = id
	}
	return s.Memory
}

// rememberSilence is for how long nothing has been heard of the kubelet of a Node that is
// drained. It goes by what a pass of the drain found. A pass that could not find out changes
// nothing.
func rememberSilence(s State) *Silence {
	d, before := s.Drain, s.Memory.Silence
	switch {
	case d == nil || d.Error != "":
		return before
	case !d.Silent:
		return nil
	case isInstanceGone(s) || d.LeaseError != "":
		return before
	case before == nil || !before.RenewTime.Equal(d.RenewTime):
		return &Silence{Since: s.Clock.Nodes, RenewTime: d.RenewTime}
	}
	return before
}
