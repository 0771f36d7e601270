package lifecycle

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

const (
	// bootstrapRetry lies between two attempts to render user data. What is missing may have been
	// forbidden by an API server that had just started.
	bootstrapRetry = time.Minute
	// breakerRecheck is when a machine that is held back asks again though nobody woke it: its
	// credentials may have changed.
	breakerRecheck = 30 * time.Second
)

// decideBootstrap: without user data nothing is created. A VM has its user data; a change of labels
// does not reach it any more. Where there is no VM after all, startCreate says so.
func decideBootstrap(s State, d decision) (decision, bool) {
	switch {
	case s.BootstrapError != "" && !mayHaveInstance(s):
		return awaitUserData(s, d)
	case s.BootstrapError != "":
	case s.BootstrapWarning != "" && s.TokenState() != TokenNotNeeded:
		d.bootstrapReason = clusterv1alpha1.ReasonKubeletTooOld
	default:
		d.bootstrapReason = renderedReason(s)
	}
	return d, false
}

// renderedReason is the reason of a machine with whose user data nothing is wrong. It tells what
// became of the token, also once something else that was wrong is mended (State.TokenState).
func renderedReason(s State) string {
	switch s.TokenState() {
	case TokenNotNeeded:
		return clusterv1alpha1.ReasonBootstrapTokenNotNeeded
	case TokenSent, TokenLost:
		return clusterv1alpha1.ReasonBootstrapTokenCreated
	case TokenDeleted:
		return clusterv1alpha1.ReasonBootstrapTokenDeleted
	case TokenPending:
	}
	return clusterv1alpha1.ReasonBootstrapRendered
}

// awaitUserData waits for user data to create a VM with. What is wrong may be outside the Machine:
// the API server it is too new for is upgraded some day.
func awaitUserData(s State, d decision) (decision, bool) {
	if s.BootstrapError == "" {
		return d, false
	}
	d.bootstrapReason = clusterv1alpha1.ReasonBootstrapInvalid
	if s.TokenState() == TokenNotNeeded && s.Machine.Status.LastOperation != nil {
		// The status goes on to say that there was no token.
		d.bootstrapReason = clusterv1alpha1.ReasonBootstrapTokenNotNeeded
	}
	return d.waitUntil(s.Now.Add(bootstrapRetry))
}

// mayHaveInstance says whether anything may exist in the cloud for this machine. A create that was
// refused before it was announced has made nothing.
func mayHaveInstance(s State) bool {
	return s.Machine.ProviderID != "" || s.Machine.Status.LastOperation != nil ||
		s.Memory.Attempted != "" || s.Memory.MaybeCreated
}

// decideCreate creates the VM, or says what keeps it from being created.
func decideCreate(s State, d decision) (decision, bool) {
	d, waits := awaitDriver(s, d)
	if waits || s.Driver.UnderWay {
		return d, true
	}
	if d, waits = awaitLostState(s, d); waits {
		d.phase = clusterv1alpha1.MachinePhaseUnknown
		return d, true
	}
	return decideFirst(s, d, afterFailedCreate, awaitCreated, awaitUserData, awaitNoInstance, awaitCreateTurn, startCreate)
}

// awaitDriver waits for a driver where there is none.
func awaitDriver(s State, d decision) (decision, bool) {
	if s.Driver.Unknown == "" {
		return d, false
	}
	return d.instanceIs(clusterv1alpha1.ReasonDriverNotFound), true
}

// awaitCreateTurn is awaitTurn for a create: that the machine awaits its turn is not written down
// at once.
func awaitCreateTurn(s State, d decision) (decision, bool) {
	if s.Driver.AwaitsTurn {
		d = d.debounce("turn", limiterDebounce)
	}
	return awaitTurn(s, d)
}

// startCreate starts a create. The status says so before the first one, and that a token goes with
// it. Where the user data was edited since, it says before whether there is a token now. A create
// that an earlier process may have sent is in doubt until this one's outcome is known.
func startCreate(s State, d decision) (decision, bool) {
	token, isFirst := s.TokenState(), s.Machine.Status.LastOperation == nil
	if isFirst {
		d = d.instanceIs(clusterv1alpha1.ReasonInstanceCreating)
		d.phase = clusterv1alpha1.MachinePhaseProvisioning
		d.operation = clusterv1alpha1.LastOperation{Type: clusterv1alpha1.OperationCreate, State: clusterv1alpha1.OperationProcessing}
		if d.bootstrapReason == clusterv1alpha1.ReasonBootstrapRendered {
			d.bootstrapReason = clusterv1alpha1.ReasonBootstrapTokenCreated
		}
	} else if s.Memory.Last == nil {
		d.Memory.MaybeCreated, d.Memory.UncertainAt = true, s.Driver.LeadingSince
	}
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
	wasEdited := (token == TokenNotNeeded) != (recorded == clusterv1alpha1.ReasonBootstrapTokenNotNeeded)
	if isFirst || wasEdited {
		d = d.debounce("", 0)
	}
	d.NewToken = isFirst || token != TokenSent && token != TokenDeleted
	d.Memory.Attempted, d.Memory.AttemptedAt = instance.Create, s.Now
	return d.act(Create)
}

