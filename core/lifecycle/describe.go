package lifecycle

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/millwright-dev/millwright/api/v1alpha1"
)

// describe returns the status that follows from a state and what was decided on it. Each condition
// has one function; one that it leaves as it is recorded is returned as it is recorded.
func describe(s State, d decision) Status {
	recorded := s.Machine.Status
	status := recorded
	status.Phase, status.NodeRef, status.ObservedGeneration = d.phase, describeNodeRef(s, d), s.Machine.Generation
	if d.operation != (clusterv1alpha1.LastOperation{}) && d.operation != undated(recorded.LastOperation) {
		d.operation.LastUpdateTime = metav1.NewTime(s.Now)
		status.LastOperation = &d.operation
	}
	if d.observed != nil {
		status.Addresses = d.observed.Addresses
	}
	status.LastKnownState = describeDriverState(s, d)
	status.ProviderID, status.ProviderIDAliases = describeProviderIDs(s)
	if !s.isPaused() {
		status.Conditions = slices.Clone(status.Conditions)
		apimeta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionPaused)
	}
	for _, c := range []metav1.Condition{
		describeBootstrapReady(s, d), cmp.Or(d.drained, recorded.Condition(clusterv1alpha1.ConditionDrained)),
		describeInstanceReady(s, d), describeNodeReady(s, d), describePaused(s),
	} {
		status = status.set(c, s)
	}
	if failed := describeFailure(s, d, status); failed.Type != "" {
		status.ErrorReason, status.ErrorMessage = &failed.Reason, &failed.Message
		status.FailureReason, status.FailureMessage = &failed.Reason, &failed.Message
	}
	if d.phase == clusterv1alpha1.MachinePhaseDeleting {
		status.ErrorReason, status.ErrorMessage, status.FailureReason, status.FailureMessage = nil, nil, nil, nil
	}
	return status.set(describeReady(status, s.isDeleting()), s)
}

// describeNodeRef is nil without a Node: an empty reference would read as one.
func describeNodeRef(s State, d decision) *corev1.ObjectReference {
	if d.nodeName == "" {
		return nil
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: d.nodeName}
	if s.Node.Name == d.nodeName {
		ref.UID = s.Node.UID
	}
	return ref
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

// describeFailure is the condition that tells why a machine has failed for good just now, if it
// never had a Node: cluster-autoscaler deletes such machines. It is the zero value for any other.
func describeFailure(s State, d decision, described Status) metav1.Condition {
	if d.phase != clusterv1alpha1.MachinePhaseFailed || s.Machine.Status.Phase == d.phase || hadNode(s, d) {
		return metav1.Condition{}
	}
	if d.nodeReason == clusterv1alpha1.ReasonJoinTimeout {
		return described.Condition(clusterv1alpha1.ConditionNodeReady)
	}
	return described.Condition(clusterv1alpha1.ConditionInstanceReady)
}

// describePaused says why nothing is done; the zero value where something may be.
func describePaused(s State) metav1.Condition {
	if !s.isPaused() {
		return metav1.Condition{}
	}
	why := s.Machine.Paused
	if s.isDeleting() {
		why.Message += " The machine is to be deleted; that waits, too."
	}
	return condition(clusterv1alpha1.ConditionPaused, metav1.ConditionTrue, why.Reason, why.Message)
}

// describeBootstrapReady says whether there is user data, and what is to be said about it.
func describeBootstrapReady(s State, d decision) metav1.Condition {
	const typ = clusterv1alpha1.ConditionBootstrapReady
	switch d.bootstrapReason {
	case clusterv1alpha1.ReasonBootstrapInvalid:
		return condition(typ, metav1.ConditionFalse, d.bootstrapReason, s.BootstrapError)
	case clusterv1alpha1.ReasonKubeletTooOld:
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason, s.BootstrapWarning)
	case clusterv1alpha1.ReasonBootstrapRendered:
		return condition(typ, metav1.ConditionTrue, d.bootstrapReason, "The user data can be rendered.")
	}
	return s.Machine.Status.Condition(typ)
}

// describeReady sums the other conditions up.
func describeReady(s Status, isDeleting bool) metav1.Condition {
	const typ = clusterv1alpha1.ConditionReady
	if !isDeleting && s.Condition(clusterv1alpha1.ConditionInstanceReady).Type == "" {
		return metav1.Condition{}
	}
	if isDeleting {
		c := departureCondition(s)
		return condition(typ, metav1.ConditionFalse, c.Reason, c.Message)
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
			return condition(typ, c.Status, c.Reason, c.Message)
		}
	}
	return condition(typ, metav1.ConditionTrue, clusterv1alpha1.ReasonMachineReady, "The VM runs and its Node is Ready.")
}

// departureCondition is the condition that says what a machine on its way out waits for.
func departureCondition(s Status) metav1.Condition {
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
