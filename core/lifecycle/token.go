package lifecycle

import (
	"cmp"
	"time"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/earliest"
	"github.com/millwright-dev/millwright/core/instance"
)

// A bootstrap token is minted with a machine's first create. Each later create sends the same one,
// because a VM whose create had no answer has it. Another is minted only once the driver has said
// that there is no VM. The token is deleted once the Node is there, before the machine is Running,
// or with the machine. A VM whose token is lost can never join, unless its kubelet has its
// certificate already. controllers/machine reads and writes the Secret.

// tokenRecheck is the default of Token.Recheck.
const tokenRecheck = time.Minute

// TokenState says what became of a machine's bootstrap token.
type TokenState string

// The states.
const (
	// TokenPending: no token has gone with a create.
	TokenPending TokenState = "Pending"
	// TokenNotNeeded: the machine's user data has no place for a token, and there is none.
	TokenNotNeeded TokenState = "NotNeeded"
	// TokenSent: a token went with the machine's creates, or may have, and is there for all that is
	// known.
	TokenSent TokenState = "Sent"
	// TokenLost: such a token is gone, and not because it has served.
	TokenLost TokenState = "Lost"
	// TokenDeleted: it has served. The machine has had its Node.
	TokenDeleted TokenState = "Deleted"
)

// TokenState returns what became of the token, by what this process knows of it and by what
// BootstrapReady told each process before the first create. A core that knew of no tokens wrote
// BootstrapRendered, also of machines that run. Where none is needed and one is there all the same,
// an earlier create has had it: that is kept and deleted like any other. A Machine that was made
// anew with its status, but without its providerID, may have no VM: its token counts as lost.
func (s State) TokenState() TokenState {
	isThere := !s.Token.RenewAt.IsZero()
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
	hasServed := recorded == clusterv1alpha1.ReasonBootstrapTokenDeleted || s.isRunning() && recorded != clusterv1alpha1.ReasonBootstrapRendered
	switch {
	case s.Machine.Nodeless, s.Token.NotNeeded, recorded == clusterv1alpha1.ReasonBootstrapTokenNotNeeded && !isThere:
		return TokenNotNeeded
	case hasServed && s.Machine.ProviderID != "":
		return TokenDeleted
	case recorded == "", recorded == clusterv1alpha1.ReasonBootstrapRendered, s.Machine.Status.LastOperation == nil:
		return TokenPending
	case s.Token.Known && !isThere:
		return TokenLost
	}
	return TokenSent
}

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

// keepToken asks for the token to be read, and extended in time, while there may be a VM that has
// yet to join. Once the VM is known, the token is read each minute, or as Token.Recheck says.
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
		due = earliest.Instant(due, s.Token.ReadAt.Add(cmp.Or(s.Token.Recheck, tokenRecheck)))
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
	if s.Machine.Nodeless || s.Node.Match == NodeFound || s.isRunning() || s.TokenState() == TokenDeleted {
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
	return s.TokenState() == TokenLost && s.Confirmed() && s.Node.Match == NodeNone && progress.Message != "" && !progress.Approved
}

// awaitNoInstance holds back the next create of a machine whose token is lost, until the driver
// says that there is no VM. The create then gets another token. If there is a VM, the next parts
// decide what becomes of it.
func awaitNoInstance(s State, d decision) (decision, bool) {
	if s.TokenState() != TokenLost {
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

// describeLostToken tells what follows from it that the token is lost.
func describeLostToken(d decision) string {
	const lost = "The machine's bootstrap token is gone, and not by Millwright, or has expired"
	if d.phase == clusterv1alpha1.MachinePhaseFailed {
		return lost + ". Its kubelet has no certificate: the VM can never join."
	}
	return lost + ". A VM that has it can never join. The driver is asked whether there is one: if not, one is created with another token."
}

// isAbsent says whether the driver has said that there is no VM of the machine, after every create
// had come to its end. What is left of one that died half-way is none.
func isAbsent(s State) bool {
	v, last := s.view(), s.Memory.Last
	if s.Machine.ProviderID != "" || last != nil && !v.at.After(last.Ended) || v.at.Before(settledAt(s)) {
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
	case d.bootstrapReason == "" || d.bootstrapReason == clusterv1alpha1.ReasonKubeletTooOld || s.TokenState() == TokenNotNeeded:
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
	if s.Machine.Nodeless {
		return false
	}
	if s.Token.Known {
		return !s.Token.RenewAt.IsZero()
	}
	return s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason != clusterv1alpha1.ReasonBootstrapTokenDeleted
}
