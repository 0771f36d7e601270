package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
)

// Next returns what to do next.
func Next(s State) Step {
	if s.isDeleting() && !s.Machine.Finalizer {
		return Step{Status: s.Machine.Status}
	}
	s.Memory = remember(s)
	if !s.Confirmed() {
		// Without a confirmed id the machine has no Node.
		s.Node = Node{}
	}
	d := decide(s)
	return debounce(s, d, describe(s, d))
}

// decide goes through the parts of a life, on the way in or on the way out.
func decide(s State) decision {
	life := []part{
		decidePause, decideIdentity, decideDeleteNow, decideFailed, decideUID, decideAdoption, decideBootstrap,
		decideToken, decideInstance, decideTokenUsed, decideNode,
	}
	if s.isDeleting() {
		life = []part{
			decidePause, decideUnadopted, decideLateInstance, decideForget, decideDrain, decideDetach, decideDelete,
			decideRemoveNode, decideTokenOver, decideRelease,
		}
	}
	recorded := s.Machine.Status
	d := decision{Step: Step{Memory: s.Memory}, phase: recorded.Phase, nodeName: recorded.nodeName()}
	if s.isRunning() {
		// Whether it is Updating follows from how its VM is: see describe.
		d.phase = clusterv1alpha1.MachinePhaseRunning
	}
	d, _ = decideFirst(s, d, life...)
	return d
}

// isDeleting says whether the machine is on its way out.
func (s State) isDeleting() bool {
	return !s.Machine.DeletionTimestamp.IsZero()
}

// isPaused says whether nothing is to be done for the machine.
func (s State) isPaused() bool {
	return s.Machine.Paused != (Pause{})
}

// isRunning says whether the status says that the machine has a Node that was Ready.
func (s State) isRunning() bool {
	phase := s.Machine.Status.Phase
	return phase == clusterv1alpha1.MachinePhaseRunning || phase == clusterv1alpha1.MachinePhaseUpdating
}

// wasSeenRunning says whether the status says that the VM ran.
func (s State) wasSeenRunning() bool {
	return s.isRunning() || s.Machine.Status.Phase == clusterv1alpha1.MachinePhaseProvisioned
}

// decision is what is to be done, and why. It is a value; its methods return a changed one.
type decision struct {
	// Step has no Status yet, which follows from the state and the decision: see describe.
	Step
	// phase and nodeName are those of the status from now on.
	phase    clusterv1alpha1.MachinePhase
	nodeName string
	// operation is what is, or was, asked of the cloud; the zero value for what is recorded.
	operation clusterv1alpha1.LastOperation
	// These are the reasons of the conditions from now on; an empty one leaves the condition as it
	// is recorded.
	bootstrapReason, instanceReason, nodeReason string
	// failure, where there is one, is what the condition InstanceReady shows instead of
	// instanceReason.
	failure *instance.Failure
	// drained is the condition Drained from now on; the zero value leaves it as it is recorded.
	drained metav1.Condition
	// detached is the condition VolumesDetached from now on; the zero value leaves it as it is
	// recorded.
	detached metav1.Condition
	// detachMoot: the status gets no condition VolumesDetached, whatever is recorded.
	detachMoot bool
	// begun: the status gets the conditions InstanceReady and NodeReady, if it has none yet.
	begun bool
	// observed is the VM whose addresses and driver's state the status takes over; nil for none.
	observed *instance.Instance
	// pollFailureShown: the condition InstanceReady of a VM that runs says why it cannot be polled.
	pollFailureShown bool
	// driverStateShown: the status takes over what the driver wants to be told again.
	driverStateShown bool
	// debounced names what should pass by itself within debounceFor; empty for nothing.
	debounced   string
	debounceFor time.Duration
	// mustWrite: the status is written though it tells a reader nothing new.
	mustWrite bool
}

// part decides for one part of a life, and gets the decision as the parts before have left it. It
// returns true when it has decided what to do, or that there is something to wait for.
type part func(s State, d decision) (decision, bool)

// decideFirst asks parts in their order until one has decided.
func decideFirst(s State, d decision, parts ...part) (decision, bool) {
	for _, decide := range parts {
		var decided bool
		if d, decided = decide(s, d); decided {
			return d, true
		}
	}
	return d, false
}

// act decides for an action.
func (d decision) act(do Action) (decision, bool) {
	d.Do = do
	return d, true
}

// waitUntil decides to wait: for what the conditions say, until t at the latest. The zero time is
// no bound.
func (d decision) waitUntil(t time.Time) (decision, bool) {
	d.RequeueAt = earliest.Instant(d.RequeueAt, t)
	return d, true
}

// recordProviderID decides to write down an id that the driver gave.
func (d decision) recordProviderID(id string) (decision, bool) {
	d.ProviderID, d.Memory.Confirmed = id, id
	return d.act(RecordProviderID)
}

// debounce says that what keeps the machine waiting should pass by itself within t.
func (d decision) debounce(what string, t time.Duration) decision {
	d.debounced, d.debounceFor = what, t
	return d
}

// instanceIs has the condition InstanceReady show a reason.
func (d decision) instanceIs(reason string) decision {
	d.instanceReason, d.failure = reason, nil
	return d
}

// callFailed has the condition InstanceReady show a failure. One that is expected to pass is shown
// when it does not.
func (d decision) callFailed(f *instance.Failure) decision {
	switch f.Class {
	case instance.Pending:
		return d
	case instance.OutcomeUnknown, instance.Unavailable:
		d = d.debounce("outcome", driverDebounce)
	}
	d.failure = f
	return d
}

// fail ends the machine: it will never work, as one condition says.
func (d decision) fail() (decision, bool) {
	d.phase, d.Poll = clusterv1alpha1.MachinePhaseFailed, instance.PollNever
	return d, true
}

// decideFailed: a machine that failed stays so; whoever made it replaces it.
func decideFailed(s State, d decision) (decision, bool) {
	if s.Machine.Status.Phase == clusterv1alpha1.MachinePhaseFailed {
		return d, true
	}
	return d.begin(), false
}

// begin gives a status that has none yet the phase Pending and the conditions that wait for others.
func (d decision) begin() decision {
	d.begun = true
	switch d.phase {
	case "":
		d.phase = clusterv1alpha1.MachinePhasePending
	case clusterv1alpha1.MachinePhaseUnknown:
		d.phase = clusterv1alpha1.MachinePhaseProvisioning
	}
	return d
}