// afterFailedCreate shows how the last create failed; true when there is no other now. A failure
// that is not terminal leaves the machine as it is, and nothing is replaced. A quota that is used
// up, say, shows in InstanceReady=False with the driver's reason and words. The machine's set then
// shows ReplicaFailure with the reason MachinesFailed.
func afterFailedCreate(s State, d decision) (decision, bool) {
	last := s.Memory.Last
	if last == nil || last.Failure == nil || last.Operation != instance.Create {
		return d, false
	}
	if last.Failure.Class.IsTerminal() {
		state := clusterv1alpha1.OperationFailed
		if !s.Memory.Refused {
			// Whoever deletes the machine has to know that there may be a VM.
			state = clusterv1alpha1.OperationProcessing
		}
		d.operation = clusterv1alpha1.LastOperation{Type: clusterv1alpha1.OperationCreate, State: state, Description: explain(last.Failure)}
		return d.callFailed(last.Failure).fail()
	}
	if last.Failure.ProviderID != "" && s.Machine.ProviderID == "" {
		return d.recordProviderID(last.Failure.ProviderID)
	}
	d = d.callFailed(last.Failure)
	if s.Now.Before(s.Memory.RetryAt) {
		return d.waitUntil(s.Memory.RetryAt)
	}
	return d, false
}

// awaitCreated: the cloud has accepted a create that has no VM to show for it. It is asked for
// again, but not at once.
func awaitCreated(s State, d decision) (decision, bool) {
	last, v := s.Memory.Last, s.view()
	if last == nil || last.Failure != nil {
		return d, false
	}
	d.Poll = instance.PollPending
	if v.instance != nil {
		d = d.instanceIs(clusterv1alpha1.ReasonInstanceFailed)
	}
	if v.isMissing() || !s.Now.Before(s.Memory.RetryAt) {
		return d, false
	}
	return d.waitUntil(s.Memory.RetryAt)
}

// awaitLostState waits for a poll where the driver has lost what it knew of this machine: nothing
// is done until one succeeds again.
func awaitLostState(s State, d decision) (decision, bool) {
	last := s.Memory.Last
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionInstanceReady)
	failed := last != nil && last.Failure != nil
	if recorded.Reason != clusterv1alpha1.ReasonDataLoss && !(failed && last.Failure.Class == instance.DataLoss) {
		return d, false
	}
	d.Poll = instance.PollSettled
	if v := s.view(); v.instance != nil && v.failure == nil {
		return d, false
	}
	if failed {
		d = d.callFailed(last.Failure)
	}
	return d, true
}

// awaitTurn waits until the driver takes a mutation of this machine. Where calls of the machine's
// account are refused for a cause that is none of its fault, it says so without having called.
func awaitTurn(s State, d decision) (decision, bool) {
	switch held := s.Driver.Held; {
	case !s.Driver.Ready:
		return d.debounce("driver", driverDebounce).instanceIs(clusterv1alpha1.ReasonDriverUnavailable), true
	case s.Driver.AwaitsTurn:
		return d, true
	case held != nil:
		if held.Class == instance.RateLimited {
			d = d.debounce("turn", limiterDebounce)
		}
		return d.callFailed(held).waitUntil(s.Now.Add(breakerRecheck))
	}
	return d, false
}

// describeBootstrapReady says whether there is user data, and what is to be said about it.
func describeBootstrapReady(s State, d decision) metav1.Condition {
	const typ = clusterv1alpha1.ConditionBootstrapReady
	switch d.bootstrapReason {
	case clusterv1alpha1.ReasonBootstrapInvalid:
		return condition(typ, metav1.ConditionFalse, d.bootstrapReason, s.BootstrapError)
	case clusterv1alpha1.ReasonKubeletTooOld:
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason, s.BootstrapWarning)
	case clusterv1alpha1.ReasonBootstrapTokenNotNeeded:
		if s.Machine.Nodeless && s.BootstrapError == "" {
			return condition(typ, metav1.ConditionTrue, d.bootstrapReason, "The machine joins no cluster, and needs no bootstrap token.")
		}
		if s.BootstrapError != "" {
			return condition(typ, metav1.ConditionFalse, d.bootstrapReason, s.BootstrapError)
		}
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason,
			strings.TrimSpace("The machine has user data of its own, which needs no bootstrap token. "+s.BootstrapWarning))
	case clusterv1alpha1.ReasonBootstrapRendered:
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason, "The user data can be rendered.")
	case clusterv1alpha1.ReasonBootstrapTokenCreated:
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason, "The VM gets user data with a bootstrap token.")
	case clusterv1alpha1.ReasonBootstrapTokenDeleted:
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason, "The machine's Node is there; its bootstrap token is deleted.")
	}
	return s.Machine.Status.Condition(typ)
}
