package lifecycle

import (
	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
	"github.com/millwright-dev/millwright/core/instance"
)

// The bootstrap token of a machine is minted with its first create, and used again by each later
// one: a VM whose create had no answer has it. controllers/machine does that (mutate). Here is what
// comes after: it lasts until the Node is there, and goes then, or with the machine.

// decideToken sees to it that the token of a VM that may be there lasts until its Node is.
func decideToken(s State, d decision) (decision, bool) {
	mayJoin := s.Machine.ProviderID != "" || s.Memory.MaybeCreated || s.Memory.Attempted == instance.Create
	if !mayJoin || s.Node.Match == NodeFound || isTokenDeleted(s) {
		return d, false
	}
	if !s.Token.Known {
		return d.act(RenewToken)
	}
	if s.Token.RenewAt.IsZero() {
		return d, false
	}
	if !s.Now.Before(s.Token.RenewAt) {
		return d.act(RenewToken)
	}
	d, _ = d.waitUntil(s.Token.RenewAt)
	return d, false
}

// decideTokenUsed: a machine whose Node is there needs no token any more. It goes before anything
// else is done with the Node, and before the status says that the machine runs.
func decideTokenUsed(s State, d decision) (decision, bool) {
	switch {
	case s.isRunning():
	case s.Node.Match == NodeFound && mayHaveToken(s):
		return d.act(DeleteToken)
	case d.bootstrapReason != clusterv1alpha1.ReasonBootstrapRendered || mayHaveToken(s):
	case s.Node.Match == NodeFound && needsNodeStep(s):
		// That is told with the Node.
		d.bootstrapReason = ""
	case s.Node.Match == NodeFound:
		d.bootstrapReason = clusterv1alpha1.ReasonBootstrapTokenDeleted
	default:
		d.bootstrapReason = clusterv1alpha1.ReasonBootstrapTokenMissing
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

// isTokenDeleted says whether the machine has had its Node, so that its token is gone. The status
// of a machine that runs says so, but for one that an older core brought up without a token.
func isTokenDeleted(s State) bool {
	recorded := s.Machine.Status.Condition(clusterv1alpha1.ConditionBootstrapReady).Reason
	return recorded == clusterv1alpha1.ReasonBootstrapTokenDeleted || s.isRunning()
}
