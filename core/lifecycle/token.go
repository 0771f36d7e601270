package lifecycle

import (
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// The bootstrap token of a machine is minted with its first create, and goes with each later one: a
// VM whose create had no answer has it. Another one is minted only once the driver has said that
// there is no VM. controllers/machine reads and writes the Secret. Here is when: the token lasts
// until the Node is there, and goes then, or with the machine. A VM whose token is lost can never
// join, unless its kubelet has its certificate already.

// tokenRecheck is how often the token of a VM that has yet to join is read. Nobody watches Secrets.
const tokenRecheck = time.Minute

// decideToken sees to it that the token of a VM that may be there lasts until its Node is. A
// machine whose VM has lost its token fails.
func decideToken(s State, d decision) (decision, bool) {
	d, reads := keepToken(s, d)
	if reads || !isShutOut(s) {
		return d, reads
	}
	d.nodeReason = clusterv1alpha1.ReasonTokenMissing
	return d.fail()
}

// keepToken has the token of a VM that may have yet to join read, and extended in time. The token
// of a VM that is known is read each minute as well.
func keepToken(s State, d decision) (decision, bool) {
	due := s.Token.RenewAt
	switch {
	case !mayJoin(s):
		return d, false
	case !s.Token.Known:
		return d.act(RenewToken)
	case due.IsZero():
		return d, false
	case s.Machine.ProviderID != "":
		due = instance.Earlier(due, s.Token.ReadAt.Add(tokenRecheck))
	}
	if !s.Now.Before(due) {
		return d.act(RenewToken)
	}
	d, _ = d.waitUntil(due)
	return d, false
}

// mayJoin says whether a VM may be there that has yet to join. An earlier process may have sent a
// create that is written down.
func mayJoin(s State) bool {
	if s.Node.Match == NodeFound || isTokenDeleted(s) {
		return false
	}
	isOthers := s.Machine.Status.LastOperation != nil && s.Memory.Last == nil
	return s.Machine.ProviderID != "" || s.Memory.MaybeCreated || s.Memory.Attempted == instance.Create || isOthers
}

// isShutOut says whether the machine's VM can never join: its token is lost, and its kubelet has
// not got its certificate. It is false where nobody can tell, and where something else is wrong
// with the VM.
func isShutOut(s State) bool {
	v, progress := s.view(), s.JoinProgress
	if v.isMissing() || v.instance != nil && v.instance.State == instance.Failed {
		return false
	}
	return isTokenLost(s) && s.Confirmed() && s.Node.Match == NodeNone && progress.Message != "" && !progress.Approved
}

// isTokenLost says whether the token is gone that went with the machine's creates, or may have, and
// not because it has served.
func isTokenLost(s State) bool {
	return hadToken(s) && !isTokenDeleted(s) && s.Token.Known && s.Token.RenewAt.IsZero()
}

// hadToken says whether a token went with the creates of the machine, or may have. What is written
// down before the first one says so. A core that knew of no tokens wrote BootstrapRendered.
func hadToken(s State) bool {
	if s.NeedsNoToken() {
		return false
	}
	switch s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason {
	case "", clusterv1alpha1.ReasonBootstrapRendered:
		return false
	}
	return s.Machine.Status.LastOperation != nil
}

// awaitNoInstance keeps a create from being repeated whose token is lost, until the driver says
// that there is no VM. The create gets another token then. Of a VM that is there the next steps say
// what becomes.
func awaitNoInstance(s State, d decision) (decision, bool) {
	if !isTokenLost(s) {
		return d, false
	}
	d.Poll = instance.PollPending
	if isAbsent(s) {
		if s.Machine.Status.Condition(clusterv1alpha1.ConditionNodeReady).Reason == clusterv1alpha1.ReasonTokenMissing {
			d.nodeReason = clusterv1alpha1.ReasonWaitingForNode
		}
		return d, false
	}
	d.nodeReason = clusterv1alpha1.ReasonTokenMissing
	if f := s.view().failure; f != nil && f.Class != instance.NotFound {
		return d.callFailed(f), true
	}
	if settled := settledAt(s); s.Now.Before(settled) {
		d, _ = d.waitUntil(settled)
	}
	return d.debounce("token", driverDebounce), true
}

// isAbsent says whether the driver has said that there is no VM of the machine, after every create
// had come to its end. What is left of one that died half-way is none.
func isAbsent(s State) bool {
	v, last := s.view(), s.Memory.Last
	if s.Machine.ProviderID != "" || !v.polled || last != nil && !v.at.After(last.Ended) || v.at.Before(settledAt(s)) {
		return false
	}
	return v.isMissing() || v.isLeftover()
}

// decideTokenUsed: a machine whose Node is there needs no token any more. It goes before anything
// else is done with the Node, and before the status says that the machine runs.
func decideTokenUsed(s State, d decision) (decision, bool) {
	switch {
	case s.isRunning() || s.Node.Match != NodeFound:
	case mayHaveToken(s):
		return d.act(DeleteToken)
	case d.bootstrapReason == "" || d.bootstrapReason == clusterv1alpha1.ReasonKubeletTooOld || s.NeedsNoToken():
	case needsNodeStep(s):
		// That is told with the Node.
		d.bootstrapReason = ""
	default:
		d.bootstrapReason = clusterv1alpha1.ReasonBootstrapTokenDeleted
	}
	return d, false
}

// decideTokenOver: the token goes before the machine does. A machine whose uid is another's has
// none of its own.
func decideTokenOver(s State, d decision) (decision, bool) {
	if s.Machine.UID == "" || s.Machine.UIDTaken != "" || !mayHaveToken(s) {
		return d, false
	}
	return d.act(DeleteToken)
}

// mayHaveToken says whether there may be a token of the machine. Of a machine that a process before
// this one brought up, the condition BootstrapReady says that there is none.
func mayHaveToken(s State) bool {
	if s.Token.Known {
		return !s.Token.RenewAt.IsZero()
	}
	return s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason != clusterv1alpha1.ReasonBootstrapTokenDeleted
}

// NeedsNoToken says whether the VM joins without a token, since its user data has no place for one.
// The status says so to the processes after the one that made the VM. Where there is a token all
// the same, an earlier create has had it: that is kept and deleted like any other.
func (s State) NeedsNoToken() bool {
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
	return s.Token.NotNeeded || recorded == clusterv1alpha1.ReasonBootstrapTokenNotNeeded && s.Token.RenewAt.IsZero()
}

// isTokenDeleted says whether the machine has had its Node, so that its token is gone. The status
// of a machine that runs says so, but for one that an older core brought up without a token.
func isTokenDeleted(s State) bool {
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
	return recorded == clusterv1alpha1.ReasonBootstrapTokenDeleted || s.isRunning()
}
