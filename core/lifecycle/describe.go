package lifecycle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// describe returns the status that follows from a state and what was decided on it. Each condition
// has one function; one that it leaves as it is recorded is returned as it is recorded.
func describe(s State, d decision) Status {
	status := s.Machine.Status
	status.Phase, status.NodeName = d.phase, d.nodeName
	if d.operation != (Operation{}) && !samePointed(&d.operation, status.LastOperation, Operation.equal) {
		d.operation.At = s.Now
		status.LastOperation = &d.operation
	}
	if d.observed != nil {
		status.Addresses = d.observed.Addresses
	}
	status.LastKnownState = describeDriverState(s, d)
	status.ProviderID, status.ProviderIDAliases = describeProviderIDs(s)
	status = status.without(clusterv1alpha1.ConditionPaused).set(describePaused(s))
	status = status.set(describeBootstrapReady(s, d))
	status = status.set(describeInstanceReady(s, d))
	status = status.set(describeNodeReady(s, d))
	status = status.set(d.drained)
	status.Failure = describeFailure(s, d, status)
	return status.set(describeReady(status, s.isDeleting()))
}

// describeDriverState is what the driver wants to be told again.
func describeDriverState(s State, d decision) []byte {
	switch {
	case (d.driverStateShown || hasPartialFailure(s.Memory)) && s.Memory.LastKnownState != nil:
		return s.Memory.LastKnownState
	case d.observed != nil:
		return d.observed.LastKnownState
	}
	return s.Machine.Status.LastKnownState
}

// hasPartialFailure says whether the last call failed, and handed over what must survive that.
func hasPartialFailure(m Memory) bool {
	return m.Last != nil && m.Last.Failure != nil && m.Last.Failure.LastKnownState != nil
}

// describeProviderIDs returns the id that the driver gave the VM, and its other ids. What was
// written down is taken back where the driver names another VM: it holds no more once that one is
// gone, either.
func describeProviderIDs(s State) (id string, aliases []string) {
	switch {
	case s.Confirmed():
		return s.confirmedIDs()
	case s.Memory.Contradicted != "":
		return "", nil
	}
	return s.Machine.Status.ProviderID, s.Machine.Status.ProviderIDAliases
}

// describeFailure tells programs why a machine has failed for good, if it never had a Node:
// cluster-autoscaler deletes such machines.
func describeFailure(s State, d decision, described Status) *Failure {
	recorded := s.Machine.Status
	if d.phase == clusterv1alpha1.MachinePhaseDeleting {
		return nil
	}
	if d.phase != clusterv1alpha1.MachinePhaseFailed || recorded.Phase == d.phase || hadNode(s, d) {
		return recorded.Failure
	}
	c := described.Condition(clusterv1alpha1.ConditionInstanceReady)
	if d.nodeReason == clusterv1alpha1.ReasonJoinTimeout {
		c = described.Condition(clusterv1alpha1.ConditionNodeReady)
	}
	return &Failure{Reason: c.Reason, Message: c.Message}
}

// describePaused says why nothing is done; the zero value where something may be.
func describePaused(s State) Condition {
	if !s.isPaused() {
		return Condition{}
	}
	why := s.Machine.Paused
	if s.isDeleting() {
		why.Message += " The machine is to be deleted; that waits, too."
	}
	return Condition{clusterv1alpha1.ConditionPaused, metav1.ConditionTrue, why.Reason, why.Message}
}

// describeBootstrapReady says whether there is user data, and what is to be said about it.
func describeBootstrapReady(s State, d decision) Condition {
	const typ = clusterv1alpha1.ConditionBootstrapReady
	switch d.bootstrapReason {
	case clusterv1alpha1.ReasonBootstrapInvalid:
		return Condition{typ, metav1.ConditionFalse, d.bootstrapReason, s.BootstrapError}
	case clusterv1alpha1.ReasonKubeletTooOld:
		return Condition{typ, metav1.ConditionTrue, d.bootstrapReason, s.BootstrapWarning}
	case clusterv1alpha1.ReasonBootstrapRendered:
		return Condition{typ, metav1.ConditionTrue, d.bootstrapReason, "The user data can be rendered."}
	}
	return s.Machine.Status.Condition(typ)
}

// describeReady sums the other conditions up.
func describeReady(s Status, isDeleting bool) Condition {
	const typ = clusterv1alpha1.ConditionReady
	if len(s.Conditions) == 0 {
		return Condition{}
	}
	if isDeleting {
		c := departureCondition(s)
		return Condition{typ, metav1.ConditionFalse, c.Reason, c.Message}
	}
	types := []string{
		clusterv1alpha1.ConditionBootstrapReady, clusterv1alpha1.ConditionInstanceReady, clusterv1alpha1.ConditionNodeReady,
	}
	if s.Condition(clusterv1alpha1.ConditionNodeReady).Reason == clusterv1alpha1.ReasonJoinTimeout {
		// What failed the machine goes before what merely was not done when it did.
		slices.Reverse(types)
	}
	for _, other := range types {
		if c := s.Condition(other); c.Type != "" && c.Status != metav1.ConditionTrue {
			return Condition{typ, c.Status, c.Reason, c.Message}
		}
	}
	return Condition{typ, metav1.ConditionTrue, clusterv1alpha1.ReasonMachineReady, "The VM runs and its Node is Ready."}
}

// departureCondition is the condition that says what a machine on its way out waits for.
func departureCondition(s Status) Condition {
	c := s.Condition(clusterv1alpha1.ConditionDrained)
	isOver := c.Reason == clusterv1alpha1.ReasonDrainTimedOut || c.Reason == clusterv1alpha1.ReasonNodeConflict
	if c.Status != metav1.ConditionFalse || isOver {
		c = s.Condition(clusterv1alpha1.ConditionInstanceReady)
	}
	if c.Reason == "" || c.Status == metav1.ConditionTrue {
		c.Reason, c.Message = clusterv1alpha1.ReasonInstanceDeleting, "The machine is being deleted."
	}
	return c
}
